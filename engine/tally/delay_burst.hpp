// SPDX-License-Identifier: Apache-2.0
// Station 6, tally: the delays of a burst. Its frames are nearly always in one slice, so that sums over them are kept
// in registers and added to the slice once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "pace/clock.hpp"
#include "tally/burst_runs.hpp"
#include "tally/latency_histogram.hpp"
#include "tally/slice_delays.hpp"

namespace evenhand::tally {

/// Lives while one burst is counted; its destructor adds what was counted to slices and histogram.
class DelayBurst {
   public:
    /// `place`: the slice that the previous burst ended in; empty for the first burst of a trial.
    DelayBurst(SliceDelays* slices, LatencyHistogram* histogram, SliceDelays::Place& place) noexcept
        : slices_{slices}, histogram_{histogram}, kept_{&place}, place_{place} {}
    DelayBurst(const DelayBurst&) = delete;
    DelayBurst& operator=(const DelayBurst&) = delete;
    [[gnu::always_inline]] ~DelayBurst() { tell(); }

    /// Frame `sequence` has arrived after `delay`.
    [[gnu::always_inline]] void note(std::uint64_t sequence, pace::Ticks delay) noexcept {
        if (sequence - place_.first >= place_.count) [[unlikely]]
            move_to(sequence);
        ++frames_;
        min_ = std::min(min_, delay);
        sum_ += delay;
        max_ = std::max(max_, delay);
        histogram_->put(delay);
    }

    /// Whether both frames, and so all between them, are in the current slice; changes to the slice of the first if
    /// they are not.
    [[nodiscard, gnu::always_inline]] bool is_one_slice(std::uint64_t first, std::uint64_t last) noexcept {
        if (first - place_.first >= place_.count) [[unlikely]]
            move_to(first);
        return last - place_.first < place_.count;
    }

    /// `count` frames of the current slice have arrived. All frames of a run have the delay `delay_of(place)` of its
    /// first frame.
    template <class DelayOf>
    [[gnu::always_inline]] void note_runs(const BurstRuns& runs, unsigned count, DelayOf delay_of) noexcept {
        // Local variables, since the compiler must assume that others see this object.
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
