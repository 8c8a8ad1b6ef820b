// SPDX-License-Identifier: Apache-2.0
// Station 6, tally: what a receiver counts of one flow, and its delays.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

#include "frame/layout.hpp"
#include "wide.hpp"

namespace evenhand::tally {

/// Delays of one flow: as LatencyHistogram, but coarser, so that those of 64 flows stay in a CPU's cache. Buckets are
/// single values below 64, and above it at most 1.6 percent wide.
class FlowDelays {
   public:
    static constexpr unsigned precision_bits = 6;
    static constexpr std::uint64_t per_octave = std::uint64_t{1} << precision_bits;
    static constexpr unsigned value_bits = 48;
    static constexpr std::size_t buckets = (value_bits - precision_bits + 1) * per_octave;

    void record(std::uint64_t value) noexcept {
        ++counts_[index_of(value)];
        ++count_;
        sum_ += value;
        min_ = std::min(min_, value);
        max_ = std::max(max_, value);
    }
    /// As if that many values with this sum, minimum and maximum had been recorded; put() says where they lie.
    void add(std::uint64_t count, Wide sum, std::uint64_t min, std::uint64_t max) noexcept {
        count_ += count;
        sum_ += sum;
        min_ = std::min(min_, min);
        max_ = std::max(max_, max);
    }
    void put(std::uint64_t value, std::uint64_t count) noexcept { counts_[index_of(value)] += count; }
    void add(const FlowDelays& other) noexcept {
        for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
        add(other.count_, other.sum_, other.min_, other.max_);
    }

    [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
    [[nodiscard]] std::uint64_t min() const noexcept { return min_; }
    [[nodiscard]] std::uint64_t max() const noexcept { return max_; }
    [[nodiscard]] double mean() const noexcept { return static_cast<double>(sum_) / static_cast<double>(count_); }

    /// As LatencyHistogram::percentile().
    [[nodiscard]] std::optional<std::uint64_t> percentile(std::uint64_t numerator,
                                                          std::uint64_t denominator) const noexcept {
        if (count_ == 0) return std::nullopt;
        const auto rank =
            static_cast<std::uint64_t>((static_cast<Wide>(count_) * numerator + denominator - 1) / denominator);
        std::uint64_t below = 0;
        for (std::size_t i = 0; i < counts_.size(); ++i) {
            below += counts_[i];
            if (below >= std::max<std::uint64_t>(rank, 1)) return std::min(lower_bound(i + 1) - 1, max_);
        }
        return max_;
    }

    /// Calls visit(lower bound, count) for each bucket that is not empty, in rising order.
    template <class Visit>
    void for_each_bucket(Visit visit) const {
        for (std::size_t i = 0; i < counts_.size(); ++i) {
            if (counts_[i] != 0) visit(lower_bound(i), counts_[i]);
        }
    }

   private:
    [[nodiscard]] static std::size_t index_of(std::uint64_t value) noexcept {
        if (value < per_octave) return value;
        const auto octave = static_cast<unsigned>(std::bit_width(value)) - 1 - precision_bits;
        return per_octave * (octave + 1) + ((value >> octave) - per_octave);
    }
    [[nodiscard]] static std::uint64_t lower_bound(std::size_t index) noexcept {
        if (index < per_octave) return index;
        const auto octave = static_cast<unsigned>(index / per_octave) - 1;
        return (per_octave + index % per_octave) << octave;
    }

    std::uint64_t count_ = 0;
    Wide sum_ = 0;
    std::uint64_t min_ = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t max_ = 0;
    std::array<std::uint64_t, buckets> counts_{};
};

/// One flow as one receiver saw it. Its received frames are those of its class.
struct FlowTally {
    std::uint64_t duplicated_frames = 0;
    /// Below the largest number that this receiver has seen of this flow in their stream.
    std::uint64_t reordered_frames = 0;
    std::uint64_t late_frames = 0;
    std::uint64_t remarked_frames = 0;
    FlowDelays delays;
    std::array<std::uint64_t, frame::most_streams> next_in_order{};

    /// A received frame.
    void note(std::uint8_t stream, std::uint64_t sequence, std::uint64_t delay) noexcept {
        std::uint64_t& next = next_in_order[stream];
        if (sequence < next) [[unlikely]]
            ++reordered_frames;
        else
            next = sequence + 1;
        delays.record(delay);
    }

    void add(const FlowTally& other) noexcept {
        duplicated_frames += other.duplicated_frames;
        reordered_frames += other.reordered_frames;
        late_frames += other.late_frames;
        remarked_frames += other.remarked_frames;
        delays.add(other.delays);
    }
};

}  // namespace evenhand::tally
