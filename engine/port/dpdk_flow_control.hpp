// SPDX-License-Identifier: Apache-2.0
// Station 4, port: Ethernet flow control, which would let a full ring stop the other side. Without DPDK's headers.
#pragma once

#include <cstdint>
#include <string>

namespace evenhand::port {

/// Switches it off on DPDK's port `id`, if it can, and says how it is then: "off", "on" (it cannot be switched off),
/// "none" (the port is software, and has none), or "unknown" (a NIC stands behind it, and its driver does not say).
/// `kernel_interface`: behind the device; empty if there is none.
[[nodiscard]] const char* switch_flow_control_off(std::uint16_t id, const std::string& device,
                                                  const std::string& kernel_interface);

}  // namespace evenhand::port
