// SPDX-License-Identifier: Apache-2.0
#include "tally/delay_buckets.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace evenhand::tally {

void DelayBuckets::sort() {
    std::ranges::sort(buckets_, {}, [](const DelayBucket& b) { return std::pair{b.highest, b.lowest}; });
    is_sorted_ = true;
}

std::int64_t DelayBuckets::min() const noexcept { return std::ranges::min(buckets_, {}, &DelayBucket::lowest).lowest; }

std::int64_t DelayBuckets::max() const noexcept {
    return std::ranges::max(buckets_, {}, &DelayBucket::highest).highest;
}

std::optional<DelayBucket> DelayBuckets::nth(std::uint64_t n) const noexcept {
    assert(is_sorted_);
    std::uint64_t below = 0;
    for (const auto& bucket : buckets_) {
        below += bucket.count;
        if (below >= n) return bucket;
    }
    return std::nullopt;
}

std::optional<DelayBucket> DelayBuckets::percentile(std::uint64_t numerator, std::uint64_t denominator,
                                                    std::uint64_t frames) const noexcept {
    return nth(std::max<std::uint64_t>(1, (frames * numerator + denominator - 1) / denominator));
}

}  // namespace evenhand::tally
