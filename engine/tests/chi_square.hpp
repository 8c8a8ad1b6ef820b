// SPDX-License-Identifier: Apache-2.0
// Whether counts are as even as chance makes them.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

namespace evenhand::tests {

/// Chi-square of `counts` against an even spread, as a normal deviate (Wilson and Hilferty): beyond 5 is one in three
/// million.
inline double deviate(const std::vector<std::uint64_t>& counts, std::uint64_t draws) {
    const double expected = static_cast<double>(draws) / static_cast<double>(counts.size());
    double chi_square = 0;
    for (const auto count : counts)
        chi_square += (static_cast<double>(count) - expected) * (static_cast<double>(count) - expected) / expected;
    const double freedom = static_cast<double>(counts.size() - 1);
    return (std::cbrt(chi_square / freedom) - (1 - 2 / (9 * freedom))) / std::sqrt(2 / (9 * freedom));
}

inline bool is_even(const std::vector<std::uint64_t>& counts, std::uint64_t draws) {
    return std::abs(deviate(counts, draws)) < 5;
}

}  // namespace evenhand::tests
