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
    };

    /// Of a trial that may send so many frames in this direction; at least one.
    void begin(std::uint64_t frames) noexcept {
        inverse_ = frames == 0 ? 0 : std::numeric_limits<std::uint64_t>::max() / frames + 1;
    }

    /// Frame `sequence` has come after `delay`.
    void note(std::uint64_t sequence, pace::Ticks delay) noexcept {
        __extension__ using Wide = unsigned __int128;
        const auto place = static_cast<std::size_t>(static_cast<Wide>(sequence * slices) * inverse_ >> 64U);
        Slice& slice = slices_[std::min(place, slices - 1)];
        ++slice.frames;
        slice.sum += delay;
        slice.min = std::min(slice.min, delay);
        slice.max = std::max(slice.max, delay);
    }

    void add(const SliceDelays& other) noexcept {
        for (std::size_t i = 0; i < slices; ++i) {
            slices_[i].frames += other.slices_[i].frames;
            slices_[i].sum += other.slices_[i].sum;
            slices_[i].min = std::min(slices_[i].min, other.slices_[i].min);
            slices_[i].max = std::max(slices_[i].max, other.slices_[i].max);
        }
    }

    [[nodiscard]] const std::array<Slice, slices>& all() const noexcept { return slices_; }

   private:
    std::array<Slice, slices> slices_{};
    std::uint64_t inverse_ = 0;  // 2^64 / frames, rounded up
};

}  // namespace evenhand::tally
