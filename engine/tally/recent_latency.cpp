// SPDX-License-Identifier: Apache-2.0
#include "tally/recent_latency.hpp"

#include <algorithm>

namespace evenhand::tally {

void RecentLatency::begin(std::uint64_t greatest) {
    const auto needed = std::min(LatencyHistogram::buckets, LatencyHistogram::buckets_up_to(2 * greatest));
    now_.assign(std::max(needed, before_.size()), 0);
    before_.resize(now_.size(), 0);
}

std::optional<RecentLatency::Percentiles> RecentLatency::end() noexcept {
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < now_.size(); ++i) {
        before_[i] = now_[i] - before_[i];
        count += before_[i];
    }
    std::optional<Percentiles> found;
    if (count != 0) {
        const std::uint64_t median_rank = (count + 1) / 2;
        const std::uint64_t p999_rank = count - count / 1000;
        std::uint64_t below = 0;
        std::size_t i = 0;
        const auto value_at = [&](std::uint64_t rank) {
            while (below + before_[i] < rank) below += before_[i++];
            return LatencyHistogram::greatest_of(i);
        };
        const auto median = value_at(median_rank);
        found = {.median = median, .p999 = value_at(p999_rank)};
    }
    before_.swap(now_);
    return found;
}

}  // namespace evenhand::tally
