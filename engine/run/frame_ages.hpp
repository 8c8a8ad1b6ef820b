// SPDX-License-Identifier: Apache-2.0
// Station 5: whether a frame can have been sent in this trial, by the time in it.
#pragma once

#include <algorithm>

#include "frame/layout.hpp"
#include "run/receiver_expectation.hpp"
#include "tally/tally.hpp"

namespace evenhand::run {

/// The send times that a frame of this trial can have. One sent before the trial, or later than now, is another run's
/// frame, or not a frame of ours at all: its number says nothing then.
struct FrameAges {
    Ticks latest;  // that a frame can have been sent
    Ticks most;    // by which it can have been sent earlier

    /// For frames that are looked at `now`; the counters of two CPUs differ by `clock_skew` at most.
    [[nodiscard]] static FrameAges at(Ticks now, Ticks start, Ticks clock_skew) noexcept {
        const Ticks since_start = is_after(now, start) ? now - start : 0;
        return {.latest = now + clock_skew, .most = since_start + 2 * clock_skew};
    }

    [[nodiscard]] bool is_of_another_time(Ticks sent) const noexcept {
        return ((latest - sent) & frame::time_mask) > most;
    }
};

/// Notes by how much the time of a frame is wrong: the counters of two CPUs may differ by more than is allowed for.
inline void note_wrong_time(tally::ReceiverTally& tally, Ticks now, Ticks start, Ticks sent) noexcept {
    ++tally.wrong_time_frames;
    const Ticks ahead = (sent - now) & frame::time_mask;
    const Ticks before_start = (start - sent) & frame::time_mask;
    if (ahead <= frame::time_mask / 2) {
        tally.max_ahead = std::max(tally.max_ahead, ahead);
    } else if (before_start <= frame::time_mask / 2) {
        tally.max_before_start = std::max(tally.max_before_start, before_start);
    }
}

}  // namespace evenhand::run
