// SPDX-License-Identifier: Apache-2.0
// Forward: what the loop needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "elements/elements.hpp"
#include "elements/spread.hpp"
#include "forward/stalls.hpp"
#include "local/answerer.hpp"
#include "tables/interface.hpp"
#include "tables/neighbor_table.hpp"
#include "tables/route_table.hpp"

namespace evenhand::router {

/// The modelled elements; without them the router forwards as fast as it can.
struct ElementModel {
    Spread spread;
    Elements elements;
    NeighborCost neighbor_cost;
};

struct ForwardOptions {
    Ticks extra_delay = 0;           // for each forwarded frame, in addition to its element's time
    Ticks longer_delay = 0;          // for each longer_every-th admitted frame, in addition
    std::uint64_t longer_every = 0;  // 0: for none
    StallOptions stalls;
    Ticks overdue_after = 0;             // a frame that leaves later than this after its time counts as late
    std::size_t waiting_frames = 65536;  // how many frames can wait for their departure
    Ticks horizon = 0;                   // no frame waits longer, including the stall that it meets
    Ticks ticks_per_second = 1;
};

/// What a pair of interfaces has to itself: a virtual router between them. Everything that it points to outlives the
/// forwarder.
struct VirtualRouter {
    std::span<const Interface, 2> interfaces;
    const RouteTable* routes;
    NeighborTable* neighbors;
    LocalAnswerer* local;
};

}  // namespace evenhand::router
