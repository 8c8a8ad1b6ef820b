// SPDX-License-Identifier: Apache-2.0
#include "proof/probability.hpp"

#include <cmath>
#include <limits>
#include <numbers>

namespace evenhand::proof {
namespace {

constexpr double epsilon = std::numeric_limits<double>::epsilon();

/// ln(gamma(a + 1)) minus Stirling's formula for it, as a series, so that the large terms of gamma and power need not
/// be computed.
double stirling_error(double a) {
    constexpr double series_from = 16;
    if (a < series_from) return std::lgamma(a + 1) - (a + 0.5) * std::log(a) + a - 0.5 * std::log(2 * std::numbers::pi);
    const double square = a * a;
    return (1.0 / 12 - (1.0 / 360 - (1.0 / 1260 - 1.0 / 1680 / square) / square) / square) / a;
}

/// x^a e^-x / gamma(a + 1), after Loader, "Fast and accurate computation of binomial probabilities" (2000): for x near
/// a = 500,000 the plain formula would lose ten digits.
double power_term(double a, double x) {
    const double above = (x - a) / a;
    return std::exp(-a * (above - std::log1p(above)) - stirling_error(a)) / std::sqrt(2 * std::numbers::pi * a);
}

/// P(a, x) by its power series, for x below a + 1.
double lower_series(double a, double x) {
    double term = 1;
    double sum = 1;
    for (double n = a + 1; term > sum * epsilon; ++n) {
        term *= x / n;
        sum += term;
    }
    return sum * power_term(a, x);
}

/// Q(a, x) by its continued fraction (Lentz), for x from a + 1 on.
double upper_fraction(double a, double x) {
    constexpr double tiny = std::numeric_limits<double>::min() / epsilon;
    double b = x + 1 - a;
    double c = 1 / tiny;
    double d = 1 / b;
    double fraction = d;
    for (double n = 1;; ++n) {
        const double numerator = -n * (n - a);
        b += 2;
        d = numerator * d + b;
        if (std::abs(d) < tiny) d = tiny;
        c = b + numerator / c;
        if (std::abs(c) < tiny) c = tiny;
        d = 1 / d;
        fraction *= d * c;
        if (std::abs(d * c - 1) <= epsilon) return fraction * a * power_term(a, x);
    }
}

}  // namespace

double upper_gamma(double a, double x) {
    if (x <= 0) return 1;
    return x < a + 1 ? 1 - lower_series(a, x) : upper_fraction(a, x);
}

double chi_square_tail(double chi_square, std::uint64_t degrees_of_freedom) {
    return upper_gamma(static_cast<double>(degrees_of_freedom) / 2, chi_square / 2);
}

double poisson_tail(std::uint64_t count, double mean) {
    if (count == 0) return 1;
    if (mean <= 0) return 0;
    const auto a = static_cast<double>(count);
    return mean < a + 1 ? lower_series(a, mean) : 1 - upper_fraction(a, mean);
}

double normal_tails(double z) { return std::erfc(std::abs(z) / std::numbers::sqrt2); }

}  // namespace evenhand::proof
