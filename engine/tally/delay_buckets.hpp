// SPDX-License-Identifier: Apache-2.0
// Station 6, tally: joins the delays, or differences of delays, of several receivers or testers, to find percentiles.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace evenhand::tally {

/// The number of values between these two, both included. The outermost buckets of a histogram are narrowed to the
/// smallest and the greatest value that were recorded.
struct DelayBucket {
    std::int64_t lowest = 0;
    std::int64_t highest = 0;
    std::uint64_t count = 0;

    bool operator==(const DelayBucket&) const = default;
};

/// Buckets of histograms that need not have the same bounds. They are joined unchanged, so that no precision is lost.
class DelayBuckets {
   public:
    void add(const DelayBucket& bucket) {
        if (bucket.count == 0) return;
        buckets_.push_back(bucket);
        count_ += bucket.count;
        is_sorted_ = false;
    }
    void add(const DelayBuckets& other) {
        for (const auto& bucket : other.buckets_) add(bucket);
    }
    /// Adds all buckets of a histogram that calls visit(lowest, highest, count).
    template <class Histogram>
    void add_all(const Histogram& histogram) {
        histogram.for_each_bucket([this](auto lowest, auto highest, std::uint64_t count) {
            add(DelayBucket{static_cast<std::int64_t>(lowest), static_cast<std::int64_t>(highest), count});
        });
    }

    /// To be called after the last add: sorts by the highest value.
    void sort();

    [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
    [[nodiscard]] std::span<const DelayBucket> all() const noexcept { return buckets_; }
    /// The smallest value; there must be at least one.
    [[nodiscard]] std::int64_t min() const noexcept;
    [[nodiscard]] std::int64_t max() const noexcept;

    /// After sort(): the bucket of the nth smallest value, n from 1; nothing if there are fewer. The value is not above
    /// the bucket's highest.
    [[nodiscard]] std::optional<DelayBucket> nth(std::uint64_t n) const noexcept;

    /// After sort(): the smallest x with F(x) >= numerator / denominator (R8219-15), where F is the distribution of
    /// `frames` values, of which those that were not added are infinite.
    [[nodiscard]] std::optional<DelayBucket> percentile(std::uint64_t numerator, std::uint64_t denominator,
                                                        std::uint64_t frames) const noexcept;

   private:
    std::vector<DelayBucket> buckets_;
    std::uint64_t count_ = 0;
    bool is_sorted_ = true;
};

}  // namespace evenhand::tally
