// SPDX-License-Identifier: Apache-2.0
// Proof: how likely a statistic is if the draws are uniform and independent. Pure functions of numbers.
#pragma once

#include <cstdint>

namespace evenhand::proof {

/// Regularized upper incomplete gamma function Q(a, x) for a > 0, x >= 0, to about ten significant digits up to a =
/// 10^6; 0 where the true value is below the range of a double.
[[nodiscard]] double upper_gamma(double a, double x);

/// The probability that chi-square with that many degrees of freedom (at least 1) is `chi_square` or more.
[[nodiscard]] double chi_square_tail(double chi_square, std::uint64_t degrees_of_freedom);

/// The probability that a Poisson variable with this mean is `count` or more.
[[nodiscard]] double poisson_tail(std::uint64_t count, double mean);

/// The probability that a standard normal variable is at least as far from 0 as `z`, on either side.
[[nodiscard]] double normal_tails(double z);

}  // namespace evenhand::proof
