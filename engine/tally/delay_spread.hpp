// SPDX-License-Identifier: Apache-2.0
// Station 6, tally: delays as distances from a base delay, so that a small variation is known with small errors (RFC
// 8219 section 7.3.1).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "tally/delays.hpp"

namespace evenhand::tally {

/// Delays of the frames that one receiver got. LatencyHistogram knows a delay to 0.1 percent of its value: 10 us of 10
/// ms, which would hide a variation of 1 us. Here a delay is known to 0.1 percent of its distance from the base, the
/// smallest of the first delays. So the 99.9th percentile less the minimum is known to 0.1 percent of the larger of
/// that difference and the distance between minimum and base. Recording never allocates.
class DelaySpread {
   public:
    void record(std::uint64_t delay) noexcept {
        if (is_settled_) [[likely]] {
            put(delay);
        } else {
            first_[held_++] = delay;
            if (held_ == first_.size()) settle();
        }
    }

    /// To be called after the last frame.
    void settle() noexcept {
        if (is_settled_ || held_ == 0) return;
        base_ = *std::ranges::min_element(std::span{first_}.first(held_));
        is_settled_ = true;
        for (std::size_t i = 0; i < held_; ++i) put(first_[i]);
    }

    [[nodiscard]] std::uint64_t count() const noexcept { return distances_.count(); }

    /// After settle(): calls visit(lowest, highest, count) for each bucket that is not empty; both are delays, in
    /// ticks.
    template <class Visit>
    void for_each_bucket(Visit visit) const {
        distances_.for_each_bucket([&](std::int64_t lowest, std::int64_t highest, std::uint64_t count) {
            visit(base_ + static_cast<std::uint64_t>(lowest), base_ + static_cast<std::uint64_t>(highest), count);
        });
    }

   private:
    static constexpr std::size_t held_first = 64;  // enough that one of them is not an outlier: at most one frame in a
                                                   // thousand is above the 99.9th percentile

    void put(std::uint64_t delay) noexcept { distances_.record(static_cast<std::int64_t>(delay - base_)); }

    std::array<std::uint64_t, held_first> first_{};
    std::size_t held_ = 0;
    bool is_settled_ = false;
    std::uint64_t base_ = 0;
    VariationHistogram distances_;
};

}  // namespace evenhand::tally
