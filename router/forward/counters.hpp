// SPDX-License-Identifier: Apache-2.0
// Forward: the router's counters. Only its worker writes them; others get copies.
#pragma once

#include <array>
#include <cstdint>

#include "tables/interface.hpp"

namespace evenhand::router {

struct InterfaceCounters {
    std::uint64_t received_frames = 0;
    std::uint64_t transmitted_frames = 0;
    std::uint64_t transmit_dropped_frames = 0;  // the port did not accept them
    std::uint64_t local_frames = 0;             // for the router itself: ARP, ND, ICMP
    std::uint64_t other_mac_frames = 0;         // to another host's MAC
    std::uint64_t ignored_frames = 0;           // not IP, or to a group
    std::uint64_t malformed_frames = 0;
    std::uint64_t martian_frames = 0;
    std::uint64_t expired_frames = 0;     // TTL or hop limit
    std::uint64_t no_route_frames = 0;    // no route
    std::uint64_t unresolved_frames = 0;  // too many frames waited for their next hop
    std::uint64_t element_dropped_frames = 0;
    std::uint64_t stalled_frames = 0;  // too many waited for the end of a stall
};

/// How well the router kept the times of its own model.
struct ModelCounters {
    std::uint64_t departed_frames = 0;
    std::uint64_t overdue_frames = 0;   // left later than `overdue_after` after their time
    std::uint64_t longest_overdue = 0;  // ticks
    std::uint64_t longest_gap = 0;      // ticks between two looks at the ports of which the second found something
    std::uint64_t overflow_frames = 0;  // there was no room for them to wait: the router was sized too small
};

struct DefectCounters {
    std::uint64_t lost_frames = 0;
    std::uint64_t duplicated_frames = 0;
    std::uint64_t reordered_frames = 0;  // exchanged with the next frame
    std::uint64_t corrupted_frames = 0;
};

struct ForwardCounters {
    // Left and right of each pair; drops count on the interface that the frame arrived on.
    std::array<InterfaceCounters, most_interfaces> interfaces;
    ModelCounters model;
    DefectCounters defects;
};

}  // namespace evenhand::router
