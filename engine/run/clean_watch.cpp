// SPDX-License-Identifier: Apache-2.0
#include "run/clean_watch.hpp"

#include <algorithm>
#include <utility>

namespace evenhand::run {
namespace {

/// By then lapses and delays are known: the watch of a CPU looks once in eight milliseconds, if it gets the CPU.
constexpr double told_after_s = 0.1;
/// The least ratio of all time to the time that looking takes: usually, and if the sending is about to end.
constexpr unsigned looks_share = 200;
constexpr unsigned last_looks_share = 20;
constexpr double least_between_s = 0.02;

tally::DelaysByTime delays_of(const TrialRequest& request, const std::vector<std::unique_ptr<WorkerTrial>>& workers,
                              double ticks_per_second) {
    tally::DelaysByTime delays{
        .slice_s = sending_s(request) / static_cast<double>(tally::SliceDelays::slices * finer_slices(request)),
        .ticks_per_second = ticks_per_second,
        .directions = {}};
    for (const auto direction : request.directions) {
        auto& receivers = delays.directions.emplace_back();
        for (const auto& worker : workers) {
            for (const auto& reception : worker->receptions) {
                if (reception.direction == direction) receivers.push_back(&reception.tally->delay_by_slice);
            }
        }
    }
    return delays;
}

}  // namespace

CleanWatch::CleanWatch(const TrialRequest& request, const std::vector<std::unique_ptr<WorkerTrial>>& workers,
                       Absences absences, pace::Ticks start, double ticks_per_second, const FlowLimits::Mixes& mixes)
    : request_{request},
      loads_{by_direction(request)},
      workers_{workers},
      absences_{std::move(absences)},
      start_{start},
      ticks_per_second_{ticks_per_second},
      clean_{delays_of(request, workers, ticks_per_second)},
      limits_{mixes, request.limits.loss_ratio},
      losses_{sending_s(request), limits_.has_own() ? 0 : request.limits.loss_ratio},
      ends_at_s_{request.clean->wanted_s} {
    for (auto& passing : passing_) passing.ends_at_s = request.clean->wanted_s;
    for (const auto& worker : workers) {
        logs_.emplace_back(&worker->lapses->of_senders, tally::LapseKind::sender_overdue);
        logs_.emplace_back(&worker->lapses->of_receivers, tally::LapseKind::receiver_away);
    }
    gathered_.assign(logs_.size(), 0);
}

/// Adds all lapses of the loops, and the DUT's absences that ended since then.
void CleanWatch::gather(double since_s) {
    for (std::size_t l = 0; l < logs_.size(); ++l) {
        const auto& [log, kind] = logs_[l];
        const std::size_t count = log->size();
        // The last gathered lapse may have become longer since.
        for (std::size_t i = gathered_[l] == 0 ? 0 : gathered_[l] - 1; i < count; ++i) {
            const auto entry = log->at(i);
            clean_.note({.kind = kind, .from_s = seconds(entry.from), .until_s = seconds(entry.until)});
        }
        gathered_[l] = count;
    }
    for (const auto& absence : absences_()) {
        const double until_s = seconds(absence.end);
        if (until_s < since_s) continue;
        clean_.note({.kind = tally::LapseKind::dut_away, .from_s = until_s - absence.longest_s, .until_s = until_s});
    }
}

double CleanWatch::greatest_delay_s() const noexcept {
    std::uint64_t greatest = 0;
    for (const auto& worker : workers_) {
        for (const auto& so_far : worker->so_far)
            greatest = std::max(greatest, so_far.max_latency_ticks.load(std::memory_order_relaxed));
    }
    return static_cast<double>(greatest) / ticks_per_second_;
}

void CleanWatch::look(pace::Ticks now, bool is_ending) {
    const double now_s = seconds(now);
    const auto between = static_cast<pace::Ticks>(least_between_s * ticks_per_second_) +
                         (is_ending ? last_looks_share : looks_share) * look_took_;
    if (now_s <= 0 || (looked_at_ != 0 && now - looked_at_ < between)) return;
    // An absence is known some time after its end, and may become longer until then.
    constexpr double again_s = 2;
    gather((looked_at_ == 0 ? 0 : seconds(looked_at_)) - again_s);
    looked_at_ = now;
    const double known_until_s = std::max(0.0, now_s - std::max(told_after_s, 2 * greatest_delay_s()));
    const double over_s = request_.clean->wanted_s + now_s;
    find_left_out(known_until_s);
    ends_at_s_ = over_s - seconds_without(clean_.left_out(), now_s) + left_out_later_s(known_until_s, now_s);
    for (const auto outside : both_outside)
        passing_.at(place_of(outside)).ends_at_s = over_s - seconds_without(parts(outside), now_s);
    look_took_ = pace::TickClock::now() - now;
}

double CleanWatch::left_out_later_s(double known_until_s, double now_s) const noexcept {
    const auto& known = clean_.left_out();
    const double until_s = known.empty() ? 0 : known.back().until_s;
    if (!known.empty() && until_s >= known_until_s) return std::max(0.0, now_s - until_s);
    const auto outside_s = [&](double seconds) { return seconds_without(clean_.lapsed(), seconds); };
    return now_s - known_until_s - (outside_s(now_s) - outside_s(known_until_s));
}

void CleanWatch::end(double sent_s) {
    sent_s_ = sent_s;
    gather(0);
    find_left_out(sent_s);
}

void CleanWatch::find_left_out(double known_until_s) {
    left_out_ = frames_of_parts(clean_.look(known_until_s));
    for (const auto outside : both_outside) passing_.at(place_of(outside)).without = frames_of_parts(parts(outside));
}

CleanWatch::RangesByDirection CleanWatch::frames_of_parts(std::span<const tally::LeftOut> parts) const {
    RangesByDirection ranges;
    for (const auto direction : request_.directions) {
        const auto& load = loads_[direction];
        for (const auto& part : parts)
            ranges[direction].emplace_back(frames_before(load, std::max(0.0, part.from_s)),
                                           frames_before(load, part.until_s));
    }
    return ranges;
}

JudgedFrames CleanWatch::count(plan::Direction direction, const tally::SequenceMap& map, std::uint64_t first,
                               std::uint64_t last, const FrameRanges& without) const {
    JudgedFrames found;
    const auto add = [&](std::uint64_t until) {
        if (first < until) found.add(limits_.count(direction, map, first, until));
    };
    for (const auto& [from, until] : without) {
        if (until <= first) continue;
        if (from >= last) break;
        add(from);
        first = std::max(first, until);
    }
    add(last);
    return found;
}

template <class CountsOf>
bool CleanWatch::is_too_much_lost(const TrialRecords& records, double settled_s, CountsOf counts_of,
                                  const RangesByDirection& without) const {
    plan::PerDirection<JudgedFrames> found{};
    plan::PerDirection<double> wanted{};
    for (const auto direction : request_.directions) {
        const auto& map = records[direction].map;
        const auto& taken = taken_[direction];
        found[direction] = counts_of(taken);
        wanted[direction] = loads_[direction].rate_fps * request_.clean->wanted_s;
        const auto settled = std::min(frames_before(loads_[direction], std::max(0.0, settled_s)), map.end());
        const auto first = std::max(taken.end, map.settled());
        if (settled > first) found[direction].add(count(direction, map, first, settled, without[direction]));
    }
    return limits_.are_exceeded(found, &wanted);
}

bool CleanWatch::has_failed(const TrialRecords& records, double settled_s) const {
    const auto of = [](const Taken& taken) { return taken.clean; };
    return is_too_much_lost(records, settled_s, of, left_out_);
}

bool CleanWatch::passes(Outside outside, const TrialRecords& records, double settled_s) const {
    const auto of = [=](const Taken& taken) { return taken.outside.at(place_of(outside)); };
    return !is_too_much_lost(records, settled_s, of, passing(outside).without);
}

void CleanWatch::count_windows(plan::Direction direction, const tally::SequenceMap& map, std::uint64_t last) {
    const auto& load = loads_[direction];
    auto& window = windows_[direction];
    for (; window < losses_.windows(); ++window) {
        const auto frames_until = [&](std::size_t windows) {
            return frames_before(load, static_cast<double>(windows) * losses_.window_s());
        };
        const auto until = frames_until(window + 1);
        if (until > last) return;
        // What the map no longer holds of a window that an earlier call left is taken to have come.
        const auto first = std::max(frames_until(window), map.settled());
        if (first >= until) continue;
        // Where flows have limits of their own, a window in which too much of any was lost counts as a loss.
        const auto lost = !limits_.has_own() ? map.missing(first, until)
                                             : static_cast<std::uint64_t>(limits_.are_exceeded_in(
                                                   direction, limits_.count(direction, map, first, until)));
        losses_.note(window, until - first, lost);
    }
}

bool CleanWatch::loses_steadily(const TrialRecords& records, double settled_s) {
    if (settled_s <= 0) return false;
    double until_s = settled_s;
    for (const auto direction : request_.directions) {
        const auto& map = records[direction].map;
        count_windows(direction, map, std::min(frames_before(loads_[direction], settled_s), map.end()));
        until_s = std::min(until_s, static_cast<double>(windows_[direction]) * losses_.window_s());
    }
    return losses_.is_found(clean_.lapsed(), until_s);
}

void CleanWatch::take(plan::Direction direction, const tally::SequenceMap& map, std::uint64_t last) {
    auto& taken = taken_[direction];
    if (taken.end >= last) return;
    count_windows(direction, map, last);
    taken.clean.add(count(direction, map, taken.end, last, left_out_[direction]));
    for (const auto outside : both_outside)
        taken.outside.at(place_of(outside))
            .add(count(direction, map, taken.end, last, passing(outside).without[direction]));
    taken.end = last;
}

tally::TrialResult::Clean CleanWatch::time_without(const std::vector<tally::LeftOut>& parts) const {
    return {.wanted_s = request_.clean->wanted_s,
            .most_s = sending_s(request_),
            .sent_s = sent_s_,
            .clean_s = tally::seconds_without(parts, sent_s_),
            .pieces = tally::pieces_without(parts, sent_s_),
            .lapses = clean_.lapses(),
            .left_out = parts};
}

CleanWatch::Judged CleanWatch::judged() const {
    Judged caught_up{.time = time_without(clean_.left_out()), .counts = {}};
    for (const auto direction : request_.directions) caught_up.counts[direction] = taken_[direction].clean;
    if (caught_up.time.is_enough()) return caught_up;
    const auto without = [&](Outside outside) {
        Judged judged{.time = time_without(parts(outside)), .counts = {}};
        for (const auto direction : request_.directions)
            judged.counts[direction] = taken_[direction].outside.at(place_of(outside));
        return judged;
    };
    for (const auto outside : both_outside) {
        const auto judged = without(outside);
        if (judged.time.is_enough() && !limits_.are_exceeded(judged.counts)) return judged;
    }
    auto judged = without(Outside::lapses);
    judged.time.loses_steadily = limits_.are_exceeded(judged.counts) && losses_.is_found(clean_.lapsed(), sent_s_);
    return judged.time.loses_steadily ? judged : caught_up;
}

}  // namespace evenhand::run
