// SPDX-License-Identifier: Apache-2.0
// Plans for tests: Figures 3 and 5 of the draft with any number of hosts, and with networks.
#pragma once

#include <array>
#include <cstddef>

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

/// Octets of an IPv6 address at which those of an IPv4 address stand behind a prefix of that many bits (RFC 6052, 2.2).
inline std::array<std::uint8_t, 4> embedded_at(unsigned length) {
    switch (length) {
        case 32: return {4, 5, 6, 7};
        case 40: return {5, 6, 7, 9};
        case 48: return {6, 7, 9, 10};
        case 56: return {7, 9, 10, 11};
        case 64: return {9, 10, 11, 12};
        default: return {12, 13, 14, 15};
    }
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

/// The same behind a prefix of that many bits of 2001:db8:122:344::, from which RFC 6052, 2.4, takes its examples.
inline plan::AddressPlan siit_behind(unsigned length, std::uint32_t hosts = 65534) {
    auto p = siit(hosts);
    const auto at = embedded_at(length);
    const auto embed = [&](const char* ipv4) {
        auto address = ip("2001:db8:122:344::");
        for (std::size_t octet = length / 8; octet < address.octets.size(); ++octet) address.octets[octet] = 0;
        for (std::size_t i = 0; i < at.size(); ++i) address.octets[at[i]] = ip(ipv4).octets[i];
        return address;
    };
    for (auto* const range : {&p.left.hosts, &*p.left.peers}) {
        range->base = embed(range == &p.left.hosts ? "198.18.0.0" : "198.19.0.0");
        range->offset = at[2];
        range->gap = at[3] - at[2] - 1U;
    }
    return p;
}

}  // namespace evenhand::tests
