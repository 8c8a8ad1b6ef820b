// SPDX-License-Identifier: Apache-2.0
// Station 3, pace: says when frame k is due. It knows time, but neither frames nor ports.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "pace/clock.hpp"

namespace evenhand::pace {

/// Even spacing. Frame k is due at start + k * period, always computed from k, so that rounding errors do not add up
/// over a trial: the period has 64 binary places, which is below one tick over 10^19 frames. Copyable; allocates
/// nothing.
class EvenSchedule {
   public:
    EvenSchedule() = default;

    /// How many frames may be due in one tick: a sender's burst.
    static constexpr unsigned most_frames_per_tick = 32;

    /// `rate_fps` > 0, at most most_frames_per_tick * ticks_per_second.
    EvenSchedule(Ticks start, double ticks_per_second, double rate_fps) noexcept
        : start_{start},
          period_{to_fixed(static_cast<long double>(ticks_per_second) / static_cast<long double>(rate_fps))},
          rate_{~Fixed{0} / period_} {}

    [[nodiscard]] Ticks start() const noexcept { return start_; }

    [[nodiscard]] Ticks due(std::uint64_t k) const noexcept {
        const Fixed low = static_cast<Fixed>(k) * static_cast<std::uint64_t>(period_) + start_fraction_;
        return start_ + k * static_cast<std::uint64_t>(period_ >> 64U) + static_cast<Ticks>(low >> 64U);
    }

    /// How many of the frames 0, 1, 2, ... have due() <= `now`; 0 before the start.
    [[nodiscard]] std::uint64_t due_count(Ticks now) const noexcept {
        if (static_cast<std::int64_t>(now - start_) < 0) return 0;
        const Ticks passed = now - start_;
        std::uint64_t count =
            static_cast<std::uint64_t>((static_cast<Fixed>(passed) * static_cast<std::uint64_t>(rate_)) >> 64U) +
            passed * static_cast<std::uint64_t>(rate_ >> 64U) + 1;
        // The rate is rounded down and the current tick is left out, so the count is right or too small: by at most the
        // frames of one tick and one more.
        while (static_cast<std::int64_t>(now - due(count)) >= 0) ++count;
        return count;
    }

    /// The schedule of the frames first, first + stride, first + 2 * stride, ... of this one: its due(i) is due(first +
    /// i * stride), to the tick. So the streams of a direction together are spaced as evenly as a single one, whatever
    /// the rate and their number.
    [[nodiscard]] EvenSchedule stream(std::uint64_t first, std::uint64_t stride) const noexcept {
        EvenSchedule part;
        part.start_ = due(first);
        part.start_fraction_ = static_cast<std::uint64_t>(
            static_cast<Fixed>(first) * static_cast<std::uint64_t>(period_) + start_fraction_);
        part.period_ = period_ * stride;
        part.rate_ = rate_ / stride;
        return part;
    }

   private:
    __extension__ using Fixed = unsigned __int128;  // 64 places before, 64 after the point

    [[nodiscard]] static Fixed to_fixed(long double value) noexcept {
        const long double whole = std::floor(value);
        return (static_cast<Fixed>(static_cast<std::uint64_t>(whole)) << 64U) +
               static_cast<Fixed>(std::ldexp(value - whole, 64));
    }

    Ticks start_ = 0;
    std::uint64_t start_fraction_ = 0;  // 64 places after the point: a stream may begin between two ticks
    Fixed period_ = 0;                  // ticks per frame
    Fixed rate_ = 0;                    // frames per tick
};

/// When the frames of a trial are due: evenly, in bursts, or at one load and then at another. One class for all of
/// them, so that there is one sender loop; the even case takes one comparison more than EvenSchedule alone. Copyable;
/// allocates nothing.
class Schedule {
   public:
    Schedule() = default;
    /// All frames evenly spaced.
    Schedule(const EvenSchedule& even) noexcept
        : first_{even} {}  // NOLINT(google-explicit-constructor): an even schedule is one

    /// Bursts of `frames` at `rate_fps`, each `interval_s` after the one before: frame i is due at (i / frames) *
    /// interval + (i % frames) / rate. `frames` > 0; the interval is not shorter than a burst.
    [[nodiscard]] static Schedule bursts(Ticks start, double ticks_per_second, double rate_fps, std::uint64_t frames,
                                         double interval_s) noexcept {
        Schedule schedule{EvenSchedule{start, ticks_per_second, rate_fps}};
        schedule.even_until_ = frames;
        schedule.burst_frames_ = frames;
        schedule.later_ = EvenSchedule{start, ticks_per_second, 1 / interval_s};
        schedule.gap_ = EvenSchedule{0, ticks_per_second, rate_fps};
        return schedule;
    }

    /// The first `frames` at `rate_fps`, all others at `then_fps`. The first of the others is due when the next one at
    /// `rate_fps` would have been.
    [[nodiscard]] static Schedule two_loads(Ticks start, double ticks_per_second, double rate_fps, std::uint64_t frames,
                                            double then_fps) noexcept {
        Schedule schedule{EvenSchedule{start, ticks_per_second, rate_fps}};
        schedule.even_until_ = frames;
        schedule.later_ = EvenSchedule{schedule.first_.due(frames), ticks_per_second, then_fps};
        return schedule;
    }

    [[nodiscard]] Ticks due(std::uint64_t k) const noexcept {
        if (is_even()) [[likely]]
            return first_.due(k);
        return due_of_whole(stream_ + k * streams_);
    }

    /// How many of the frames 0, 1, 2, ... have due() <= `now`; 0 before the start.
    [[nodiscard]] std::uint64_t due_count(Ticks now) const noexcept {
        if (is_even()) [[likely]]
            return first_.due_count(now);
        const std::uint64_t whole = due_count_of_whole(now);
        return whole > stream_ ? (whole - stream_ - 1) / streams_ + 1 : 0;
    }

    /// As EvenSchedule::stream(): its due(i) is due(first + i * stride). Only for a whole schedule, not for another
    /// stream.
    [[nodiscard]] Schedule stream(std::uint64_t first, std::uint64_t stride) const noexcept {
        if (is_even()) return first_.stream(first, stride);
        Schedule part = *this;
        part.stream_ = first;
        part.streams_ = stride;
        return part;
    }

   private:
    static constexpr std::uint64_t always = std::numeric_limits<std::uint64_t>::max();

    [[nodiscard]] bool is_even() const noexcept { return even_until_ == always; }

    [[nodiscard]] Ticks due_of_whole(std::uint64_t k) const noexcept {
        if (k < even_until_) return first_.due(k);
        if (burst_frames_ == 0) return later_.due(k - even_until_);
        return later_.due(k / burst_frames_) + gap_.due(k % burst_frames_);
    }

    [[nodiscard]] std::uint64_t due_count_of_whole(Ticks now) const noexcept {
        if (burst_frames_ == 0) return std::min(first_.due_count(now), even_until_) + later_.due_count(now);
        const std::uint64_t begun = later_.due_count(now);
        if (begun == 0) return 0;
        return (begun - 1) * burst_frames_ + std::min(gap_.due_count(now - later_.due(begun - 1)), burst_frames_);
    }

    EvenSchedule first_;                 // all frames of an even schedule; otherwise the first burst, or the first load
    std::uint64_t even_until_ = always;  // up to this frame of the whole schedule, first_ applies
    std::uint64_t burst_frames_ = 0;     // 0: no bursts
    EvenSchedule later_;                 // when bursts begin; or the second load
    EvenSchedule gap_;                   // within a burst, from its begin
    std::uint64_t stream_ = 0;           // frames stream_, stream_ + streams_, ... of the whole
    std::uint64_t streams_ = 1;
};

}  // namespace evenhand::pace
