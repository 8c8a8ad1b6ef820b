// SPDX-License-Identifier: Apache-2.0
#include "tally/delays.hpp"

namespace evenhand::tally {

void VariationHistogram::add(const VariationHistogram& other) noexcept {
    below_.add(other.below_);
    from_zero_.add(other.from_zero_);
}

}  // namespace evenhand::tally
