// SPDX-License-Identifier: Apache-2.0
// Station 3, pace: says when frame k is due; knows time, not frames and not ports.
#pragma once

#include <cmath>
#include <cstdint>

#include "pace/clock.hpp"

namespace evenhand::pace {

/// Even spacing. Frame k is due at start + k * period, always computed from k, so rounding cannot add up over a trial: the
/// period has 64 binary places, which is below one tick over 10^19 frames. Copyable, allocates nothing.
class EvenSchedule {
   public:
    EvenSchedule() = default;

    /// So many frames may be due in one tick: a sender's burst.
    static constexpr unsigned most_frames_per_tick = 32;

    /// `rate_fps` > 0, at most most_frames_per_tick * ticks_per_second.
    EvenSchedule(Ticks start, double ticks_per_second, double rate_fps) noexcept
        : start_{start}, period_{to_fixed(static_cast<long double>(ticks_per_second) / static_cast<long double>(rate_fps))}, rate_{~Fixed{0} / period_} {}

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
            static_cast<std::uint64_t>((static_cast<Fixed>(passed) * static_cast<std::uint64_t>(rate_)) >> 64U) + passed * static_cast<std::uint64_t>(rate_ >> 64U) + 1;
        // The rate is rounded down and the tick that has begun is left out, so this is right or too few: by the frames of a tick and one more.
        while (static_cast<std::int64_t>(now - due(count)) >= 0) ++count;
        return count;
    }

    /// The schedule of the frames first, first + stride, first + 2 * stride, ... of this one: its due(i) is due(first + i * stride),
    /// to the tick. So the streams of a direction are together as evenly spaced as a single one, whatever the rate and their number.
    [[nodiscard]] EvenSchedule stream(std::uint64_t first, std::uint64_t stride) const noexcept {
        EvenSchedule part;
        part.start_ = due(first);
        part.start_fraction_ = static_cast<std::uint64_t>(static_cast<Fixed>(first) * static_cast<std::uint64_t>(period_) + start_fraction_);
        part.period_ = period_ * stride;
        part.rate_ = rate_ / stride;
        return part;
    }

   private:
    __extension__ using Fixed = unsigned __int128;  // 64 places before, 64 after the point

    [[nodiscard]] static Fixed to_fixed(long double value) noexcept {
        const long double whole = std::floor(value);
        return (static_cast<Fixed>(static_cast<std::uint64_t>(whole)) << 64U) + static_cast<Fixed>(std::ldexp(value - whole, 64));
    }

    Ticks start_ = 0;
    std::uint64_t start_fraction_ = 0;  // 64 places after the point: a stream may begin between two ticks
    Fixed period_ = 0;                  // ticks per frame
    Fixed rate_ = 0;                    // frames per tick
};

}  // namespace evenhand::pace
