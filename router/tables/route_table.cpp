// SPDX-License-Identifier: Apache-2.0
#include "tables/route_table.hpp"

#include <fmt/format.h>
#include <rte_errno.h>
#include <rte_lpm.h>
#include <rte_memory.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#include <tuple>
#include <utility>

#include "fault.hpp"
#include "frame/layout.hpp"
#include "port/dpdk_compat.hpp"

namespace evenhand::router {
namespace {

using plan::IpAddress;
using plan::IpVersion;

unsigned address_bits(IpVersion version) { return static_cast<unsigned>(8 * plan::address_octets(version)); }

std::string to_string(const RouteEntry& entry) {
    return fmt::format("{}/{}", plan::to_string(entry.network), entry.prefix_length);
}

Fault bad_route(std::string what, std::string next) {
    return Fault{FaultCode::bad_request, std::move(what), "routes", std::move(next)};
}

void check(const RouteEntry& entry) {
    const unsigned longest = address_bits(entry.network.version);
    if (entry.prefix_length > longest)
        throw bad_route(fmt::format("the prefix of {} is too long", to_string(entry)),
                        fmt::format("Use a length of 0 to {}.", longest));
    const IpAddress network = network_of(entry.network, entry.prefix_length);
    if (network != entry.network) {
        throw bad_route(fmt::format("{} has bits behind its prefix", to_string(entry)),
                        fmt::format("Did you mean {}/{}?", plan::to_string(network), entry.prefix_length));
    }
    if (!entry.route.via) return;
    if (entry.route.via->version != entry.network.version) {
        throw bad_route(fmt::format("{} leads to {}, which is of the other family", to_string(entry),
                                    plan::to_string(*entry.route.via)),
                        "Give a next hop of the same family.");
    }
    if (!is_unicast(*entry.route.via)) {
        throw bad_route(fmt::format("{} leads to {}, which no neighbour can have", to_string(entry),
                                    plan::to_string(*entry.route.via)),
                        "Give the address of one neighbour.");
    }
}

/// By network, then by length, so that equal prefixes are adjacent.
bool is_before(const RouteEntry& a, const RouteEntry& b) {
    return std::tie(a.network.version, a.network.octets, a.prefix_length) <
           std::tie(b.network.version, b.network.octets, b.prefix_length);
}

std::uint32_t host_order(const IpAddress& address) {
    std::uint32_t network_order = 0;
    std::memcpy(&network_order, address.octets.data(), sizeof network_order);
    return frame::big(network_order);
}

/// DPDK requires names, all of them different.
std::string next_name() {
    static std::atomic<unsigned> made{0};
    return fmt::format("routes-{}", made.fetch_add(1));
}

/// An LPM6 has a table of 256 entries for each octet of a prefix after the first three, unless another prefix shares
/// it.
std::uint32_t most_v6_groups(std::span<const RouteEntry> entries) {
    constexpr unsigned first_bits = 24;
    std::uint32_t groups = 1;  // DPDK refuses 0
    for (const auto& entry : entries) {
        if (entry.network.version == IpVersion::v6 && entry.prefix_length > first_bits)
            groups += (entry.prefix_length - first_bits + 7) / 8;
    }
    return groups;
}

[[noreturn]] void refuse_memory(const char* family) {
    throw Fault{FaultCode::no_memory, fmt::format("DPDK made no {} route table: {}", family, rte_strerror(rte_errno)),
                "routes", "Give DPDK more memory: each family of routes needs 64 MB."};
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

void RouteTable::Free::operator()(rte_lpm* table) const noexcept { rte_lpm_free(table); }
void RouteTable::Free::operator()(rte_lpm6* table) const noexcept { rte_lpm6_free(table); }

RouteTable::RouteTable(std::vector<RouteEntry> entries) : entries_{std::move(entries)} {
    std::ranges::for_each(entries_, check);
    std::ranges::sort(entries_, is_before);
    const auto twice = std::ranges::adjacent_find(entries_, [](const auto& a, const auto& b) {
        return a.network == b.network && a.prefix_length == b.prefix_length;
    });
    if (twice != entries_.end())
        throw bad_route(fmt::format("there are two routes for {}", to_string(*twice)),
                        "Keep one of them: frames are not spread over several routes.");
    build(IpVersion::v4);
    build(IpVersion::v6);
}

void RouteTable::build(IpVersion version) {
    const auto count = static_cast<std::uint32_t>(
        std::ranges::count(entries_, version, [](const RouteEntry& e) { return e.network.version; }));
    if (count == 0) return;
    const std::string name = next_name();
    if (version == IpVersion::v4) {
        const rte_lpm_config config{.max_rules = count, .number_tbl8s = count, .flags = 0};
        v4_.reset(rte_lpm_create(name.c_str(), SOCKET_ID_ANY, &config));
        if (!v4_) refuse_memory("IPv4");
    } else {
        const rte_lpm6_config config{.max_rules = count, .number_tbl8s = most_v6_groups(entries_), .flags = 0};
        v6_.reset(rte_lpm6_create(name.c_str(), SOCKET_ID_ANY, &config));
        if (!v6_) refuse_memory("IPv6");
    }
    for (std::uint32_t i = 0; i < entries_.size(); ++i) {
        const auto& entry = entries_[i];
        if (entry.network.version != version) continue;
        const auto length = static_cast<std::uint8_t>(entry.prefix_length);
        if (length == 0) {
            (version == IpVersion::v4 ? default_v4_ : default_v6_) = &entry.route;
            continue;
        }
        const int failed = version == IpVersion::v4
                               ? rte_lpm_add(v4_.get(), host_order(entry.network), length, i)
                               : rte_lpm6_add(v6_.get(), port::lpm6_address(entry.network.octets.data()), length, i);
        if (failed != 0) {
            throw Fault{FaultCode::no_memory,
                        fmt::format("DPDK did not take the route for {}: {}", to_string(entry), rte_strerror(-failed)),
                        "routes", "Configure fewer routes."};
        }
    }
}

const Route* RouteTable::find_v4(std::uint32_t destination_host_order) const noexcept {
    std::uint32_t index = 0;
    if (v4_ && rte_lpm_lookup(v4_.get(), destination_host_order, &index) == 0) return route(index);
    return default_v4_;
}

const Route* RouteTable::find_v6(const std::byte* sixteen_octets) const noexcept {
    std::uint32_t index = 0;
    if (v6_ && rte_lpm6_lookup(v6_.get(), port::lpm6_address(sixteen_octets), &index) == 0) return route(index);
    return default_v6_;
}

const Route* RouteTable::find(const IpAddress& destination) const noexcept {
    if (destination.version == IpVersion::v4) return find_v4(host_order(destination));
    return find_v6(reinterpret_cast<const std::byte*>(destination.octets.data()));
}

}  // namespace evenhand::router
