// SPDX-License-Identifier: Apache-2.0
#include "tally/delay_spread.hpp"

#include <vector>

namespace evenhand::tally {

std::optional<RankedDelay> nth_delay(std::span<const DelaySpread> spreads, std::uint64_t n) {
    struct Bucket {
        std::uint64_t lowest, highest, count;
    };
    std::vector<Bucket> buckets;
    for (const auto& spread : spreads) {
        spread.for_each_bucket([&](std::uint64_t lowest, std::uint64_t highest, std::uint64_t count) {
            buckets.push_back({lowest, highest, count});
        });
    }
    std::ranges::sort(buckets, {}, &Bucket::highest);
    std::uint64_t below = 0;
    for (const auto& bucket : buckets) {
        below += bucket.count;
        if (below >= n) return RankedDelay{.delay = bucket.highest, .width = bucket.highest - bucket.lowest};
    }
    return std::nullopt;
}

}  // namespace evenhand::tally
