// SPDX-License-Identifier: Apache-2.0
// Station 3: the highest rate that a request may ask for.
#pragma once

#include <cmath>
#include <cstddef>
#include <optional>

#include "frame/traffic.hpp"
#include "pace/schedule.hpp"
#include "tally/result.hpp"

namespace evenhand::run {

struct RateLimit {
    double fps = 0;           // of one direction
    bool is_of_line = false;  // false: the limit is that of the clock
};

/// What the line can carry, if its rate is known, and what the schedule can resolve with this clock: a counter of 25
/// MHz (Arm) counts more slowly than 100 Gbit/s transport frames of 64 octets. `octets`: with FCS, of `frames` frames
/// together, since the mean of a mix of sizes may not be an integer.
[[nodiscard]] inline RateLimit rate_limit(std::optional<double> line_rate_bps, std::size_t octets,
                                          double ticks_per_second, std::size_t frames = 1) noexcept {
    constexpr std::size_t overhead_octets = 20;  // preamble and least gap (R2544-16)
    constexpr std::size_t bits_per_octet = 8;
    const double of_clock = std::floor(ticks_per_second * pace::EvenSchedule::most_frames_per_tick);
    if (!line_rate_bps) return {.fps = of_clock, .is_of_line = false};
    const double of_line =
        static_cast<double>(std::floor(static_cast<long double>(*line_rate_bps) * static_cast<long double>(frames) /
                                       static_cast<long double>(bits_per_octet * (octets + frames * overhead_octets))));
    return of_line <= of_clock ? RateLimit{.fps = of_line, .is_of_line = true}
                               : RateLimit{.fps = of_clock, .is_of_line = false};
}

/// The rates of both lines of a direction; nothing where a rate is not known.
struct LineRates {
    std::optional<double> sending_bps;
    std::optional<double> receiving_bps;
};

/// The lower of the limits of both lines: each carries the frames as they are on that line. With `may_overload`, a
/// receiving line that is slower than the sending one is no limit: what it cannot carry is lost (line_overload()).
[[nodiscard]] inline RateLimit rate_limit(const LineRates& lines, const frame::OctetsOnLinks& octets,
                                          double ticks_per_second, bool may_overload) noexcept {
    const auto sending = rate_limit(lines.sending_bps, octets.sent, ticks_per_second, octets.frames);
    if (may_overload && lines.sending_bps && lines.receiving_bps && *lines.receiving_bps < *lines.sending_bps)
        return sending;
    const auto receiving = rate_limit(lines.receiving_bps, octets.arriving, ticks_per_second, octets.frames);
    return receiving.fps < sending.fps ? receiving : sending;
}

/// What frames at this rate need of the receiving line, if it carries less.
[[nodiscard]] inline std::optional<tally::LineOverload> line_overload(const LineRates& lines,
                                                                      const frame::OctetsOnLinks& octets,
                                                                      double rate_fps) noexcept {
    constexpr double overhead_octets = 20;  // as in rate_limit()
    constexpr double bits_per_octet = 8;
    constexpr double rounding = 1 + 1e-9;
    const auto frames = static_cast<double>(octets.frames);
    const double needed_bps =
        rate_fps * bits_per_octet * (static_cast<double>(octets.arriving) / frames + overhead_octets);
    if (!lines.receiving_bps || needed_bps <= *lines.receiving_bps * rounding) return std::nullopt;
    return tally::LineOverload{.needed_bps = needed_bps, .line_bps = *lines.receiving_bps};
}

}  // namespace evenhand::run
