// SPDX-License-Identifier: Apache-2.0
// Local: the router's own messages: ARP, neighbour discovery and echo, and what it learns from them.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "pace/clock.hpp"
#include "tables/counter.hpp"
#include "tables/interface.hpp"
#include "tables/neighbor_table.hpp"

namespace evenhand::router {

/// Handles every frame that is not forwarded: all ARP, everything sent to a multicast or broadcast MAC, and IP packets
/// for an own address. Belongs to the worker that owns the neighbour table; any thread may read the counters. Allocates
/// nothing.
///
/// Answers ARP requests and solicitations for an address of the interface that they arrive on, and echo requests to any
/// address of the router, or to the link-local address of the interface. Nothing else is answered, and nothing that is
/// truncated: each frame counts in exactly one counter other than `learned`.
class LocalAnswerer {
   public:
    struct Counters {
        Counter arp_answers;
        Counter nd_answers;    // solicitations, including duplicate address detection
        Counter echo_answers;  // ICMP and ICMPv6
        Counter
            told;  // replies, advertisements, announcements, and questions about others: not answered, perhaps learned
        Counter learned;        // times the neighbour table got a MAC or a confirmation
        Counter malformed;      // too short, inconsistent lengths or fields, impossible senders
        Counter bad_checksum;   // IPv4 header, ICMP, ICMPv6
        Counter bad_hop_limit;  // neighbour discovery that has crossed a router (RFC 4861, 7.1)
        Counter not_ours;       // another MAC, or IP address
        Counter unsupported;    // for the router, but fragments, IPv4 options, or something that is not answered
    };

    /// `interfaces[i].number` must be i. Interfaces are copied; the table is used.
    LocalAnswerer(std::vector<Interface> interfaces, NeighborTable& neighbors);

    /// Answers in place. `room`: the whole buffer of the frame; `octets`: the received length (without FCS), beyond
    /// which nothing is read. Returns the octets of the answer, to be sent out of the same interface; 0 if there is
    /// none, in which case the buffer may have been changed. An answer needs at most as much room as the frame, but at
    /// least neighbor::solicitation_octets, otherwise it is not given. `interface` must exist. Call
    /// NeighborTable::take_ready() afterwards: frames may have waited for what was learned.
    [[nodiscard]] std::size_t handle(unsigned interface, std::span<std::byte> room, std::size_t octets,
                                     Ticks now) noexcept;

    [[nodiscard]] const Counters& counters() const noexcept { return counters_; }

   private:
    [[nodiscard]] std::size_t handle_arp(const Interface& on, std::span<std::byte> room, std::size_t octets,
                                         Ticks now) noexcept;
    [[nodiscard]] std::size_t handle_ipv4(const Interface& on, std::span<std::byte> room, std::size_t octets) noexcept;
    [[nodiscard]] std::size_t handle_ipv6(const Interface& on, std::span<std::byte> room, std::size_t octets,
                                          Ticks now) noexcept;
    [[nodiscard]] std::size_t handle_solicitation(const Interface& on, std::span<std::byte> room, std::size_t octets,
                                                  Ticks now) noexcept;
    void handle_advertisement(const Interface& on, std::span<const std::byte> frame, Ticks now) noexcept;
    [[nodiscard]] std::size_t handle_echo_v6(const Interface& on, std::span<std::byte> room,
                                             std::size_t octets) noexcept;
    void learn(const Interface& on, const plan::IpAddress& neighbor, const plan::MacAddress& mac, Ticks now,
               Evidence evidence) noexcept;
    [[nodiscard]] bool owns(const Interface& on, const plan::IpAddress& address) const noexcept;

    std::vector<Interface> interfaces_;
    NeighborTable& neighbors_;
    Counters counters_;
};

}  // namespace evenhand::router
