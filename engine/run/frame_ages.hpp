// SPDX-License-Identifier: Apache-2.0
// Station 5: whether a frame can have been sent in this trial, according to the time in its tag.
#pragma once

#include <algorithm>
#include <cstdint>

#include "frame/frame_time.hpp"
#include "run/receiver_expectation.hpp"
#include "tally/tally.hpp"

namespace evenhand::run {

/// When a frame that is looked at `now` was built, according to its tag.
[[nodiscard]] inline Ticks sent_at(Ticks now, std::uint64_t time_ticks) noexcept {
    return frame::FrameTime{time_ticks}.seen_at(now);
}

/// Ticks from building to receiving. The counters of two CPUs may differ by some ticks; a negative difference counts as
/// 0.
[[nodiscard]] inline Ticks latency(Ticks now, std::uint64_t time_ticks) noexcept {
    const auto passed = static_cast<std::int64_t>(now - sent_at(now, time_ticks));
    return passed < 0 ? 0 : static_cast<Ticks>(passed);
}

/// The send times that a frame of this trial can have, as full counters (frame::FrameTime). A frame that was sent
/// before the trial, or later than now, belongs to another run or is not ours, so that its number means nothing.
struct FrameAges {
    Ticks latest;  // the latest time at which a frame can have been sent
    Ticks most;    // how much earlier it can have been sent

    /// For frames that are looked at `now`; the counters of two CPUs differ by at most `clock_skew`.
    [[nodiscard]] static FrameAges at(Ticks now, Ticks start, Ticks clock_skew) noexcept {
        const Ticks since_start = is_after(now, start) ? now - start : 0;
        return {.latest = now + clock_skew, .most = since_start + 2 * clock_skew};
    }

    [[nodiscard]] bool is_of_another_time(Ticks sent) const noexcept { return latest - sent > most; }
};

/// Notes how wrong the time of a frame is: the counters of two CPUs may differ by more than is allowed for.
inline void note_wrong_time(tally::ReceiverTally& tally, Ticks now, Ticks start, Ticks sent) noexcept {
    ++tally.wrong_time_frames;
    if (is_after(sent, now)) {
        tally.max_ahead = std::max(tally.max_ahead, sent - now);
    } else if (is_after(start, sent)) {
        tally.max_before_start = std::max(tally.max_before_start, start - sent);
    }
}

}  // namespace evenhand::run
