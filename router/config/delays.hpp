// SPDX-License-Identifier: Apache-2.0
// Config: how long frames wait in the router, and how many of them therefore have room in it.
#pragma once

#include <cstddef>

#include "config/config.hpp"
#include "contract/reader.hpp"

namespace evenhand::router {

/// What one look at a port may bring, and what the largest memif holds.
constexpr std::size_t largest_ring = 16384;
/// What the delays have room for if the configuration says neither a load nor elements.
constexpr double usual_delayed_load_fps = 100e3;

/// Frames that wait for their departure at most.
struct Room {
    std::size_t of_port = 0;   // that came to it
    std::size_t in_total = 0;  // that came to all ports
};

/// Throws Fault{bad_request}.
void read_delays(contract::ObjectReader& r, RouterConfig& config);

/// For full queues, for what is under way through the delays, for what waits for the end of a stall, and for what one
/// look at the ports brings.
[[nodiscard]] Room room_of(const RouterConfig& config);

}  // namespace evenhand::router
