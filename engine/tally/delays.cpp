// SPDX-License-Identifier: Apache-2.0
#include "tally/delays.hpp"

#include <algorithm>

namespace evenhand::tally {

void VariationHistogram::add(const VariationHistogram& other) noexcept {
    below_.add(other.below_);
    from_zero_.add(other.from_zero_);
}

std::optional<std::int64_t> VariationHistogram::percentile(std::uint64_t numerator,
                                                           std::uint64_t denominator) const noexcept {
    if (count() == 0) return std::nullopt;
    const std::uint64_t rank = std::max<std::uint64_t>(1, (count() * numerator + denominator - 1) / denominator);
    // The nth from below is the nth from above among the magnitudes.
    if (rank <= below_.count()) return -static_cast<std::int64_t>(below_.lower_bound_of(below_.count() + 1 - rank));
    return static_cast<std::int64_t>(from_zero_.upper_bound_of(rank - below_.count()));
}

}  // namespace evenhand::tally
