// SPDX-License-Identifier: Apache-2.0
// Station 5: frames whose delay is the tester's doing, since they or those before them left late.
#pragma once

#include <cstdint>

#include "frame/reader.hpp"
#include "pace/clock.hpp"
#include "run/receiver_expectation.hpp"

namespace evenhand::run {

/// What one receiver has seen of them in one trial.
class OverdueFrames {
   public:
    /// Whether a frame left overdue, or soon after one that did: what was late came to the DUT as a burst, and the DUT
    /// is given as long again as the lateness was to work it off. Its stamp is right all the same, but its delay is the
    /// tester's doing.
    [[nodiscard]] bool is_touched(frame::TagNumbers tag, const Expectation& expected) noexcept {
        const auto ticks_until = [](Ticks from, Ticks to) {  // by their low 48 bits
            constexpr unsigned unused_bits = 16;
            return static_cast<std::int64_t>((to - from) << unused_bits) >> unused_bits;
        };
        const auto lateness = ticks_until(expected.schedule.due(tag.sequence), tag.time_ticks);
        if (lateness > static_cast<std::int64_t>(expected.overdue_after)) {
            const Ticks until = tag.time_ticks + static_cast<Ticks>(lateness);
            if (!has_touched_ || ticks_until(touched_until_, until) > 0) touched_until_ = until;
            has_touched_ = true;
            return true;
        }
        return has_touched_ && ticks_until(tag.time_ticks, touched_until_) > 0;
    }

   private:
    bool has_touched_ = false;  // a frame of this trial came that had left overdue
    Ticks touched_until_ = 0;   // what left before this came to the DUT behind such frames
};

}  // namespace evenhand::run
