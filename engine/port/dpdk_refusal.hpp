// SPDX-License-Identifier: Apache-2.0
// Station 4, port: why DPDK refuses a device, and what the user can do.
#pragma once

#include <cstddef>
#include <string>

#include "port/dpdk_port.hpp"

namespace evenhand::port {

/// Throws Fault{no_device}, or Fault{no_permission} where the error number says so.
///
/// `error`: of DPDK, of either sign; `what`: what failed; `next`: what to do.
[[noreturn]] void refuse(const PortOptions& options, int error, const std::string& what, const std::string& next);

/// Throws Fault{bad_frame_size}. `octets`: without FCS.
[[noreturn]] void refuse_frames(const PortOptions& options, std::size_t octets, std::size_t largest_mtu,
                                const std::string& next);

/// Throws Fault{no_device} for a memif without another end. `when` ends the sentence.
[[noreturn]] void refuse_memif(const PortOptions& options, const std::string& when = "");

/// Throws Fault for a device that DPDK did not open: why, as far as the host shows it.
[[noreturn]] void refuse_unopened(const PortOptions& options, int result);

/// refuse() if `result` is an error.
void require(const PortOptions& options, int result, const std::string& what);

}  // namespace evenhand::port
