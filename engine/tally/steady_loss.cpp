// SPDX-License-Identifier: Apache-2.0
#include "tally/steady_loss.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace evenhand::tally {
namespace {

/// Long enough for several frames of an overload of half a percent at 40,000 frames per second, short enough to fit
/// between lapses of a busy host.
constexpr double shortest_window_s = 0.02;
constexpr double most_windows = 1 << 18;
/// Windows of a stretch, and those of them in which too much must be lost.
constexpr std::size_t stretch_windows = 50;
constexpr std::size_t lossy_windows = 45;

}  // namespace

SteadyLoss::SteadyLoss(double seconds, double loss_ratio)
    : window_s_{std::max(shortest_window_s, seconds / most_windows)},
      loss_ratio_{loss_ratio},
      frames_(static_cast<std::size_t>(seconds / window_s_)),
      lost_frames_(frames_.size()) {}

void SteadyLoss::note(std::size_t window, std::uint64_t frames, std::uint64_t lost_frames) noexcept {
    frames_[window] += static_cast<std::uint32_t>(frames);
    lost_frames_[window] += static_cast<std::uint32_t>(lost_frames);
}

bool SteadyLoss::is_found(std::span<const LeftOut> without, double until_s) const noexcept {
    std::array<std::uint8_t, stretch_windows> lossy{};  // the last windows that count, the oldest is overwritten
    std::size_t counted = 0;
    std::size_t lossy_ones = 0;  // of `lossy`
    const auto known = std::min(frames_.size(), static_cast<std::size_t>(std::max(0.0, until_s) / window_s_));
    auto part = without.begin();
    for (std::size_t window = 0; window < known; ++window) {
        const double from_s = static_cast<double>(window) * window_s_;
        while (part != without.end() && part->until_s <= from_s) ++part;
        if (part != without.end() && part->from_s < from_s + window_s_) continue;
        auto& oldest = lossy.at(counted++ % stretch_windows);
        lossy_ones -= oldest;
        oldest = static_cast<std::uint8_t>(static_cast<double>(lost_frames_[window]) >
                                           loss_ratio_ * static_cast<double>(frames_[window]));
        lossy_ones += oldest;
        if (counted >= stretch_windows && lossy_ones >= lossy_windows) return true;
    }
    return false;
}

}  // namespace evenhand::tally
