// SPDX-License-Identifier: Apache-2.0
// Station 4, port: what a device string tells of its port.
#pragma once

#include <optional>
#include <string>

namespace evenhand::port {

/// Frames that the ring of a software port holds: these do not follow the number of descriptors that is asked for. 2^30 for those that wait for
/// their reader; nothing for other drivers.
[[nodiscard]] std::optional<unsigned> software_ring_frames(const std::string& driver, const std::string& device);

/// The kernel's interface behind the device (`iface=`); empty if there is none.
[[nodiscard]] std::string interface_of(const std::string& device);

}  // namespace evenhand::port
