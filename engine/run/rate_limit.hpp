// SPDX-License-Identifier: Apache-2.0
// Station 3: the highest rate that may be asked for.
#pragma once

#include <cmath>
#include <cstddef>
#include <optional>

#include "pace/schedule.hpp"

namespace evenhand::run {

struct RateLimit {
    double fps = 0;           // of one direction
    bool is_of_line = false;  // else of the clock
};

/// What the line carries, if its rate is known, and what the schedule can tell apart by this clock: a counter of 25 MHz (Arm) counts slower
/// than 100 Gbit/s bring frames of 64 octets. `frame_size` with FCS.
[[nodiscard]] inline RateLimit rate_limit(std::optional<double> line_rate_bps, std::size_t frame_size, double ticks_per_second) noexcept {
    constexpr double overhead_octets = 20;  // preamble and least gap (R2544-16)
    constexpr double bits_per_octet = 8;
    const double of_clock = std::floor(ticks_per_second * pace::EvenSchedule::most_frames_per_tick);
    if (!line_rate_bps) return {.fps = of_clock, .is_of_line = false};
    const double of_line = std::floor(*line_rate_bps / (bits_per_octet * (static_cast<double>(frame_size) + overhead_octets)));
    return of_line <= of_clock ? RateLimit{.fps = of_line, .is_of_line = true} : RateLimit{.fps = of_clock, .is_of_line = false};
}

}  // namespace evenhand::run
