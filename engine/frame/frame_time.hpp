// SPDX-License-Identifier: Apache-2.0
// Stations 2 and 5: when a frame was built, as its tag has it, and what the whole tick counter was then.
#pragma once

#include <cstdint>

#include "pace/clock.hpp"

namespace evenhand::frame {

/// The low 48 bits of the sender's tick counter. All that a receiver reckons with is the whole counter: seen_at() makes
/// it whole once, and from there on times are compared as times of 64 bits, however long the trial has lasted.
class FrameTime {
   public:
    static constexpr unsigned bits = 48;
    /// By so much a frame may be older or newer than the moment at which it is looked at: 13 hours at 3 GHz, 7.8 at 5.
    /// It is the time that a frame is under way, and not that of a trial, which has no end here.
    static constexpr pace::Ticks horizon = pace::Ticks{1} << (bits - 1);

    explicit constexpr FrameTime(std::uint64_t of_tag) noexcept : low_{of_tag} {}

    /// The whole counter when the frame was built, for whom looks at it `now`. Of a time beyond the horizon it is
    /// another one within it.
    [[nodiscard]] constexpr pace::Ticks seen_at(pace::Ticks now) const noexcept {
        constexpr unsigned above = 64 - bits;
        return now + static_cast<pace::Ticks>(static_cast<std::int64_t>((low_ - now) << above) >> above);
    }

   private:
    std::uint64_t low_;
};

}  // namespace evenhand::frame
