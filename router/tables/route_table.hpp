// SPDX-License-Identifier: Apache-2.0
// Tables: the route to a destination address. Longest prefix, both families.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "plan/address.hpp"
#include "tables/interface.hpp"

struct rte_lpm;  // DPDK's tables stay in route_table.cpp
struct rte_lpm6;

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

/// All routes of the router: built at once and then only read, so that any number of workers may look up. The tables
/// are DPDK's LPM and LPM6 (64 MB each, and only for a family that has routes), which need a started EAL with that much
/// memory (`-m 192` for both, also without hugepages).
class RouteTable {
   public:
    /// Throws Fault{bad_request} for host bits in a network, a prefix that is too long, two entries with the same
    /// prefix, a next hop of the other family or that is not a unicast address; Fault{no_memory} if DPDK has too little
    /// memory.
    explicit RouteTable(std::vector<RouteEntry> entries);

    /// nullptr: no route. The pointers live as long as the table.
    [[nodiscard]] const Route* find_v4(std::uint32_t destination_host_order) const noexcept;
    [[nodiscard]] const Route* find_v6(const std::byte* sixteen_octets) const noexcept;
    [[nodiscard]] const Route* find(const plan::IpAddress& destination) const noexcept;

    [[nodiscard]] std::span<const RouteEntry> entries() const noexcept { return entries_; }

   private:
    struct Free {
        void operator()(rte_lpm* table) const noexcept;
        void operator()(rte_lpm6* table) const noexcept;
    };

    void build(plan::IpVersion version);
    [[nodiscard]] const Route* route(std::uint32_t index) const noexcept { return &entries_[index].route; }

    std::vector<RouteEntry> entries_;  // never changed after the constructor, since the LPM has indices into it
    std::unique_ptr<rte_lpm, Free> v4_;
    std::unique_ptr<rte_lpm6, Free> v6_;
    const Route* default_v4_ = nullptr;  // DPDK's tables have no prefix of length 0
    const Route* default_v6_ = nullptr;
};

}  // namespace evenhand::router
