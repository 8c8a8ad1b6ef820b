// SPDX-License-Identifier: Apache-2.0
// Station 6, tally: the delays of a burst. Its frames are nearly always of one slice, so what they have in common is
// summed in registers and told once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "pace/clock.hpp"
#include "tally/burst_runs.hpp"
#include "tally/latency_histogram.hpp"
#include "tally/slice_delays.hpp"

namespace evenhand::tally {

/// Lives while one burst is counted; what it counts is in both when it has ended.
class DelayBurst {
   public:
    /// `place`: of the slice that the burst before ended in; nothing yet, in the first of a trial.
    DelayBurst(SliceDelays* slices, LatencyHistogram* histogram, SliceDelays::Place& place) noexcept
        : slices_{slices}, histogram_{histogram}, kept_{&place}, place_{place} {}
    DelayBurst(const DelayBurst&) = delete;
    DelayBurst& operator=(const DelayBurst&) = delete;
    [[gnu::always_inline]] ~DelayBurst() { tell(); }

    /// Frame `sequence` has come after `delay`.
    [[gnu::always_inline]] void note(std::uint64_t sequence, pace::Ticks delay) noexcept {
        if (sequence - place_.first >= place_.count) [[unlikely]]
            move_to(sequence);
        ++frames_;
        min_ = std::min(min_, delay);
        sum_ += delay;
        max_ = std::max(max_, delay);
        histogram_->put(delay);
    }

    /// Whether both are of the slice in hand, and so all between them; moves on to that of the first if it is not.
    [[nodiscard, gnu::always_inline]] bool is_one_slice(std::uint64_t first, std::uint64_t last) noexcept {
        if (first - place_.first >= place_.count) [[unlikely]]
            move_to(first);
        return last - place_.first < place_.count;
    }

    /// `count` frames of the slice in hand have come: those of each of the runs after the delay that `delay_of(place)`
    /// is, of its first.
    template <class DelayOf>
    [[gnu::always_inline]] void note_runs(const BurstRuns& runs, unsigned count, DelayOf delay_of) noexcept {
        // Of its own, as this object may be where others see it.
        pace::Ticks min = min_;
        pace::Ticks sum = 0;
        pace::Ticks max = max_;
        LatencyHistogram& histogram = *histogram_;
        runs.for_each([&](unsigned from, unsigned until) __attribute__((always_inline)) {
            const pace::Ticks delay = delay_of(from);
            const std::uint64_t alike = until - from;
            min = std::min(min, delay);
            sum += alike * delay;
            max = std::max(max, delay);
            histogram.put(delay, alike);
        });
        frames_ += count;
        min_ = min;
        sum_ += sum;
        max_ = max;
    }

   private:
    [[gnu::always_inline]] void move_to(std::uint64_t sequence) noexcept {
        tell();
        *kept_ = place_ = slices_->find(sequence);
    }
    [[gnu::always_inline]] void tell() noexcept {
        if (frames_ == 0) return;
        place_.slice->add({.frames = frames_, .sum = sum_, .min = min_, .max = max_});
        histogram_->add(frames_, sum_, min_, max_);
        frames_ = sum_ = max_ = 0;
        min_ = std::numeric_limits<pace::Ticks>::max();
    }

    SliceDelays* slices_;
    LatencyHistogram* histogram_;
    SliceDelays::Place* kept_;
    SliceDelays::Place place_;
    std::uint64_t frames_ = 0;
    pace::Ticks min_ = std::numeric_limits<pace::Ticks>::max();
    pace::Ticks sum_ = 0;
    pace::Ticks max_ = 0;
};

}  // namespace evenhand::tally
