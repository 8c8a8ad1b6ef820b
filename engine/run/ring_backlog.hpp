// SPDX-License-Identifier: Apache-2.0
// Station 5: how many frames may be waiting in a receive ring that was not polled for a while, and for how many of them
// the ring had no room.
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
constexpr unsigned more_may_wait = 32;  // some drivers hand over at most this many, however many are asked for
constexpr unsigned most_trimmed =
    3;  // virtio hands over this many fewer, so that it ends with a cache line of descriptors

/// The backlog of one queue during one trial.
class RingBacklog {
   public:
    RingBacklog() = default;
    explicit RingBacklog(Ticks now) noexcept : last_poll_{now} {}

    /// Keeps an upper bound of what is waiting in the ring: what may have arrived since the last poll, less what this
    /// poll took; nothing after polls that emptied the ring. Frames for which the ring had no room may have been lost
    /// in it. They are counted as time at the intended load and, if there are other queues, for several shares of the
    /// load at once.
    ///
    /// A poll that brought less than a group need not have emptied the ring: virtio holds back some frames, and mlx5
    /// ends a burst at the end of its ring, once in a round. But of two such polls in a row one did empty it, so that
    /// whatever is waiting then has arrived since the first. If no more than half a burst can be waiting, it is
    /// ignored.
    void note_poll(Ticks now, unsigned n, const Expectation& expected, tally::ReceiverTally& tally) noexcept {
        const Ticks last = last_poll_;
        last_poll_ = now;
        Ticks gap = now - last;
        is_read_late_ = gap > expected.overdue_after || (is_read_late_ && left_some_);
        if (is_after(now, expected.residual_end)) {
            // Frames that arrive from now on do not count. Frames that had arrived before and were not taken in time
            // are late through the tester's fault, not the device's.
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
        if (!left_some_ && backlog_[0] + gap <= ring_lasts) {  // then it does not for a smaller share either
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

    /// Whether the frames taken now had arrived before the end of the residual wait, and were not taken in time.
    [[nodiscard]] bool is_catching_up() const noexcept { return is_catching_up_; }

    /// Whether the frames taken now may have waited in the ring for longer than a frame may leave late: their delays
    /// are the tester's.
    [[nodiscard]] bool is_read_late() const noexcept { return is_read_late_; }

   private:
    /// Whether a poll that brought `n` frames brought a whole group, but for some frames at the end: drivers hand over
    /// at most receive_burst or more_may_wait.
    [[nodiscard]] static bool is_whole_group(unsigned n) noexcept {
        return n > receive_burst - most_trimmed - 1 || (n <= more_may_wait && n >= more_may_wait - most_trimmed);
    }

    /// Written so that no product overflows, even for a long gap.
    [[nodiscard]] static Ticks share_of(Ticks gap, std::uint32_t share) noexcept {
        constexpr Ticks long_gap = Ticks{1} << 47U;
        return gap < long_gap ? gap * share >> tally::gap_share_bits : (gap >> tally::gap_share_bits) * share;
    }

    Ticks last_poll_ = 0;
    std::array<Ticks, tally::gap_shares.size()>
        backlog_{};           // upper bound of what is waiting in the ring, by the share of frames that this queue gets
    bool was_short_ = false;  // the last poll did not bring a whole group, though more may have been waiting
    bool left_some_ = false;  // the last poll may have left some frames in the ring
    bool is_read_late_ = false;    // taking frames that may have come long before
    bool is_catching_up_ = false;  // taking frames that arrived before the end of the residual wait
};

}  // namespace evenhand::run
