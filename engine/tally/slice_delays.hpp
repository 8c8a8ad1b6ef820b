// SPDX-License-Identifier: Apache-2.0
// Station 6, tally: delays over the course of a trial. A queue that fills makes them grow steadily from slice to slice.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "pace/clock.hpp"

namespace evenhand::tally {

/// The frames of a direction in equal parts by their number, which is by the time at which they are due where the load
/// is even.
class SliceDelays {
   public:
    static constexpr std::size_t slices = 50;

    struct Slice {
        std::uint64_t frames = 0;
        pace::Ticks sum = 0;
        pace::Ticks min = std::numeric_limits<pace::Ticks>::max();
        pace::Ticks max = 0;

        void add(const Slice& other) noexcept {
            frames += other.frames;
            sum += other.sum;
            min = std::min(min, other.min);
            max = std::max(max, other.max);
        }
    };

    /// Of a trial that may send so many frames in this direction; at least one.
    void begin(std::uint64_t frames) noexcept {
        inverse_ = frames == 0 ? 0 : std::numeric_limits<std::uint64_t>::max() / frames + 1;
        frames_ = frames;
    }

    /// Frame `sequence` has come after `delay`.
    void note(std::uint64_t sequence, pace::Ticks delay) noexcept {
        slices_[place_of(sequence)].add({.frames = 1, .sum = delay, .min = delay, .max = delay});
    }

    /// Frames of one slice, which are those of the numbers from `first` on, `count` of them.
    struct Place {
        Slice* slice = nullptr;
        std::uint64_t first = 0;
        std::uint64_t count = 0;
    };
    /// That of this frame.
    [[nodiscard, gnu::noinline]] Place find(std::uint64_t sequence) noexcept {
        const std::size_t place = place_of(sequence);
        const std::uint64_t first = first_of(place);
        const std::uint64_t end = place + 1 == slices ? std::numeric_limits<std::uint64_t>::max() : first_of(place + 1);
        return {.slice = &slices_[place], .first = first, .count = end - first};
    }

    /// To slice `i`.
    void add(std::size_t i, const Slice& delays) noexcept { slices_[i].add(delays); }

    void add(const SliceDelays& other) noexcept {
        for (std::size_t i = 0; i < slices; ++i) slices_[i].add(other.slices_[i]);
    }

    [[nodiscard]] const std::array<Slice, slices>& all() const noexcept { return slices_; }

   private:
    [[nodiscard]] std::size_t place_of(std::uint64_t sequence) const noexcept {
        __extension__ using Wide = unsigned __int128;
        const auto place = static_cast<std::size_t>(static_cast<Wide>(sequence * slices) * inverse_ >> 64U);
        return std::min(place, slices - 1);
    }
    /// The lowest number in this slice, or above it where it has none: as place_of() has it, whose rounding may differ
    /// by a frame from that of a division.
    [[nodiscard]] std::uint64_t first_of(std::size_t place) const noexcept {
        __extension__ using Wide = unsigned __int128;
        auto first = static_cast<std::uint64_t>(static_cast<Wide>(frames_) * place / slices);
        while (first > 0 && place_of(first - 1) >= place) --first;
        while (first < frames_ && place_of(first) < place) ++first;
        return first;
    }

    std::array<Slice, slices> slices_{};
    std::uint64_t frames_ = 0;
    std::uint64_t inverse_ = 0;  // 2^64 / frames, rounded up
};

}  // namespace evenhand::tally
