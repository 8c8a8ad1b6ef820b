// SPDX-License-Identifier: Apache-2.0
// Stations 2 and 5: the time in a frame's tag, and the full tick counter that it was taken from.
#pragma once

#include <cstdint>

#include "pace/clock.hpp"

namespace evenhand::frame {

/// The low 48 bits of the sender's tick counter. The receiver calculates with the full counter only: seen_at() restores
/// it once, and from there on times are compared as 64-bit times, however long the trial has lasted.
class FrameTime {
   public:
    static constexpr unsigned bits = 48;
    /// How much older or newer a frame may be than the moment at which it is looked at: 13 hours at 3 GHz, 7.8 hours at
    /// 5 GHz. This limits the time that a frame is on its way, not the length of a trial, which is not limited here.
    static constexpr pace::Ticks horizon = pace::Ticks{1} << (bits - 1);

    explicit constexpr FrameTime(std::uint64_t of_tag) noexcept : low_{of_tag} {}

    /// The full counter when the frame was built, if it is looked at `now`. A time beyond the horizon is mistaken for
    /// another one within it.
    [[nodiscard]] constexpr pace::Ticks seen_at(pace::Ticks now) const noexcept {
        constexpr unsigned above = 64 - bits;
        return now + static_cast<pace::Ticks>(static_cast<std::int64_t>((low_ - now) << above) >> above);
    }

   private:
    std::uint64_t low_;
};

}  // namespace evenhand::frame
