// SPDX-License-Identifier: Apache-2.0
// Station 5: frames whose delay was affected by the tester, since they or frames before them left late.
#pragma once

#include <algorithm>
#include <cstdint>

#include "pace/clock.hpp"
#include "run/receiver_expectation.hpp"
#include "wide.hpp"

namespace evenhand::run {

/// What one receiver has seen of such frames in one trial. All times are full counters.
class OverdueFrames {
   public:
    /// Whether frame `sequence`, which left at `sent`, was overdue, or left soon after an overdue frame. Late frames
    /// come to the DUT as a burst, and the DUT is given as much time as they were late to work it off. The frame's
    /// stamp is right, but its delay was affected by the tester.
    [[nodiscard]] bool is_touched(std::uint64_t sequence, Ticks sent, const Expectation& expected) noexcept {
        const auto behind = static_cast<std::int64_t>(sent - expected.schedule.due(sequence));
        const std::int64_t lateness = behind - slip(behind, sent, expected);
        if (lateness > static_cast<std::int64_t>(expected.overdue_after)) {
            const Ticks until = sent + static_cast<Ticks>(lateness);
            if (!has_touched_ || is_after(until, touched_until_)) touched_until_ = until;
            has_touched_ = true;
            return true;
        }
        return has_touched_ && is_after(touched_until_, sent);
    }

   private:
    /// How late the port has made the frames that left at `sent`. It may be slower than the schedule by `port_lag`, as
    /// for the sender (Punctuality), which is seconds after some hours. The estimate is the least lateness that was
    /// seen, which may rise no faster than that. A stall of the tester is thus not included, nor, if frames are rare, a
    /// lateness that counts as overdue.
    [[nodiscard]] std::int64_t slip(std::int64_t behind, Ticks sent, const Expectation& expected) noexcept {
        if (!has_seen_) slipped_at_ = expected.start;
        has_seen_ = true;
        const Ticks passed = is_after(sent, slipped_at_) ? sent - slipped_at_ : 0;
        const auto lag = static_cast<Ticks>(Wide{passed} * expected.port_lag >> 32U);
        const std::int64_t most = slip_ + static_cast<std::int64_t>(std::min(lag, expected.overdue_after));
        if (behind > most) return most;
        slip_ = std::max<std::int64_t>(behind, 0);
        slipped_at_ = sent;
        return slip_;
    }

    bool has_touched_ = false;  // a frame of this trial arrived that had left overdue
    Ticks touched_until_ = 0;   // frames that left before this time came to the DUT behind such frames
    bool has_seen_ = false;     // a frame of this trial
    std::int64_t slip_ = 0;     // at slipped_at_
    Ticks slipped_at_ = 0;
};

}  // namespace evenhand::run
