// SPDX-License-Identifier: Apache-2.0
// Station 4, port: room for the largest frames of a trial.
#pragma once

#include <cstdint>
#include <string>

#include "port/dpdk_port.hpp"

namespace evenhand::port {

/// Give a port that has an MTU of its own the one that it needs. An interface of the kernel keeps the MTU that its host
/// gave it.
///
/// Throws Fault{bad_frame_size} if the port does not take frames as large as the options say.
void let_large_frames_in(std::uint16_t id, const std::string& driver, const PortOptions& options);

}  // namespace evenhand::port
