// SPDX-License-Identifier: Apache-2.0
#include "tables/route_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <tuple>
#include <utility>

#include "fault.hpp"
#include "frame/layout.hpp"

namespace evenhand::router {
namespace {

using plan::IpAddress;
using plan::IpVersion;

unsigned address_bits(IpVersion version) { return static_cast<unsigned>(8 * plan::address_octets(version)); }

std::string to_string(const IpAddress& network, unsigned length) {
    return fmt::format("{}/{}", plan::to_string(network), length);
}

Fault bad_route(std::string what, std::string next) {
    return Fault{FaultCode::bad_request, std::move(what), "routes", std::move(next)};
}

void check_prefix(const IpAddress& network, unsigned length) {
    const unsigned longest = address_bits(network.version);
    if (length > longest)
        throw bad_route(fmt::format("the prefix of {} is too long", to_string(network, length)),
                        fmt::format("Use a length of 0 to {}.", longest));
    const IpAddress without = network_of(network, length);
    if (without != network) {
        throw bad_route(fmt::format("{} has bits behind its prefix", to_string(network, length)),
                        fmt::format("Did you mean {}/{}?", plan::to_string(without), length));
    }
}

void check_next_hop(const IpAddress& network, unsigned length, const Route& route) {
    if (!route.via) return;
    if (route.via->version != network.version) {
        throw bad_route(fmt::format("{} leads to {}, which is of the other family", to_string(network, length),
                                    plan::to_string(*route.via)),
                        "Give a next hop of the same family.");
    }
    if (!is_unicast(*route.via)) {
        throw bad_route(fmt::format("{} leads to {}, which no neighbour can have", to_string(network, length),
                                    plan::to_string(*route.via)),
                        "Give the address of one neighbour.");
    }
}

std::uint64_t big_number(const std::uint8_t* eight_octets) {
    std::uint64_t number = 0;
    std::memcpy(&number, eight_octets, sizeof number);
    return frame::big(number);
}

template <class Key>
Key number_of(const std::uint8_t* octets);
template <>
std::uint32_t number_of(const std::uint8_t* octets) {
    std::uint32_t number = 0;
    std::memcpy(&number, octets, sizeof number);
    return frame::big(number);
}
template <>
Wide number_of(const std::uint8_t* octets) {
    constexpr unsigned half = 8 * sizeof(std::uint64_t);
    return Wide{big_number(octets)} << half | big_number(octets + sizeof(std::uint64_t));
}

template <class Key>
IpAddress address_of(Key number) {
    IpAddress address{.version = sizeof(Key) == sizeof(std::uint32_t) ? IpVersion::v4 : IpVersion::v6};
    for (std::size_t i = sizeof(Key); i-- > 0; number >>= 8U)
        address.octets[i] = static_cast<std::uint8_t>(number & 0xFFU);
    return address;
}

/// All prefixes of one family, each with the number of its route. Routes of entries come first, then those of groups.
template <class Key>
PrefixRanges<Key> ranges_of(IpVersion version, std::span<const RouteEntry> entries,
                            std::span<const RouteGroup> groups) {
    using Prefix = typename PrefixRanges<Key>::Prefix;
    std::vector<Prefix> prefixes;
    std::size_t most = entries.size();
    for (const auto& group : groups) most += group.prefixes.size();
    prefixes.reserve(most);
    std::uint32_t number = 0;
    const auto add = [&](const IpAddress& network, unsigned length, const Route& route) {
        if (network.version != version) return;
        check_prefix(network, length);
        check_next_hop(network, length, route);
        prefixes.push_back({.first = number_of<Key>(network.octets.data()),
                            .value = number,
                            .length = static_cast<std::uint8_t>(length)});
    };
    for (const auto& entry : entries) {
        add(entry.network, entry.prefix_length, entry.route);
        ++number;
    }
    for (const auto& group : groups) {
        for (const auto& prefix : group.prefixes) add(prefix.network, prefix.prefix_length, group.route);
        ++number;
    }
    const auto place = [](const Prefix& prefix) { return std::tie(prefix.first, prefix.length); };
    std::ranges::sort(prefixes, {}, place);
    const auto twice = std::ranges::adjacent_find(prefixes, {}, place);
    if (twice != prefixes.end())
        throw bad_route(fmt::format("there are two routes for {}", to_string(address_of(twice->first), twice->length)),
                        "Keep one of them: frames are not spread over several routes.");
    return PrefixRanges<Key>{prefixes};
}

}  // namespace

std::vector<RouteEntry> routes_of(std::span<const Interface> interfaces) {
    std::vector<RouteEntry> entries;
    // Several addresses of one interface may have the same network, or the same two broadcast addresses. With two
    // interfaces, frames could go either way.
    const auto add = [&](const IpAddress& network, unsigned length, const Route& route) {
        const auto same = std::ranges::find_if(
            entries, [&](const RouteEntry& e) { return e.network == network && e.prefix_length == length; });
        if (same == entries.end()) {
            entries.push_back({.network = network, .prefix_length = length, .route = route});
        } else if (same->route.interface != route.interface) {
            throw Fault{FaultCode::bad_request,
                        fmt::format("interfaces {} and {} both have {}/{}", same->route.interface, route.interface,
                                    plan::to_string(network), length),
                        "interfaces", "Give each interface a network of its own."};
        } else if (same->route.kind != route.kind) {
            throw Fault{FaultCode::bad_request,
                        fmt::format("{} of interface {} is also the broadcast address of one of its networks",
                                    plan::to_string(network), route.interface),
                        "interfaces", "Give an address that is not the first or last of any network of the interface."};
        }
    };
    for (const auto& interface : interfaces) {
        for (const auto& [address, length] : interface.addresses) {
            const unsigned bits = address_bits(address.version);
            if (!is_unicast(address) || is_broadcast(address, length) || length == 0 || length > bits) {
                throw Fault{
                    FaultCode::bad_request,
                    fmt::format("{}/{} of interface {} is not an address of a host", plan::to_string(address), length,
                                interface.number),
                    "interfaces",
                    fmt::format(
                        "Use a unicast address that is not the first or last of its network, and a length of 1 to {}.",
                        bits)};
            }
            add(address, bits, {.interface = interface.number, .kind = RouteKind::local});
            if (length == bits) continue;
            const IpAddress network = network_of(address, length);
            add(network, length, {.interface = interface.number});
            IpAddress last = network;
            for (unsigned bit = length; bit < bits; ++bit)
                last.octets[bit / 8] = static_cast<std::uint8_t>(last.octets[bit / 8] | (0x80U >> (bit % 8)));
            if (!is_broadcast(last, length)) continue;
            add(network, bits, {.interface = interface.number, .kind = RouteKind::broadcast});
            add(last, bits, {.interface = interface.number, .kind = RouteKind::broadcast});
        }
    }
    return entries;
}

RouteTable::RouteTable(std::span<const RouteEntry> entries, std::span<const RouteGroup> groups)
    : v4_{ranges_of<std::uint32_t>(IpVersion::v4, entries, groups)},
      v6_{ranges_of<Wide>(IpVersion::v6, entries, groups)} {
    routes_.reserve(entries.size() + groups.size());
    for (const auto& entry : entries) routes_.push_back(entry.route);
    for (const auto& group : groups) routes_.push_back(group.route);
}

const Route* RouteTable::find_v6(const std::byte* sixteen_octets) const noexcept {
    return route(v6_.find(number_of<Wide>(reinterpret_cast<const std::uint8_t*>(sixteen_octets))));
}

const Route* RouteTable::find(const IpAddress& destination) const noexcept {
    if (destination.version == IpVersion::v4) return find_v4(number_of<std::uint32_t>(destination.octets.data()));
    return find_v6(reinterpret_cast<const std::byte*>(destination.octets.data()));
}

}  // namespace evenhand::router
