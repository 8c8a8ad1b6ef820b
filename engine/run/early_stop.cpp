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

EarlyStop::EarlyStop(const TrialRequest& request, const TrialRecords& records, pace::Ticks start,
                     double ticks_per_second)
    : request_{request},
      records_{records},
      start_{start},
      ticks_per_second_{ticks_per_second},
      had_left_{HadLeft{settles_after(request, ticks_per_second)}, HadLeft{settles_after(request, ticks_per_second)}} {
    std::uint64_t frames = 0;
    for (const auto direction : request.directions)
        frames += frames_[direction] = frames_of(of_direction(request, direction));
    allowed_ = request.failed_beyond.value_or(request.limits.loss_ratio) * static_cast<double>(frames);
}

double EarlyStop::passed_s(pace::Ticks now) const noexcept {
    return static_cast<double>(static_cast<std::int64_t>(now - start_)) / ticks_per_second_;
}

std::uint64_t EarlyStop::lost(pace::Ticks now, const SentUntil& sent) noexcept {
    SentUntil had_left{};
    for (const auto direction : plan::both_directions)
        had_left[direction] = had_left_[direction].note(now, sent[direction]);
    const double settled_s = passed_s(now) - settles_after_s(request_);
    if (settled_s <= 0) return 0;
    std::uint64_t lost = 0;
    for (const auto direction : request_.directions) {
        const double rate_fps = request_.rate_fps * request_.rate_parts[direction];
        const auto settled_of_all = static_cast<std::uint64_t>(settled_s * rate_fps);
        const auto due_of_all = std::min(frames_[direction], static_cast<std::uint64_t>(passed_s(now) * rate_fps));
        const auto& record = records_[direction];
        auto& lost_here = lost_[direction];
        const auto due = record.share.count(due_of_all);
        const auto settled = std::min(record.share.count(settled_of_all), had_left[direction]);
        lost_here.catch_up(record.map);
        if (settled > lost_here.looked_at()) {
            const auto missing = record.map.missing(lost_here.looked_at(), settled);
            // Frames that nothing has overtaken yet are looked at again later.
            if (missing == 0 || has_come_since(record.map, settled, due)) lost_here.add(settled, missing);
        }
        lost += lost_here.missing();
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
    // Piece by piece: the first piece nearly always has a frame, and the newest words are those in which receivers
    // write.
    constexpr std::uint64_t piece = 65'536;
    for (; first < due; first += std::min(piece, due - first)) {
        const auto end = first + std::min(piece, due - first);
        if (map.missing(first, end) < end - first) return true;
    }
    return false;
}

}  // namespace evenhand::run
