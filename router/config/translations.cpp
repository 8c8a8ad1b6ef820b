// SPDX-License-Identifier: Apache-2.0
#include "config/translations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <tuple>
#include <utility>

#include "config/networks.hpp"

namespace evenhand::router {
namespace {

using contract::Json;
using contract::ObjectReader;

std::pair<plan::IpAddress, unsigned> read_translation_prefix(ObjectReader& r) {
    const auto [prefix, length] = read_network(r, "prefix", plan::IpVersion::v6);
    constexpr std::array<unsigned, 6> lengths{32, 40, 48, 56, 64, 96};
    if (std::ranges::find(lengths, length) == lengths.end())
        r.refuse("prefix", fmt::format("a prefix of {} bits", length),
                 "Use 32, 40, 48, 56, 64 or 96 bits (RFC 6052, 2.2).");
    constexpr std::size_t zero_octet = 8;
    if (prefix.octets[zero_octet] != 0)
        r.refuse("prefix", fmt::format("bits 64 to 71 of {} are not zero", plan::to_string(prefix)),
                 "Use a prefix in which they are (RFC 6052, 2.2).");
    return {prefix, length};
}

NatPool read_pool(ObjectReader r) {
    NatPool pool;
    pool.base = r.address("first");
    const std::size_t octets = plan::address_octets(pool.base.version);
    pool.offset = pool.base.version == plan::IpVersion::v4 ? 2 : 12;
    if (r.has("offset")) pool.offset = r.whole("offset", 0, octets - 2);
    pool.first = pool.number_in(pool.base);
    constexpr std::uint32_t numbers = 65536;
    pool.count = static_cast<std::uint32_t>(r.whole("count", 1, numbers));
    if (pool.first + pool.count > numbers)
        r.refuse("count", fmt::format("{} addresses from {} on", pool.count, plan::to_string(pool.base)),
                 fmt::format("Use at most {}: what counts them has 16 bits.", numbers - pool.first));
    r.finish();
    return pool;
}

void read_ports(ObjectReader r, NatOptions& options) {
    constexpr std::uint64_t largest = 65535;
    if (r.has("first")) options.first_port = static_cast<std::uint16_t>(r.whole("first", 1, largest));
    if (r.has("last")) options.last_port = static_cast<std::uint16_t>(r.whole("last", options.first_port, largest));
    r.finish();
}

void read_nat_defects(ObjectReader& r, NatOptions& options) {
    constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
    if (r.has("same_tuple_every")) options.same_tuple_every = r.whole("same_tuple_every", 0, most);
    if (r.has("lost_entry_every")) options.lost_entry_every = r.whole("lost_entry_every", 0, most);
    if (r.has("other_address_every")) options.other_address_every = r.whole("other_address_every", 0, most);
    if (r.has("wrong_checksum_every")) options.wrong_checksum_every = r.whole("wrong_checksum_every", 0, most);
    if (options.other_address_every != 0 && options.pool.first == 0)
        r.refuse("other_address_every", "there is no address before the first of the pool",
                 "Begin the pool with a larger one.");
}

}  // namespace

TranslationOptions read_translation(ObjectReader r) {
    TranslationOptions options;
    std::tie(options.prefix, options.prefix_length) = read_translation_prefix(r);
    const Json& list = r.array("mappings");
    for (std::size_t i = 0; i < list.size(); ++i) {
        ObjectReader entry{list[i], fmt::format("{}[{}]", r.where("mappings"), i)};
        AddressMapping mapping;
        std::tie(mapping.ipv4, mapping.ipv4_length) = read_network(entry, "ipv4", plan::IpVersion::v4);
        mapping.is_behind_prefix = !entry.has("ipv6");
        if (!mapping.is_behind_prefix)
            std::tie(mapping.ipv6, mapping.ipv6_length) = read_network(entry, "ipv6", plan::IpVersion::v6);
        if (!mapping.is_behind_prefix && mapping.ipv4_length + 96 != mapping.ipv6_length)
            entry.refuse("ipv6",
                         fmt::format("{} bits behind the prefix, but {} behind the IPv4 one", 128 - mapping.ipv6_length,
                                     32 - mapping.ipv4_length),
                         "Leave as many bits behind both prefixes.");
        entry.finish();
        options.mappings.push_back(mapping);
    }
    constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
    if (r.has("wrong_address_every")) options.wrong_address_every = r.whole("wrong_address_every", 1, most);
    if (r.has("no_checksum_every")) options.no_checksum_every = r.whole("no_checksum_every", 1, most);
    if (r.has("traffic_class_every")) options.traffic_class_every = r.whole("traffic_class_every", 1, most);
    r.finish();
    return options;
}

NatOptions read_nat(ObjectReader r) {
    constexpr std::array<std::pair<const char*, unsigned>, 2> sides{{{"left", 0}, {"right", 1}}};
    constexpr std::array<std::pair<const char*, WhenFull>, 2> choices{
        {{"refuse", WhenFull::refuse}, {"replace", WhenFull::replace}}};
    constexpr double longest_s = 1e6;
    constexpr double dearest = 1e6;
    constexpr double longest_us = 1e6;
    NatOptions options;
    options.inside = r.choice("inside", sides);
    options.pool = read_pool(r.object("pool"));
    if (r.has("prefix")) {
        std::tie(options.prefix, options.prefix_length) = read_translation_prefix(r);
        if (options.pool.base.version != plan::IpVersion::v4)
            r.refuse("prefix", "the addresses of the pool are IPv6",
                     "Leave the prefix out for NAT66, or use an IPv4 pool for NAT64.");
    }
    if (r.has("ports")) read_ports(r.object("ports"), options);
    if (r.has("capacity")) options.capacity = r.whole("capacity", 0, NatOptions::most_connections);
    if (options.capacity == 0) options.capacity = NatOptions::default_connections;
    if (r.has("when_full")) options.when_full = r.choice("when_full", choices);
    if (r.has("timeout_s")) options.timeout_s = r.number("timeout_s", 0, longest_s);
    if (r.has("entry_cost")) options.entry_cost = r.number("entry_cost", 0, dearest, true);
    if (r.has("reuse_ports")) options.reuse_ports = r.boolean("reuse_ports");
    if (r.has("flush_us_per_entry")) options.flush_us_per_entry = r.number("flush_us_per_entry", 0, longest_us);
    read_nat_defects(r, options);
    r.finish();
    return options;
}

}  // namespace evenhand::router
