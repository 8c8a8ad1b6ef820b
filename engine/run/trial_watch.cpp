// SPDX-License-Identifier: Apache-2.0
#include "run/trial_watch.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "pace/clock.hpp"
#include "run/load.hpp"
#include "run/sent_until.hpp"

namespace evenhand::run {
namespace {

/// Counting losses reads the map of all frames up to now, and this thread may take its CPU from a worker: the least
/// ratio of all time to the time that counting takes.
constexpr unsigned counts_share = 200;

}  // namespace

TrialWatch::TrialWatch(const Parts& trial, TrialObserver& observer)
    : trial_{trial},
      observer_{observer},
      so_far_{trial.request, trial.workers, trial.records, trial.time.start, trial.ticks_per_second},
      room_{trial.request, trial.workers, trial.records, trial.clean},
      early_{trial.request, trial.records, trial.time.start, trial.ticks_per_second} {}

void TrialWatch::count(Progress& progress) {
    const Ticks now = pace::TickClock::now();
    if (static_cast<std::int64_t>(now - trial_.time.start) >= 0) note_start();
    if (trial_.clean != nullptr) {
        trial_.clean->look(now);
        note_left_out(progress, now);
    }
    room_.make();
    so_far_.count(progress, now, trial_.result.sending_s());
    progress.failing = failing_;
}

void TrialWatch::note_left_out(Progress& progress, Ticks now) const {
    // What is reported twice a second may be read later, by somebody who looks less often.
    constexpr double told_for_s = 5;
    constexpr std::size_t most_told = 20;
    progress.sending_s = passed_s(now);
    progress.left_out.clear();
    const auto& parts = trial_.clean->left_out();
    for (auto part = parts.rbegin(); part != parts.rend() && progress.left_out.size() < most_told; ++part) {
        if (part->until_s < progress.sending_s - told_for_s) break;
        progress.left_out.push_back(*part);
    }
}

bool TrialWatch::is_sent() {
    const Ticks now = pace::TickClock::now();
    if (trial_.request.stops_when_failed && !is_end_told_) {
        if (const auto frames = early_end(now)) {
            trial_.result.stopped_early_s = static_cast<double>(*frames) / trial_.request.rate_fps;
            end_after(*frames);
        }
    }
    if (trial_.clean != nullptr && !is_end_told_) end_when_clean(now);
    return static_cast<std::int64_t>(now - trial_.time.send_deadline) >= 0;
}

void TrialWatch::note_start() {
    if (!trial_.request.start_at_unix_ns || trial_.result.start) return;
    trial_.result.start = tally::StartTime{
        .intended_unix_ns = *trial_.request.start_at_unix_ns,
        .actual_unix_ns = pace::time_at(trial_.time.start, pace::sample_clocks(), trial_.ticks_per_second)};
}

std::optional<std::uint64_t> TrialWatch::early_end(Ticks now) {
    const EarlyStop::SentUntil sent{sent_until(trial_.workers, plan::Direction::forward),
                                    sent_until(trial_.workers, plan::Direction::reverse)};
    if (trial_.clean != nullptr) return early_end_of_clean(now, sent);
    if (!trial_.request.share) return early_.look(now, sent);
    // With several testers, the client adds up, and sets one end for all of them.
    failing_ = {.lost_frames = early_.lost(now, sent), .allowed_frames = early_.allowed()};
    const auto wanted_s = observer_.wanted_end_s();
    return wanted_s ? early_.end(now, *wanted_s) : std::nullopt;
}

std::optional<std::uint64_t> TrialWatch::early_end_of_clean(Ticks now, const EarlyStop::SentUntil& sent) {
    // A cheap test that ends most calls: if nothing is lost, no judged frame is lost.
    if (early_.lost(now, sent) == 0 || static_cast<std::int64_t>(now - next_count_) < 0) return std::nullopt;
    const double settled_s = passed_s(now) - settles_after_s(trial_.request);
    const bool has_failed = trial_.clean->has_failed(trial_.records, settled_s) ||
                            (trial_.clean->loses_steadily(trial_.records, settled_s) &&
                             !trial_.clean->passes(CleanWatch::Outside::lapses, trial_.records, settled_s));
    next_count_ = now + counts_share * (pace::TickClock::now() - now);
    return has_failed ? early_.end(now, 0) : std::nullopt;
}

double TrialWatch::passed_s(Ticks now) const noexcept {
    return static_cast<double>(static_cast<std::int64_t>(now - trial_.time.start)) / trial_.ticks_per_second;
}

void TrialWatch::end_when_clean(Ticks now) {
    // A worker looks for a new end every few hundred turns; this thread, on a busy host, runs less often than it
    // should.
    constexpr double notice_s = 0.1;
    constexpr double least_notice_s = 0.01;
    double soonest_s = trial_.clean->ends_at_s();
    for (const auto outside : CleanWatch::both_outside)
        soonest_s = std::min(soonest_s, trial_.clean->ends_if_judged_s(outside));
    if (passed_s(now) + notice_s >= soonest_s) trial_.clean->look(now, true);
    const double ends_at_s = std::min(trial_.clean->ends_at_s(), ends_if_judged_s(now, notice_s));
    if (passed_s(now) + notice_s < ends_at_s) return;
    const double end_s = passed_s(now) + least_notice_s < ends_at_s ? ends_at_s : passed_s(now) + notice_s;
    // Without any lapse these are the frames of the wanted time.
    const auto frames = static_cast<std::uint64_t>(std::llround(end_s * trial_.request.rate_fps));
    end_after(std::min(frames, frames_of(trial_.request)));
}

/// When the sending may end since the trial passes without its lapses, or without them and the strain after them, or
/// since it fails without its lapses; otherwise not. Counts only if the trial could end by the result, and no more
/// often than early_end_of_clean() does.
double TrialWatch::ends_if_judged_s(Ticks now, double notice_s) {
    double ends_at_s = std::numeric_limits<double>::infinity();
    if (static_cast<std::int64_t>(now - next_count_) < 0) return ends_at_s;
    for (const auto outside : CleanWatch::both_outside) {
        const double ends_s = trial_.clean->ends_if_judged_s(outside);
        if (ends_s >= std::min(ends_at_s, trial_.clean->ends_at_s()) || passed_s(now) + notice_s < ends_s) continue;
        const double settled_s = passed_s(now) - settles_after_s(trial_.request);
        if (trial_.clean->passes(outside, trial_.records, settled_s) ||
            (outside == CleanWatch::Outside::lapses && trial_.clean->loses_steadily(trial_.records, settled_s)))
            ends_at_s = ends_s;
        next_count_ = now + counts_share * (pace::TickClock::now() - now);
    }
    return ends_at_s;
}

void TrialWatch::end_after(std::uint64_t frames) {
    is_end_told_ = true;
    const double end_s = static_cast<double>(frames) / trial_.request.rate_fps;
    trial_.time.end_sending_after(end_s, trial_.request.waits, trial_.ticks_per_second);
    plan::PerDirection<std::uint64_t> of_direction{};
    for (const auto direction : plan::both_directions) {
        const double part = trial_.request.rate_parts[direction];
        of_direction[direction] = load_detail::rounded(static_cast<double>(frames) * part);
    }
    for (const auto& worker : trial_.workers) {
        worker->shorten({.frames = of_direction,
                         .send_deadline = trial_.time.send_deadline,
                         .residual_end = trial_.time.residual_end,
                         .finish = trial_.time.finish});
    }
}

}  // namespace evenhand::run
