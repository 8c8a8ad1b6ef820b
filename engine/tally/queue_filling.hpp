// SPDX-License-Identifier: Apache-2.0
// Station 6, tally: whether a queue of the DUT was filling while an even load was sent, and which load the DUT would
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

/// Frame k of an even load R was sent at k / R, and leaves a DUT that forwards C at k / C. So delays grow by s = R / C
/// - 1 per time of sending, and C = R / (1 + s). Only frames sent before `first_lost` count, since a full queue does
/// not grow. Nothing if the growth is not steady (jitter, a stall from which the DUT recovers, a step, a queue that
/// comes and goes), or if there are too few frames to judge. `slice_s`: how long a slice is sent.
[[nodiscard]] std::optional<QueueFilling> find_queue_filling(const SliceDelays& delays, double slice_s, double load_fps,
                                                             std::uint64_t frames,
                                                             std::optional<std::uint64_t> first_lost,
                                                             double ticks_per_second);

}  // namespace evenhand::tally
