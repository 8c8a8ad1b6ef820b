// SPDX-License-Identifier: Apache-2.0
// Station 5: how much may wait in a receive ring that nobody polled for a while, and how much of it the ring cannot
// have held.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "pace/clock.hpp"
#include "run/receiver_expectation.hpp"
#include "tally/gap_shares.hpp"
#include "tally/tally.hpp"

namespace evenhand::run {

constexpr unsigned receive_burst = 64;
constexpr unsigned more_may_wait = 32;  // some drivers hand over so many at the most, however many are asked for
constexpr unsigned most_trimmed = 3;    // virtio hands over so many fewer, to end with a cache line of descriptors

/// Of one queue during one trial.
class RingBacklog {
   public:
    RingBacklog() = default;
    explicit RingBacklog(Ticks now) noexcept : last_poll_{now} {}

    /// Keeps an upper bound of what waits in the ring: what may have come since the last poll, less what this one took;
    /// nothing after polls that emptied it. What the ring cannot have held may have been lost in it. Counted as time at
    /// the intended load; where there are other queues, for several shares of it at once.
    ///
    /// A poll that brought fewer than a group need not have emptied the ring: virtio holds back some, and mlx5 ends a
    /// burst where its ring does, once in a round. But one of two in a row did, so what waits then has come since the
    /// first. Where no more than half a burst can have waited, there is nothing worth remembering.
    void note_poll(Ticks now, unsigned n, const Expectation& expected, tally::ReceiverTally& tally) noexcept {
        const Ticks last = last_poll_;
        last_poll_ = now;
        Ticks gap = now - last;
        if (is_after(now, expected.residual_end)) {
            // Nothing that counts can come any more. What had come before and was not taken in time is late by our
            // fault, not by the device's.
            if (!is_after(last, expected.residual_end)) {
                gap = expected.residual_end - last;
                is_catching_up_ = true;
            } else {
                is_catching_up_ = is_catching_up_ && left_some_;
                gap = 0;
            }
        }
        const bool is_short = n != 0 && !is_whole_group(n);
        const bool was_empty = is_short && was_short_;  // after this poll or after the last
        const Ticks waits = was_empty ? gap : backlog_[0] + gap;
        left_some_ = n != 0 && (!is_short || waits > expected.burst_lasts / 2);
        was_short_ = is_short && left_some_;
        if (gap > tally.max_poll_gap) tally.max_poll_gap = gap;
        const Ticks ring_lasts = expected.ring_lasts;
        if (!left_some_ && backlog_[0] + gap <= ring_lasts) {  // then it is no more for any smaller share
            if (backlog_[0] != 0) backlog_.fill(0);
            return;
        }
        const Ticks taken = n * expected.burst_lasts / receive_burst;
        const std::size_t shares = expected.is_one_of_many ? backlog_.size() : 1;
        for (std::size_t i = 0; i < shares; ++i) {
            Ticks& backlog = backlog_[i];
            const Ticks comes = i == 0 ? gap : share_of(gap, tally::gap_shares[i]);
            backlog += comes;
            if (backlog > ring_lasts) {
                if (i == 0 && expected.lapses != nullptr) expected.lapses->note(now - backlog, now);
                tally.gap_excess[i] += backlog - ring_lasts;
                backlog = ring_lasts;
            }
            if (was_empty) backlog = std::min(backlog, comes);
            backlog = left_some_ && backlog > taken ? backlog - taken : 0;
        }
    }

    /// Whether what comes now had come before the end of the residual wait, and was not taken in time.
    [[nodiscard]] bool is_catching_up() const noexcept { return is_catching_up_; }

   private:
    /// Whether a poll that brought `n` frames, but for some at the end, brought a whole group: drivers hand over
    /// receive_burst or more_may_wait at the most.
    [[nodiscard]] static bool is_whole_group(unsigned n) noexcept {
        return n > receive_burst - most_trimmed - 1 || (n <= more_may_wait && n >= more_may_wait - most_trimmed);
    }

    /// No product of a long gap overflows.
    [[nodiscard]] static Ticks share_of(Ticks gap, std::uint32_t share) noexcept {
        constexpr Ticks long_gap = Ticks{1} << 47U;
        return gap < long_gap ? gap * share >> tally::gap_share_bits : (gap >> tally::gap_share_bits) * share;
    }

    Ticks last_poll_ = 0;
    std::array<Ticks, tally::gap_shares.size()>
        backlog_{};                // upper bound of what waits in the ring, by the share that comes to it
    bool was_short_ = false;       // the last poll brought no whole group, though more may have waited
    bool left_some_ = false;       // the last poll may have
    bool is_catching_up_ = false;  // with what came before the end of the residual wait
};

}  // namespace evenhand::run
