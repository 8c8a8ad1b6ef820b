// SPDX-License-Identifier: Apache-2.0
// Plans for tests whose hosts are lists of address ranges.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "plan/address_list.hpp"
#include "plans.hpp"

namespace evenhand::tests {

using Ends = std::pair<std::string, std::string>;  // first and last address of an entry

/// The octets of a list's file.
inline std::vector<std::byte> records_of(const std::vector<std::pair<plan::IpAddress, plan::IpAddress>>& entries) {
    std::vector<std::byte> records;
    for (const auto& [first, last] : entries) {
        for (const auto* const address : {&first, &last}) {
            const auto octets = std::as_bytes(address->bytes());
            records.insert(records.end(), octets.begin(), octets.end());
        }
    }
    return records;
}
inline std::vector<std::byte> records_of(const std::vector<Ends>& entries) {
    std::vector<std::pair<plan::IpAddress, plan::IpAddress>> found;
    found.reserve(entries.size());
    for (const auto& [first, last] : entries) found.emplace_back(ip(first.c_str()), ip(last.c_str()));
    return records_of(found);
}

inline std::shared_ptr<const plan::AddressList> list_of(const std::vector<Ends>& entries,
                                                        plan::Choice choice = plan::Choice::entry) {
    return plan::AddressList::of_records(records_of(entries), ip(entries.front().first.c_str()).version, choice,
                                         "list");
}

/// Prefixes of all lengths from 20.0.0.0 or 2400:: on: in IPv4 one in each 2^10 addresses, in IPv6 one in each 2^96.
inline std::shared_ptr<const plan::AddressList> many_prefixes(plan::IpVersion version, std::uint32_t entries,
                                                              plan::Choice choice = plan::Choice::entry) {
    const bool is_v4 = version == plan::IpVersion::v4;
    const unsigned bits = is_v4 ? 10 : 96;
    const Wide base = plan::number_of(ip(is_v4 ? "20.0.0.0" : "2400::"));
    std::mt19937_64 random{entries};
    std::vector<std::pair<plan::IpAddress, plan::IpAddress>> found;
    found.reserve(entries);
    // To choose each address equally often, there must not be too many.
    const unsigned most_bits = choice == plan::Choice::host && !is_v4 ? 12 : bits;
    for (std::uint32_t i = 0; i < entries; ++i) {
        const Wide size = Wide{1} << random() % (most_bits + 1);
        const Wide room = Wide{1} << bits;
        const Wide first = base + i * room + random() % std::min<Wide>(room / size, 1000) * size;
        found.emplace_back(plan::address_of(version, first), plan::address_of(version, first + size - 1));
    }
    return plan::AddressList::of_records(records_of(found), version, choice, "list");
}

/// A gateway plan with a list on the right; the left side stays a range of hosts.
inline plan::AddressPlan listed_v4(std::shared_ptr<const plan::AddressList> list,
                                   plan::Mode mode = plan::Mode::pseudorandom) {
    auto p = gateway_v4(1000);
    p.name = "listed_v4";
    p.right.hosts = plan::HostRange::of(std::move(list), mode);
    return p;
}
inline plan::AddressPlan listed_v6(std::shared_ptr<const plan::AddressList> list,
                                   plan::Mode mode = plan::Mode::pseudorandom) {
    auto p = gateway_v6(1000);
    p.name = "listed_v6";
    p.right.hosts = plan::HostRange::of(std::move(list), mode);
    return p;
}
inline plan::AddressPlan listed(plan::IpVersion version, std::uint32_t entries,
                                plan::Choice choice = plan::Choice::entry, plan::Mode mode = plan::Mode::pseudorandom) {
    auto list = many_prefixes(version, entries, choice);
    return version == plan::IpVersion::v4 ? listed_v4(std::move(list), mode) : listed_v6(std::move(list), mode);
}

/// Both sides are lists, behind gateways.
inline plan::AddressPlan both_listed_v4() {
    auto p = listed(plan::IpVersion::v4, 100);
    p.left.hosts = plan::HostRange::of(list_of({{"100.64.0.0", "100.64.0.255"}, {"100.65.0.0", "100.65.255.255"}}));
    return p;
}
inline plan::AddressPlan both_listed_v6() {
    auto p = listed(plan::IpVersion::v6, 100);
    p.left.hosts = plan::HostRange::of(
        list_of({{"2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"}, {"2600::1", "2600::1"}}));
    return p;
}

}  // namespace evenhand::tests
