// SPDX-License-Identifier: Apache-2.0
#include "tally/latency_histogram.hpp"

#include <algorithm>

namespace evenhand::tally {

void LatencyHistogram::add(const LatencyHistogram& other) noexcept {
    for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
    count_ += other.count_;
    sum_ += other.sum_;
    min_ = std::min(min_, other.min_);
    max_ = std::max(max_, other.max_);
}

std::optional<std::uint64_t> LatencyHistogram::percentile(std::uint64_t numerator,
                                                          std::uint64_t denominator) const noexcept {
    if (count_ == 0) return std::nullopt;
    // ceil(p * n) in integers; counts stay below 2^48, so the product fits for denominators up to 2^16.
    const std::uint64_t rank = std::max<std::uint64_t>(1, (count_ * numerator + denominator - 1) / denominator);
    return upper_bound_of(rank);
}

std::size_t LatencyHistogram::bucket_of(std::uint64_t n) const noexcept {
    std::uint64_t below = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
        below += counts_[i];
        if (below >= n) return i;
    }
    return counts_.size() - 1;
}

std::uint64_t LatencyHistogram::upper_bound_of(std::uint64_t n) const noexcept {
    const auto i = bucket_of(n);
    return i + 1 == counts_.size() ? max_ : std::clamp(lower_bound(i + 1) - 1, min_, max_);
}

std::uint64_t LatencyHistogram::lower_bound_of(std::uint64_t n) const noexcept {
    return std::clamp(lower_bound(bucket_of(n)), min_, max_);
}

}  // namespace evenhand::tally
