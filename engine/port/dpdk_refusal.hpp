// SPDX-License-Identifier: Apache-2.0
// Station 4, port: why DPDK refuses a device, and what the user can do.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "port/dpdk_port.hpp"
#include "port/kernel_interface.hpp"

namespace evenhand::port {

/// Throws Fault{no_device}, or Fault{no_permission} if the error number says so.
///
/// `error`: DPDK's error number, of either sign; `what`: what failed; `next`: what to do.
[[noreturn]] void refuse(const PortOptions& options, int error, const std::string& what, const std::string& next);

/// Throws Fault{bad_frame_size}. `octets`: without FCS.
[[noreturn]] void refuse_frames(const PortOptions& options, std::size_t octets, std::size_t largest_mtu,
                                const std::string& next);

/// Throws Fault{no_device} for a memif without another end. `when` ends the sentence.
[[noreturn]] void refuse_memif(const PortOptions& options, const std::string& when = "",
                               const std::string& other_end = "");

/// Throws Fault{no_device} for a link that is down. `of_kernel`: the reason, if the port is a kernel interface; `when`
/// ends the sentence.
[[noreturn]] void refuse_link(const PortOptions& options, const std::optional<LinkFault>& of_kernel,
                              const std::string& when);

/// Throws Fault{no_device} if the kernel joins several frames into one before the port sees them, since the DUT did not
/// send that one.
void require_frames_as_they_came(const PortOptions& options, const std::string& driver);

/// Throws Fault{bad_frame_size} if the port is an end of a veth whose other end does not accept frames of `octets`,
/// without FCS.
void require_other_end_takes(const PortOptions& options, std::size_t octets);

/// As require(), for setting up a receive queue, for which an interface's MTU may be too large.
void require_receive_queue(const PortOptions& options, const std::string& driver, int result, unsigned queue);

/// Throws a Fault for a device that DPDK did not open, with the reason as far as the host shows it.
[[noreturn]] void refuse_unopened(const PortOptions& options, int result);

/// refuse() if `result` is an error.
void require(const PortOptions& options, int result, const std::string& what);

}  // namespace evenhand::port
