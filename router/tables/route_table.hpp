// SPDX-License-Identifier: Apache-2.0
// Tables: the route to a destination address. Longest prefix, both families.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "plan/address.hpp"
#include "tables/interface.hpp"
#include "tables/prefix_ranges.hpp"
#include "wide.hpp"

namespace evenhand::router {

enum class RouteKind : std::uint8_t {
    forward,    // send it out
    local,      // an own address: for LocalAnswerer
    broadcast,  // of a connected IPv4 network: not forwarded (RFC 2644)
};

/// Where frames with a prefix go.
struct Route {
    unsigned interface = 0;
    std::optional<plan::IpAddress> via;  // the next hop; nothing: the destination is on the link, and its own next hop
    RouteKind kind = RouteKind::forward;

    friend bool operator==(const Route&, const Route&) = default;
};

/// An entry of the table before it is built.
struct RouteEntry {
    plan::IpAddress network;
    unsigned prefix_length = 0;  // 0..32 in IPv4, 0..128 in IPv6; 0 is the default route
    Route route;
};

/// The routes that follow from the interfaces alone: the network of each address, each address itself (local, /32 or
/// /128), and in IPv4 the two broadcast addresses of each network. Two addresses of one interface in the same network
/// share one entry. Throws Fault{bad_request} if two interfaces have the same address or the same network, or if an
/// address is not a unicast address or is a broadcast address.
[[nodiscard]] std::vector<RouteEntry> routes_of(std::span<const Interface> interfaces);

/// A prefix without bits behind it.
struct RoutePrefix {
    plan::IpAddress network;
    std::uint8_t prefix_length = 0;
};

/// Many prefixes with one route.
struct RouteGroup {
    std::span<const RoutePrefix> prefixes;
    Route route;
};

/// All routes of the router: built at once and then only read, so that any number of workers may look up. Two million
/// IPv4 prefixes take 49 MB at most, and one million IPv6 prefixes 48 MB, if no two of them are neighbours.
class RouteTable {
   public:
    /// Throws Fault{bad_request} for host bits in a network, a prefix that is too long, two entries with the same
    /// prefix, a next hop of the other family or that is not a unicast address.
    explicit RouteTable(std::span<const RouteEntry> entries, std::span<const RouteGroup> groups = {});

    /// nullptr: no route. The pointers live as long as the table.
    [[nodiscard]] const Route* find_v4(std::uint32_t destination_host_order) const noexcept {
        return route(v4_.find(destination_host_order));
    }
    [[nodiscard]] const Route* find_v6(const std::byte* sixteen_octets) const noexcept;
    [[nodiscard]] const Route* find(const plan::IpAddress& destination) const noexcept;

    /// What it takes of memory.
    [[nodiscard]] std::size_t octets() const noexcept {
        return v4_.octets() + v6_.octets() + routes_.capacity() * sizeof(Route);
    }

   private:
    [[nodiscard]] const Route* route(std::uint32_t number) const noexcept {
        return number == PrefixRanges<std::uint32_t>::nothing ? nullptr : &routes_[number];
    }

    std::vector<Route> routes_;  // never changed after the constructor
    PrefixRanges<std::uint32_t> v4_;
    PrefixRanges<Wide> v6_;
};

}  // namespace evenhand::router
