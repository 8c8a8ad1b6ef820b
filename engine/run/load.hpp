// SPDX-License-Identifier: Apache-2.0
// Station 3: the load that a trial asks for: how many frames, when each is due, the highest rate. The load is even, in
// bursts, or changes once.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "pace/schedule.hpp"
#include "run/request.hpp"
#include "units.hpp"

namespace evenhand::run {

namespace load_detail {

inline std::uint64_t rounded(double frames) { return static_cast<std::uint64_t>(std::llround(frames)); }
/// Rounds up, but ignores what multiplying has added: 16.1 s at 1000 fps are 16100.000000000002 frames. The error is
/// less than 1 in 10^12, but for a day at 148.8 Mfps, 10^13 frames, at most a hundredth of a frame and not thirteen
/// frames is ignored.
inline std::uint64_t up(double frames) {
    constexpr double noise = 1e-12;
    constexpr double most_noise = 0.05;  // frames
    return frames <= 0 ? 0 : static_cast<std::uint64_t>(std::ceil(frames - std::min(frames * noise, most_noise)));
}

}  // namespace load_detail

/// The request as it is for one direction, with the rates of that direction. Numbers of frames, and when they are due,
/// are always those of such a request.
[[nodiscard]] inline TrialRequest of_direction(const TrialRequest& request, plan::Direction direction) {
    TrialRequest own{request};
    const double part = request.rate_parts[direction];
    own.rate_fps *= part;
    if (own.then) own.then->rate_fps *= part, own.then->before_fps *= part;
    own.rate_parts = {1, 1};
    return own;
}

/// The requests of both directions.
[[nodiscard]] inline plan::PerDirection<TrialRequest> by_direction(const TrialRequest& request) {
    return {of_direction(request, plan::Direction::forward), of_direction(request, plan::Direction::reverse)};
}

/// The length of the sending phase, in seconds.
[[nodiscard]] inline double sending_s(const TrialRequest& request) {
    return request.duration_s + (request.then ? request.then->duration_s : 0);
}

/// The highest rate of one direction at any time.
[[nodiscard]] inline double peak_fps(const TrialRequest& request) {
    const double peak = request.then ? std::max(request.rate_fps, request.then->rate_fps) : request.rate_fps;
    double most = 0;
    for (const auto direction : request.directions) most = std::max(most, request.rate_parts[direction]);
    return most * peak;
}

/// The number of bursts that begin and end within the duration, at least one.
[[nodiscard]] inline std::uint64_t bursts_of(const TrialRequest& request) {
    constexpr double rounding = 1e-9;  // three intervals may be a little more than the duration, because of rounding
    const double bursts = request.duration_s / request.burst->interval_s;
    return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(bursts * (1 + rounding)));
}

/// The number of frames of the load before it changes; 0 if it does not change.
[[nodiscard]] inline std::uint64_t first_frames_of(const TrialRequest& request) {
    return request.burst ? bursts_of(request) * request.burst->frames
                         : load_detail::rounded(request.rate_fps * request.duration_s);
}

/// The number of frames of one direction.
[[nodiscard]] inline std::uint64_t frames_of(const TrialRequest& request) {
    return first_frames_of(request) +
           (request.then ? load_detail::rounded(request.then->rate_fps * request.then->duration_s) : 0);
}

/// The mean load over the whole sending phase, which the offered load is compared with.
[[nodiscard]] inline double mean_fps(const TrialRequest& request) {
    return request.burst || request.then ? static_cast<double>(frames_of(request)) / sending_s(request)
                                         : request.rate_fps;
}

/// When frame k is due, in seconds since the beginning of the sending phase.
[[nodiscard]] inline double due_s(const TrialRequest& request, std::uint64_t k) {
    if (const auto& burst = request.burst) {
        const std::uint64_t number = k / burst->frames;
        const std::uint64_t within = k % burst->frames;
        return static_cast<double>(number) * burst->interval_s + static_cast<double>(within) / request.rate_fps;
    }
    const auto first = first_frames_of(request);
    if (k < first || !request.then) return static_cast<double>(k) / request.rate_fps;
    return static_cast<double>(first) / request.rate_fps + static_cast<double>(k - first) / request.then->rate_fps;
}

/// How many frames are due before that time of the sending phase, at most all frames.
[[nodiscard]] inline std::uint64_t frames_before(const TrialRequest& request, double seconds) {
    using load_detail::up;
    const auto all = frames_of(request);
    if (const auto& burst = request.burst) {
        const double begun = std::floor(seconds / burst->interval_s);
        const auto of_last = std::min(burst->frames, up((seconds - begun * burst->interval_s) * request.rate_fps));
        return std::min(all, static_cast<std::uint64_t>(begun) * burst->frames + of_last);
    }
    const auto first = first_frames_of(request);
    const auto before = std::min(first, up(seconds * request.rate_fps));
    if (before < first || !request.then) return before;
    return std::min(all,
                    first + up((seconds - static_cast<double>(first) / request.rate_fps) * request.then->rate_fps));
}

/// Into how many finer slices each slice of the delays is divided in a trial that is judged by its clean time. A finer
/// slice is a millisecond long, or longer if there would be too many of them or hardly a frame in each.
[[nodiscard]] inline std::size_t finer_slices(const TrialRequest& request) {
    constexpr double finest_s = 1e-3;
    constexpr double fewest_frames = 8;
    constexpr double most = 1310;  // 65,500 slices in all
    const double slice_s = std::max(finest_s, fewest_frames / request.rate_fps);
    const double wanted = sending_s(request) / slice_s / static_cast<double>(tally::SliceDelays::slices);
    return static_cast<std::size_t>(std::clamp(std::floor(wanted), 1.0, most));
}

/// The first frame whose delay counts: the first one that is due at `delays.from_s` or later.
[[nodiscard]] inline std::uint64_t first_delay_frame(const TrialRequest& request) {
    return request.delays ? frames_before(request, request.delays->from_s) : 0;
}

/// How many frames are due in the first `tenths` tenths of a second.
[[nodiscard]] inline std::uint64_t frames_in_tenths(const TrialRequest& request, std::uint64_t tenths) {
    constexpr double tenth_s = 0.1;
    return frames_before(request, static_cast<double>(tenths) * tenth_s);
}

/// How long ago a settled frame was due: by then it has arrived, or is lost.
[[nodiscard]] inline double settles_after_s(const TrialRequest& request) {
    constexpr double margin_s =
        0.01;  // for the difference between CPUs' clocks, and for the time from the port to the map
    return request.waits.residual_s + request.limits.longest_overdue_us / us_per_second + margin_s;
}

/// The same in ticks.
[[nodiscard]] inline pace::Ticks settles_after(const TrialRequest& request, double ticks_per_second) {
    return static_cast<pace::Ticks>(settles_after_s(request) * ticks_per_second);
}

[[nodiscard]] inline pace::Schedule schedule_of(const TrialRequest& request, pace::Ticks start,
                                                double ticks_per_second) {
    if (request.burst)
        return pace::Schedule::bursts(start, ticks_per_second, request.rate_fps, request.burst->frames,
                                      request.burst->interval_s);
    if (request.then)
        return pace::Schedule::two_loads(start, ticks_per_second, request.rate_fps, first_frames_of(request),
                                         request.then->rate_fps);
    return pace::EvenSchedule{start, ticks_per_second, request.rate_fps};
}

}  // namespace evenhand::run
