// SPDX-License-Identifier: Apache-2.0
// Interfaces for tests: the DUT addresses of Figures 2 to 5 of the draft, two interfaces each.
#pragma once

#include <vector>

#include "plans.hpp"
#include "tables/interface.hpp"

namespace evenhand::tests {

inline router::Interface interface_of(unsigned number, std::vector<router::InterfaceAddress> addresses) {
    const plan::MacAddress mac{2, 0, 0, 0, 0xd0, static_cast<std::uint8_t>(number + 1)};
    return {
        .number = number, .mac = mac, .addresses = std::move(addresses), .link_local = plan::link_local_address(mac)};
}

/// Both families on each: gateway links and direct networks.
inline std::vector<router::Interface> two_interfaces() {
    return {interface_of(
                0, {{ip("10.0.0.1"), 24}, {ip("198.18.0.1"), 16}, {ip("2001:2:0:1000::1"), 64}, {ip("2001:2::1"), 64}}),
            interface_of(1, {{ip("10.0.1.1"), 24},
                             {ip("198.19.0.1"), 16},
                             {ip("2001:2:0:9000::1"), 64},
                             {ip("2001:2:0:8000::1"), 64}})};
}

}  // namespace evenhand::tests
