// SPDX-License-Identifier: Apache-2.0
// Bench: the plan with which both loops are measured.
#pragma once

#include "plan/plan.hpp"

namespace evenhand::bench {

/// Figure 3 of the draft with 65,534 hosts, and Figure 5 with 65,536.
inline plan::AddressPlan gateway_plan(plan::IpVersion version) {
    const auto ip = [](const char* text) { return plan::parse_address(text).value(); };
    const auto side = [&](const char* gateway, const char* dut, const char* base) {
        const bool is_v4 = version == plan::IpVersion::v4;
        return plan::PlanSide{
            .gateway = ip(gateway),
            .dut_address = ip(dut),
            .hosts = {.base = ip(base),
                      .offset = is_v4 ? 2U : 12U,
                      .host = is_v4 ? plan::FieldRange{.first = 1, .count = 65534} : plan::FieldRange{.count = 65536}}};
    };
    plan::AddressPlan plan{.source_ports = {.first = 1024, .count = 64512},
                           .destination_ports = {.first = 1, .count = 49151}};
    if (version == plan::IpVersion::v4) {
        plan.left = side("10.0.0.2", "10.0.0.1", "198.18.0.0");
        plan.right = side("10.0.1.2", "10.0.1.1", "198.19.0.0");
    } else {
        plan.left = side("2001:2:0:1000::2", "2001:2:0:1000::1", "2001:2::2");
        plan.right = side("2001:2:0:9000::2", "2001:2:0:9000::1", "2001:2:0:8000::2");
    }
    return plan;
}

/// Frames of the plan `siit` as a translator passes them on in this IP version, as if they had been sent like this.
inline plan::AddressPlan translated_plan(plan::IpVersion version) {
    auto plan = gateway_plan(version);
    if (version == plan::IpVersion::v4) return plan;  // the addresses are those of Figure 3
    const auto hosts = [](const char* base) {
        return plan::HostRange{
            .base = plan::parse_address(base).value(), .offset = 14, .host = {.first = 1, .count = 65534}};
    };
    plan.left.hosts = hosts("2001:2:0:64::c613:0");
    plan.right.hosts = hosts("2001:2:0:64::c612:0");
    return plan;
}

}  // namespace evenhand::bench
