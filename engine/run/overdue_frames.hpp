// SPDX-License-Identifier: Apache-2.0
// Station 5: frames whose delay is the tester's doing, since they or those before them left late.
#pragma once

#include <algorithm>
#include <cstdint>

#include "pace/clock.hpp"
#include "run/receiver_expectation.hpp"
#include "wide.hpp"

namespace evenhand::run {

/// What one receiver has seen of them in one trial. All times are of the whole counter.
class OverdueFrames {
   public:
    /// Whether frame `sequence`, which left at `sent`, was overdue, or left soon after one that was: what was late came
    /// to the DUT as a burst, and the DUT is given as long again as the lateness was to work it off. Its stamp is right
    /// all the same, but its delay is the tester's doing.
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
    /// How far the port has made frames late that left at `sent`: it may be slower than the schedule by `port_lag`, as
    /// the sender has it (Punctuality), and after hours that are seconds. So it is what frames are behind at the least,
    /// which may rise by so much and no faster: a stall of the tester's is no part of it, and neither, where frames are
    /// rare, is what would be overdue.
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

    bool has_touched_ = false;  // a frame of this trial came that had left overdue
    Ticks touched_until_ = 0;   // what left before this came to the DUT behind such frames
    bool has_seen_ = false;     // a frame of this trial
    std::int64_t slip_ = 0;     // at slipped_at_
    Ticks slipped_at_ = 0;
};

}  // namespace evenhand::run
