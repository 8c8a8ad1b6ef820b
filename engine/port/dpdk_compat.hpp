// SPDX-License-Identifier: Apache-2.0
// Station 4, port: the differences between DPDK 22.11, 23.11 and 24.11. No other file depends on DPDK's version.
#pragma once

#include <rte_lpm6.h>
#include <rte_version.h>

#include <cstdint>

namespace evenhand::port {

#if RTE_VERSION >= RTE_VERSION_NUM(24, 11, 0, 0)
using Lpm6Address = rte_ipv6_addr;
#else
using Lpm6Address = std::uint8_t;
#endif

/// The 16 octets of an IPv6 address, in network order, as the functions rte_lpm6_* expect them. They are not copied.
[[nodiscard]] inline const Lpm6Address* lpm6_address(const void* sixteen_octets) noexcept {
    return static_cast<const Lpm6Address*>(sixteen_octets);
}

}  // namespace evenhand::port
