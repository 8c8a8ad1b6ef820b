// SPDX-License-Identifier: Apache-2.0
#include "run/early_stop.hpp"

#include <cmath>

#include "run/load.hpp"

namespace evenhand::run {
namespace {

constexpr double notice_s = 0.05;  // a worker looks for news every few hundred turns, and its CPU may be away for some milliseconds

}  // namespace

EarlyStop::EarlyStop(const TrialRequest& request, const std::array<tally::SequenceMap, 2>& maps, pace::Ticks start, double ticks_per_second) noexcept
    : request_{request},
      maps_{maps},
      start_{start},
      ticks_per_second_{ticks_per_second},
      allowed_{request.limits.loss_ratio * static_cast<double>(frames_of(request)) * static_cast<double>(request.directions.size())} {}

std::optional<std::uint64_t> EarlyStop::look(pace::Ticks now) noexcept {
    if (static_cast<std::int64_t>(now - start_) < 0) return std::nullopt;
    const double passed_s = static_cast<double>(now - start_) / ticks_per_second_;
    const double settled_s = passed_s - settles_after_s(request_);
    if (settled_s <= 0) return std::nullopt;
    const auto settled = static_cast<std::uint64_t>(settled_s * request_.rate_fps);
    for (const auto direction : request_.directions) lost_ += maps_[static_cast<std::size_t>(direction)].missing(looked_at_, settled);
    looked_at_ = settled;
    if (static_cast<double>(lost_) <= allowed_) return std::nullopt;
    const auto frames = static_cast<std::uint64_t>(std::llround(request_.rate_fps * (passed_s + notice_s)));
    return frames < frames_of(request_) ? std::optional{frames} : std::nullopt;
}

}  // namespace evenhand::run
