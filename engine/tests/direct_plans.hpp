// SPDX-License-Identifier: Apache-2.0
// Plans for tests whose hosts are on the link: Figures 1, 2 and 4 of the draft with any number of hosts.
#pragma once

#include "plan/host_set.hpp"
#include "plans.hpp"

namespace evenhand::tests {

/// Figure 2, all 65,533 hosts; Figure 1 is the same with its 253.
inline plan::AddressPlan direct_v4(std::uint32_t hosts = 65533) {
    auto plan = gateway_v4();
    plan.name = "direct_v4";
    plan.left = {.dut_address = ip("198.18.0.1"),
                 .hosts = {.base = ip("198.18.0.0"), .offset = 2, .host = {.first = 2, .count = hosts}}};
    plan.right = {.dut_address = ip("198.19.0.1"),
                  .hosts = {.base = ip("198.19.0.0"), .offset = 2, .host = {.first = 2, .count = hosts}}};
    return plan;
}

/// Figure 4.
inline plan::AddressPlan direct_v6(std::uint32_t hosts = 65536) {
    auto plan = gateway_v6();
    plan.name = "direct_v6";
    plan.left = {.dut_address = ip("2001:2::1"),
                 .hosts = {.base = ip("2001:2::2"), .offset = 12, .host = {.first = 0, .count = hosts}}};
    plan.right = {.dut_address = ip("2001:2:0:8000::1"),
                  .hosts = {.base = ip("2001:2:0:8000::2"), .offset = 12, .host = {.first = 0, .count = hosts}}};
    return plan;
}

/// 256 networks 198.18.R.0/24 with the hosts 2..254, and 256 networks 2001:2:0:80RR::/64.
inline plan::HostSet networks_v4(std::uint32_t hosts = 253) {
    return plan::HostSet{{.base = ip("198.18.0.0"),
                          .offset = 2,
                          .host = {.first = 2, .count = hosts},
                          .network = plan::NetworkRange{.offset = 2, .count = 256}}};
}
inline plan::HostSet networks_v6() {
    return plan::HostSet{{.base = ip("2001:2:0:8000::2"),
                          .offset = 12,
                          .host = {.first = 0, .count = 65536},
                          .network = plan::NetworkRange{.offset = 6, .count = 256}}};
}

}  // namespace evenhand::tests
