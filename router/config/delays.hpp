// SPDX-License-Identifier: Apache-2.0
// Config: how long frames wait in the router, and for how many of them there must be room.
#pragma once

#include <cstddef>

#include "config/config.hpp"
#include "contract/reader.hpp"

namespace evenhand::router {

/// The most frames that one look at a port may bring, which is also the size of the largest memif ring.
constexpr std::size_t largest_ring = 16384;
/// The load that the delays have room for if the configuration gives neither a load nor elements.
constexpr double usual_delayed_load_fps = 100e3;

/// The most frames that wait for their departure.
struct Room {
    std::size_t of_port = 0;   // that arrived on one port
    std::size_t in_total = 0;  // that arrived on all ports
};

/// Throws Fault{bad_request}.
void read_delays(contract::ObjectReader& r, RouterConfig& config);

/// Room for full queues, for frames in the delays, for frames that wait for the end of a stall, and for what one look
/// at the ports brings.
[[nodiscard]] Room room_of(const RouterConfig& config);

}  // namespace evenhand::router
