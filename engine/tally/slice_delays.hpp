// SPDX-License-Identifier: Apache-2.0
// Station 6, tally: delays over the course of a trial. If a queue fills, they grow steadily from slice to slice.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "pace/clock.hpp"
#include "wide.hpp"

namespace evenhand::tally {

/// The frames of a direction divided into equal slices by their number, which is by the time at which they are due if
/// the load is even.
///
/// One thread notes delays; another one may meanwhile read the number of frames and the greatest delay of a slice.
class SliceDelays {
   public:
    /// How many slices a result has. A trial may have finer ones: several for each of these.
    static constexpr std::size_t slices = 50;

    struct Slice {
        std::uint64_t frames = 0;
        Wide sum = 0;
        pace::Ticks min = std::numeric_limits<pace::Ticks>::max();
        pace::Ticks max = 0;

        void add(const Slice& other) noexcept {
            __atomic_store_n(&max, std::max(max, other.max), __ATOMIC_RELAXED);
            __atomic_store_n(&frames, frames + other.frames, __ATOMIC_RELAXED);
            sum += other.sum;
            min = std::min(min, other.min);
        }
        /// For reading by another thread.
        [[nodiscard]] std::uint64_t frames_so_far() const noexcept {
            return __atomic_load_n(&frames, __ATOMIC_RELAXED);
        }
        [[nodiscard]] pace::Ticks max_so_far() const noexcept { return __atomic_load_n(&max, __ATOMIC_RELAXED); }
    };

    SliceDelays() : SliceDelays{1} {}
    /// `finer`: how many slices there are for each one of a result.
    explicit SliceDelays(std::size_t finer) : slices_(slices * finer) {}

    /// For a trial that may send up to `frames` frames in this direction; at least one.
    void begin(std::uint64_t frames) noexcept {
        inverse_ = frames == 0 ? 0 : std::numeric_limits<std::uint64_t>::max() / frames + 1;
        frames_ = frames;
    }

    /// Frame `sequence` has arrived after `delay`.
    void note(std::uint64_t sequence, pace::Ticks delay) noexcept {
        slices_[place_of(sequence)].add({.frames = 1, .sum = delay, .min = delay, .max = delay});
    }

    /// One slice: the frames with the `count` numbers from `first` on.
    struct Place {
        Slice* slice = nullptr;
        std::uint64_t first = 0;
        std::uint64_t count = 0;
    };
    /// The slice of this frame.
    [[nodiscard, gnu::noinline]] Place find(std::uint64_t sequence) noexcept {
        const std::size_t place = place_of(sequence);
        const std::uint64_t first = first_of(place);
        const std::uint64_t end =
            place + 1 == slices_.size() ? std::numeric_limits<std::uint64_t>::max() : first_of(place + 1);
        return {.slice = &slices_[place], .first = first, .count = end - first};
    }

    /// Adds the delays to slice `i`.
    void add(std::size_t i, const Slice& delays) noexcept { slices_[i].add(delays); }

    /// Adds the delays of `other` to the slices, which are as fine or coarser.
    void add(const SliceDelays& other) noexcept {
        const std::size_t finer = other.slices_.size() / slices_.size();
        assert(finer >= 1);
        for (std::size_t i = 0; i < other.slices_.size(); ++i) slices_[i / finer].add(other.slices_[i]);
    }

    [[nodiscard]] std::span<const Slice> all() const noexcept { return slices_; }

   private:
    [[nodiscard]] std::size_t place_of(std::uint64_t sequence) const noexcept {
        const auto place = static_cast<std::size_t>(static_cast<Wide>(sequence * slices_.size()) * inverse_ >> 64U);
        return std::min(place, slices_.size() - 1);
    }
    /// The lowest number in this slice, or the next one above it if the slice has no number. Consistent with
    /// place_of(), whose rounding may differ by one frame from that of a division.
    [[nodiscard]] std::uint64_t first_of(std::size_t place) const noexcept {
        auto first = static_cast<std::uint64_t>(static_cast<Wide>(frames_) * place / slices_.size());
        while (first > 0 && place_of(first - 1) >= place) --first;
        while (first < frames_ && place_of(first) < place) ++first;
        return first;
    }

    std::vector<Slice> slices_;
    std::uint64_t frames_ = 0;
    std::uint64_t inverse_ = 0;  // 2^64 / frames, rounded up
};

}  // namespace evenhand::tally
