// SPDX-License-Identifier: Apache-2.0
#include "run/early_stop.hpp"

#include <algorithm>
#include <cmath>

#include "run/load.hpp"

namespace evenhand::run {
namespace {

constexpr double notice_s =
    0.05;  // a worker looks for news every few hundred turns, and its CPU may be away for some milliseconds

}  // namespace

EarlyStop::EarlyStop(const TrialRequest& request, const std::array<tally::SequenceMap, 2>& maps, pace::Ticks start,
                     double ticks_per_second, const std::array<frame::TesterShare, 2>& shares) noexcept
    : request_{request},
      maps_{maps},
      shares_{shares},
      start_{start},
      ticks_per_second_{ticks_per_second},
      allowed_{request.limits.loss_ratio * static_cast<double>(frames_of(request)) *
               static_cast<double>(request.directions.size())},
      had_left_{HadLeft{settles_after(request, ticks_per_second)}, HadLeft{settles_after(request, ticks_per_second)}} {}

double EarlyStop::passed_s(pace::Ticks now) const noexcept {
    return static_cast<double>(static_cast<std::int64_t>(now - start_)) / ticks_per_second_;
}

std::uint64_t EarlyStop::lost(pace::Ticks now, const SentUntil& sent) noexcept {
    std::array<std::uint64_t, 2> had_left{};
    for (std::size_t i = 0; i < had_left.size(); ++i) had_left[i] = had_left_[i].note(now, sent[i]);
    const double settled_s = passed_s(now) - settles_after_s(request_);
    if (settled_s <= 0) return 0;
    const auto settled_of_all = static_cast<std::uint64_t>(settled_s * request_.rate_fps);
    const auto due_of_all =
        std::min(frames_of(request_), static_cast<std::uint64_t>(passed_s(now) * request_.rate_fps));
    std::uint64_t lost = 0;
    for (const auto direction : request_.directions) {
        const auto i = static_cast<std::size_t>(direction);
        const auto due = shares_[i].count(due_of_all);
        const auto settled = std::min(shares_[i].count(settled_of_all), had_left[i]);
        lost_[i].catch_up(maps_[i]);
        if (settled > lost_[i].looked_at()) {
            const auto missing = maps_[i].missing(lost_[i].looked_at(), settled);
            // What was not overtaken is looked at again.
            if (missing == 0 || has_come_since(maps_[i], settled, due)) lost_[i].add(settled, missing);
        }
        lost += lost_[i].missing();
    }
    return lost;
}

std::optional<std::uint64_t> EarlyStop::look(pace::Ticks now, const SentUntil& sent) noexcept {
    if (static_cast<double>(lost(now, sent)) <= allowed_) return std::nullopt;
    return end(now, 0);
}

std::optional<std::uint64_t> EarlyStop::end(pace::Ticks now, double seconds) const noexcept {
    const double end_s = std::max(passed_s(now) + notice_s, seconds);
    const auto frames = static_cast<std::uint64_t>(std::llround(request_.rate_fps * end_s));
    return frames < frames_of(request_) ? std::optional{frames} : std::nullopt;
}

bool EarlyStop::has_come_since(const tally::SequenceMap& map, std::uint64_t first, std::uint64_t due) noexcept {
    // Piece by piece: the first one nearly always has a frame, and the newest words are those in which receivers write.
    constexpr std::uint64_t piece = 65'536;
    for (; first < due; first += std::min(piece, due - first)) {
        const auto end = first + std::min(piece, due - first);
        if (map.missing(first, end) < end - first) return true;
    }
    return false;
}

}  // namespace evenhand::run
