// SPDX-License-Identifier: Apache-2.0
// Bench: addresses of one's own, as a plan file has them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gateway_plan.hpp"
#include "plan/address_list.hpp"

namespace evenhand::bench {

constexpr std::uint32_t prefixes_of_a_table = 1'000'000;

/// Hosts of so many prefixes, evenly spread: /24 in IPv4, of whose addresses the first and the last are no hosts', and
/// /48 in IPv6. One prefix is a /16 or a /64.
inline plan::HostRange own_hosts(plan::IpVersion version, Wide first, std::uint32_t prefixes) {
    const bool is_v4 = version == plan::IpVersion::v4;
    const unsigned of_one = is_v4 ? 16 : 64;
    const unsigned of_many = is_v4 ? 8 : 80;
    const Wide size = Wide{1} << (prefixes == 1 ? of_one : of_many);
    const Wide inner = is_v4 ? 1 : 0;
    std::vector<std::byte> records;
    for (std::uint32_t i = 0; i < prefixes; ++i) {
        const Wide network = first + Wide{i} * 2 * size;
        for (const Wide end : {network + inner, network + size - 1 - inner}) {
            const auto address = plan::address_of(version, end);
            const auto octets = std::as_bytes(address.bytes());
            records.insert(records.end(), octets.begin(), octets.end());
        }
    }
    return plan::HostRange::of(
        plan::AddressList::of_records(records, version, plan::Choice::entry, "the bench's table"),
        plan::Mode::pseudorandom);
}

/// gateway_plan() with a prefix of one's own on the left, and so many on the right.
inline plan::AddressPlan own_plan(plan::IpVersion version, std::uint32_t prefixes) {
    auto plan = gateway_plan(version);
    const bool is_v4 = version == plan::IpVersion::v4;
    const auto at = [](const char* text) { return plan::number_of(plan::parse_address(text).value()); };
    plan.left.hosts = own_hosts(version, at(is_v4 ? "198.18.0.0" : "2001:2::"), 1);
    plan.right.hosts = own_hosts(version, at(is_v4 ? "32.0.0.0" : "2400::"), prefixes);
    return plan;
}

}  // namespace evenhand::bench
