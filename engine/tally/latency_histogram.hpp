// SPDX-License-Identifier: Apache-2.0
// Station 6, tally: latencies in buckets whose width is below 0.1 percent of their value.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "wide.hpp"

namespace evenhand::tally {

/// Counts values of up to 48 bits (ticks). Exact below 1,024, then 1,024 buckets for each power of two: at most 0.1
/// percent wide (R8219-12). Recording never allocates. Minimum, maximum and sum are exact. One thread writes; others
/// read after it has stopped, or what the buckets have counted so far.
class LatencyHistogram {
    static constexpr unsigned precision_bits = 10;
    static constexpr std::uint64_t per_octave = std::uint64_t{1} << precision_bits;
    static constexpr unsigned value_bits = 48;

   public:
    static constexpr std::size_t buckets = (value_bits - precision_bits + 1) * per_octave;

    void record(std::uint64_t value) noexcept {
        put(value);
        ++count_;
        sum_ += value;
        if (value < min_) min_ = value;
        if (value > max_) max_ = value;
    }

    /// record() in two steps: each value into its bucket, then minimum, maximum and sum for several values at once.
    void put(std::uint64_t value, std::uint64_t count = 1) noexcept {
        std::uint64_t& bucket = counts_[index_of(value)];
        __atomic_store_n(&bucket, bucket + count, __ATOMIC_RELAXED);
    }
    void add(std::uint64_t count, Wide sum, std::uint64_t min, std::uint64_t max) noexcept {
        count_ += count;
        sum_ += sum;
        if (min < min_) min_ = min;
        if (max > max_) max_ = max;
    }

    void add(const LatencyHistogram& other) noexcept;

    [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
    [[nodiscard]] std::uint64_t min() const noexcept { return min_; }
    [[nodiscard]] std::uint64_t max() const noexcept { return max_; }
    [[nodiscard]] double sum() const noexcept { return static_cast<double>(sum_); }
    [[nodiscard]] double mean() const noexcept { return static_cast<double>(sum_) / static_cast<double>(count_); }

    /// The smallest recorded x with F(x) >= numerator / denominator (R8219-15), to the width of a bucket: the bucket's
    /// upper bound, but not above the maximum. Nothing if nothing was recorded.
    [[nodiscard]] std::optional<std::uint64_t> percentile(std::uint64_t numerator,
                                                          std::uint64_t denominator) const noexcept;

    /// Bounds of the nth smallest value, 1 <= n <= count(), to the width of a bucket: not below it, and not above it.
    [[nodiscard]] std::uint64_t upper_bound_of(std::uint64_t n) const noexcept;
    [[nodiscard]] std::uint64_t lower_bound_of(std::uint64_t n) const noexcept;

    /// For another thread while values are recorded: adds to `counts` what each bucket has counted so far.
    void add_so_far_to(std::span<std::uint64_t> counts) const noexcept {
        for (std::size_t i = 0; i < counts.size(); ++i) counts[i] += __atomic_load_n(&counts_[i], __ATOMIC_RELAXED);
    }
    /// How many of the first buckets hold all values up to this one.
    [[nodiscard]] static std::size_t buckets_up_to(std::uint64_t value) noexcept { return index_of(value) + 1; }
    /// The greatest value of this bucket.
    [[nodiscard]] static std::uint64_t greatest_of(std::size_t bucket) noexcept { return lower_bound(bucket + 1) - 1; }

    /// Calls visit(lower bound, count) for each bucket that is not empty, in rising order.
    template <class Visit>
    void for_each_bucket(Visit visit) const {
        for (std::size_t i = 0; i < counts_.size(); ++i) {
            if (counts_[i] != 0) visit(lower_bound(i), counts_[i]);
        }
    }

    /// The same with the upper bound: visit(lowest, highest, count). The outermost buckets are narrowed to the smallest
    /// and the greatest value that were recorded.
    template <class Visit>
    void for_each_range(Visit visit) const {
        for (std::size_t i = 0; i < counts_.size(); ++i) {
            if (counts_[i] != 0)
                visit(lower_bound(i) > min_ ? lower_bound(i) : min_,
                      lower_bound(i + 1) - 1 < max_ ? lower_bound(i + 1) - 1 : max_, counts_[i]);
        }
    }

    /// The same for groups of buckets. A group is one value, or at most 0.8 percent wide: precise enough for a picture,
    /// and an eighth of the text.
    template <class Visit>
    void for_each_group(Visit visit) const {
        for (std::size_t i = 0; i < counts_.size();) {
            const std::size_t first = i;
            std::uint64_t count = 0;
            // Below per_octave a bucket is one value: a group of eight values near 128 would be 6 percent wide.
            for (const std::size_t end = i + (i < per_octave ? 1 : together); i < end && i < counts_.size(); ++i)
                count += counts_[i];
            if (count != 0) visit(lower_bound(first), count);
        }
    }

   private:
    static constexpr std::uint64_t together = 8;
    static_assert(per_octave % together == 0);  // no group reaches into the next power of two

    /// The index of the bucket that has the nth smallest value.
    [[nodiscard]] std::size_t bucket_of(std::uint64_t n) const noexcept;
    [[nodiscard]] static std::size_t index_of(std::uint64_t value) noexcept {
        if (value < per_octave) return value;
        const auto octave = static_cast<unsigned>(std::bit_width(value)) - 1 - precision_bits;  // 0 for 1,024..2,047
        return per_octave * (octave + 1) + ((value >> octave) - per_octave);
    }
    [[nodiscard]] static std::uint64_t lower_bound(std::size_t index) noexcept {
        if (index < per_octave) return index;
        const auto octave = static_cast<unsigned>(index / per_octave) - 1;
        return (per_octave + index % per_octave) << octave;
    }

    std::array<std::uint64_t, buckets> counts_{};
    std::uint64_t count_ = 0;
    Wide sum_ = 0;  // 10^13 frames of a long trial, times milliseconds, do not fit into 64 bits
    std::uint64_t min_ = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t max_ = 0;
};

}  // namespace evenhand::tally
