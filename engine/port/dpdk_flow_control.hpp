// SPDX-License-Identifier: Apache-2.0
// Station 4, port: Ethernet flow control, which would let a full ring stop the other side. Without DPDK's headers.
#pragma once

#include <cstdint>
#include <string>

namespace evenhand::port {

/// Switches flow control off on DPDK's port `id`, if possible, and returns its state: "off", "on" (it cannot be
/// switched off), "none" (a software port without it), or "unknown" (there is a NIC behind the port, whose driver does
/// not report it). `kernel_interface`: the interface behind the device; empty if there is none.
[[nodiscard]] const char* switch_flow_control_off(std::uint16_t id, const std::string& device,
                                                  const std::string& kernel_interface);

}  // namespace evenhand::port
