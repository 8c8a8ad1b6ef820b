// SPDX-License-Identifier: Apache-2.0
// Station 6, tally, used while frames are received: percentiles of the latencies of the last moments, for progress
// reports.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tally/latency_histogram.hpp"

namespace evenhand::tally {

/// Remembers what the histograms of a direction had counted at the last reading, so that the next one knows what came
/// since. Used by one thread; receivers record meanwhile, and notice nothing of it.
class RecentLatency {
   public:
    struct Percentiles {
        std::uint64_t median = 0;
        std::uint64_t p999 = 0;
    };

    /// Begins a reading. `greatest`: about the greatest value that was recorded so far; what is more than twice as
    /// large is only seen by a later reading.
    void begin(std::uint64_t greatest);
    /// Adds a histogram of the direction, each in every reading.
    void add(const LatencyHistogram& histogram) noexcept { histogram.add_so_far_to(now_); }
    /// Ends it: of the values that were recorded since the last one, to the width of a bucket. Nothing if there were
    /// none.
    [[nodiscard]] std::optional<Percentiles> end() noexcept;

   private:
    std::vector<std::uint64_t> now_;  // by bucket; both only as long as values go
    std::vector<std::uint64_t> before_;
};

}  // namespace evenhand::tally
