// SPDX-License-Identifier: Apache-2.0
// Plans for tests: Figures 3 and 5 of the draft with any number of hosts, and with networks.
#pragma once

#include "plan/plan.hpp"

namespace evenhand::tests {

inline plan::IpAddress ip(const char* text) { return plan::parse_address(text).value(); }

inline plan::AddressPlan gateway_v4(std::uint32_t hosts = 65534) {
    return {.name = "gateway_v4",
            .left = {.gateway = ip("10.0.0.2"),
                     .dut_address = ip("10.0.0.1"),
                     .hosts = {.base = ip("198.18.0.0"), .offset = 2, .host = {.first = 1, .count = hosts}}},
            .right = {.gateway = ip("10.0.1.2"),
                      .dut_address = ip("10.0.1.1"),
                      .hosts = {.base = ip("198.19.0.0"), .offset = 2, .host = {.first = 1, .count = hosts}}},
            .source_ports = {.first = 1024, .count = 64512},
            .destination_ports = {.first = 1, .count = 49151}};
}

inline plan::AddressPlan gateway_v6(std::uint32_t hosts = 65536) {
    return {.name = "gateway_v6",
            .left = {.gateway = ip("2001:2:0:1000::2"),
                     .dut_address = ip("2001:2:0:1000::1"),
                     .hosts = {.base = ip("2001:2::2"), .offset = 12, .host = {.first = 0, .count = hosts}}},
            .right = {.gateway = ip("2001:2:0:9000::2"),
                      .dut_address = ip("2001:2:0:9000::1"),
                      .hosts = {.base = ip("2001:2:0:8000::2"), .offset = 12, .host = {.first = 0, .count = hosts}}},
            .source_ports = {.first = 1024, .count = 64512},
            .destination_ports = {.first = 1, .count = 49151}};
}

/// nets_v4_gateway: `networks` networks on the left, `networks` on the right, up to 255 hosts each.
inline plan::AddressPlan nets_v4(std::uint32_t networks = 256, std::uint32_t hosts = 254) {
    auto p = gateway_v4(hosts);
    p.left.hosts.network = p.right.hosts.network = {.offset = 2, .count = networks};
    return p;
}

/// nets_v6_gateway.
inline plan::AddressPlan nets_v6(std::uint32_t networks = 256, std::uint32_t hosts = 65536) {
    auto p = gateway_v6(hosts);
    p.left.hosts.network = p.right.hosts.network = {.offset = 6, .count = networks};
    return p;
}

/// IPv6 on the left, IPv4 on the right, all IPv6 addresses with an IPv4 address in them (RFC 6052): the plan `siit`.
inline plan::AddressPlan siit(std::uint32_t hosts = 65534) {
    const plan::FieldRange numbers{.first = 1, .count = hosts};
    return {.name = "siit",
            .left = {.gateway = ip("2001:2:0:1000::2"),
                     .dut_address = ip("2001:2:0:1000::1"),
                     .hosts = {.base = ip("2001:2:0:64::198.18.0.0"), .offset = 14, .host = numbers},
                     .peers = plan::HostRange{.base = ip("2001:2:0:64::198.19.0.0"), .offset = 14, .host = numbers},
                     .added_octets = 20},
            .right = {.gateway = ip("10.0.1.2"),
                      .dut_address = ip("10.0.1.1"),
                      .hosts = {.base = ip("198.19.0.0"), .offset = 2, .host = numbers},
                      .peers = plan::HostRange{.base = ip("198.18.0.0"), .offset = 2, .host = numbers}},
            .source_ports = {.first = 1024, .count = 64512},
            .destination_ports = {.first = 1, .count = 49151}};
}

}  // namespace evenhand::tests
