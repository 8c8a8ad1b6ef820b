// SPDX-License-Identifier: Apache-2.0
#include "tally/queue_filling.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

namespace evenhand::tally {
namespace {

constexpr std::size_t fewest_slices = 8;
constexpr double least_slope = 0.002;  // a fifth of a percent beyond capacity
constexpr double least_growth_s = 50e-6;
constexpr double least_t =
    7;  // mean of the steps in standard errors: a queue that is only deep, not filling, does not get there
constexpr double odd_spreads =
    5;  // a step further than that from the median is a stall or another route, and is cut to it
constexpr double mad_to_sigma = 1.4826;
constexpr double same_slope = 0.01;  // within this, the smallest and the greatest delays show the same queue

double median_of(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::ranges::nth_element(values, middle);
    return *middle;
}

/// By how much delays grow from slice to slice, if they grow steadily.
std::optional<double> steady_step(std::span<const double> delays_s, double slice_s) {
    std::vector<double> steps;
    steps.reserve(delays_s.size());
    for (std::size_t i = 1; i < delays_s.size(); ++i) steps.push_back(delays_s[i] - delays_s[i - 1]);
    const double middle = median_of(steps);
    if (middle <= 0) return {};
    std::vector<double> distances;
    distances.reserve(steps.size());
    for (const double step : steps) distances.push_back(std::abs(step - middle));
    const double reach = odd_spreads * std::max(mad_to_sigma * median_of(distances), middle / 10);
    double sum = 0;
    for (double& step : steps) sum += step = std::clamp(step, middle - reach, middle + reach);
    const auto n = static_cast<double>(steps.size());
    const double mean = sum / n;
    double squares = 0;
    for (const double step : steps) squares += (step - mean) * (step - mean);
    const double error = std::sqrt(squares / (n - 1) / n);
    if (mean < least_slope * slice_s || mean * n < least_growth_s || mean < least_t * error) return {};
    return mean;
}

}  // namespace

std::optional<QueueFilling> find_queue_filling(const SliceDelays& delays, double slice_s, double load_fps,
                                               std::uint64_t frames, std::optional<std::uint64_t> first_lost,
                                               double ticks_per_second) {
    if (frames == 0 || slice_s <= 0) return {};
    const auto whole = first_lost ? static_cast<std::size_t>(static_cast<double>(*first_lost) /
                                                             static_cast<double>(frames) * SliceDelays::slices)
                                  : SliceDelays::slices;
    std::vector<double> least;
    std::vector<double> greatest;
    for (const auto& slice : std::span{delays.all()}.first(std::min(whole, SliceDelays::slices))) {
        if (slice.frames == 0) break;
        least.push_back(static_cast<double>(slice.min) / ticks_per_second);
        greatest.push_back(static_cast<double>(slice.max) / ticks_per_second);
    }
    if (least.size() < fewest_slices) return {};
    // Behind a hash one queue may fill while another is empty: then only the greatest delays grow. The smallest delays
    // are not affected by lapses.
    const auto of_all = steady_step(least, slice_s);
    const auto of_one = steady_step(greatest, slice_s);
    if (!of_all && !of_one) return {};
    double slope = of_all.value_or(0) / slice_s;
    if (of_one && (!of_all || *of_one / slice_s > slope + same_slope)) slope = *of_one / slice_s;
    return QueueFilling{.slope = slope, .sustainable_fps = load_fps / (1 + slope)};
}

}  // namespace evenhand::tally
