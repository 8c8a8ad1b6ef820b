// SPDX-License-Identifier: Apache-2.0
// Station 6, tally: whether a queue of the DUT was filling while an even load was sent, and what load the DUT would
// sustain.
#pragma once

#include <cstdint>
#include <optional>

#include "tally/slice_delays.hpp"

namespace evenhand::tally {

struct QueueFilling {
    double slope = 0;  // by how much delays grow, per time of sending
    double sustainable_fps = 0;
};

/// Frame k of an even load R leaves a DUT that forwards C at k / C, and was sent at k / R: delays grow by s = R / C - 1
/// per time of sending, so that C = R / (1 + s). Only what was sent before `first_lost` counts, as a full queue grows
/// no more. Nothing if the growth is not steady: jitter, a stall that is caught up with, a step, a queue that comes and
/// goes; or if there is too little to judge by. `slice_s`: how long a slice is sent.
[[nodiscard]] std::optional<QueueFilling> find_queue_filling(const SliceDelays& delays, double slice_s, double load_fps,
                                                             std::uint64_t frames,
                                                             std::optional<std::uint64_t> first_lost,
                                                             double ticks_per_second);

}  // namespace evenhand::tally
