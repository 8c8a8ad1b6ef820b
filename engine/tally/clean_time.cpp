// SPDX-License-Identifier: Apache-2.0
#include "tally/clean_time.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace evenhand::tally {
namespace {

/// How many slices before a lapse determine the greatest delay that the DUT has to come back to; with fewer than
/// `fewest` of them it is unknown.
constexpr std::size_t usual_slices = 128;
constexpr std::size_t fewest_usual = 4;
/// How many slices before a lapse determine how long frames are on their way.
constexpr std::size_t flight_slices = 32;
/// This part of these slices has at most the usual delay. The others may have a greater one for another reason than a
/// longer queue: the DUT's CPU was away for some ten milliseconds, too short to lose anything, and all frames that came
/// meanwhile were late.
constexpr double usual_share = 0.5;
/// How far back such slices are searched.
constexpr std::size_t farthest_slices = 4096;
/// After as many consecutive slices with the usual delays, the DUT has caught up.
constexpr std::size_t slices_in_a_row = 3;
/// Allows for differences: the greatest of a few hundred delays is never the same twice.
constexpr double same_ratio = 1.05;
constexpr double same_s = 50e-6;
/// Delays that decrease do so from one of these parts to the next; a part is as long as the lapses were.
constexpr std::size_t fewest_of_part = 16;
/// Delays that increase by more from one part to the next do so for another reason, such as a short absence of the
/// DUT's CPU: they say nothing of its queue.
constexpr double rise_ratio = 1.1;
/// The greatest delay of so many slices after a lapse is that of the queue as the lapse has left it.
constexpr std::size_t peak_slices = 8;
/// The queue has become visibly shorter when delays are at most this part of that: then it has room for the few frames
/// by which an even load is uneven.
constexpr double shorter_ratio = 0.95;

/// Appends a part, joined with the previous parts that overlap it.
void add_joined(std::vector<LeftOut>& parts, LeftOut part) {
    while (!parts.empty() && parts.back().until_s >= part.from_s) {
        const LeftOut& before = parts.back();
        part.from_s = std::min(part.from_s, before.from_s);
        part.until_s = std::max(part.until_s, before.until_s);
        for (std::size_t kind = 0; kind < before.kinds.size(); ++kind)
            part.kinds.at(kind) = part.kinds.at(kind) || before.kinds.at(kind);
        parts.pop_back();
    }
    parts.push_back(part);
}

}  // namespace

std::optional<double> DelaysByTime::greatest_s(std::size_t direction, std::size_t slice) const noexcept {
    pace::Ticks greatest = 0;
    bool any = false;
    for (const auto* receiver : directions[direction]) {
        const auto& of = receiver->all()[slice];
        if (of.frames_so_far() == 0) continue;
        any = true;
        greatest = std::max(greatest, of.max_so_far());
    }
    if (!any) return std::nullopt;
    return static_cast<double>(greatest) / ticks_per_second;
}

std::size_t DelaysByTime::slices() const noexcept {
    for (const auto& receivers : directions) {
        if (!receivers.empty()) return receivers.front()->all().size();
    }
    return 0;
}

void CleanTime::note(const Lapse& lapse) {
    const auto same = std::ranges::find_if(lapses_, [&](const Lapse& other) {
        return other.kind == lapse.kind && lapse.from_s <= other.until_s && other.from_s <= lapse.until_s;
    });
    if (same != lapses_.end()) {
        same->from_s = std::min(same->from_s, lapse.from_s);
        same->until_s = std::max(same->until_s, lapse.until_s);
    } else {
        lapses_.push_back(lapse);
    }
    if (!std::ranges::is_sorted(lapses_, {}, &Lapse::from_s)) std::ranges::sort(lapses_, {}, &Lapse::from_s);
}

std::span<const LeftOut> CleanTime::look(double known_until_s) {
    left_out_.clear();
    lapsed_.clear();
    std::optional<Series> series;
    const auto end = [&] {
        // A later lapse of the series may have affected frames that take longer and were sent before the series began.
        add_joined(left_out_, {series->from_s, caught_up_at(*series, known_until_s), series->kinds});
        series->from_s = left_out_.back().from_s;
        series->kinds = left_out_.back().kinds;
    };
    for (const auto& lapse : lapses_) {
        const double from_s = in_flight_since(lapse.from_s);
        const auto kind = static_cast<std::size_t>(lapse.kind);
        // What a lapse of the receiver can lose was on its way when it began. What the sender or the DUT's CPU was late
        // with overruns a queue from its end: frames that were in it before are safe.
        const bool reaches_back = lapse.kind == LapseKind::receiver_away;
        LeftOut alone{reaches_back ? from_s : std::max(0.0, lapse.from_s - delays_.slice_s), lapse.until_s, {}};
        alone.kinds.at(kind) = true;
        add_joined(lapsed_, alone);
        if (lapse.from_s > known_until_s) continue;
        if (series) {
            end();
            if (from_s > left_out_.back().until_s) {
                series.reset();
            } else {
                left_out_.pop_back();
            }
        }
        if (!series) series.emplace(Series{.from_s = from_s, .until_s = lapse.until_s});
        series->from_s = std::min(series->from_s, from_s);
        series->until_s = std::max(series->until_s, lapse.until_s);
        series->lasted_s += lapse.until_s - lapse.from_s;
        series->kinds.at(kind) = true;
    }
    if (series) end();
    find_strained(known_until_s);
    return left_out_;
}

void CleanTime::find_strained(double known_until_s) {
    strained_.clear();
    auto around = left_out_.begin();
    for (auto part = lapsed_.begin(); part != lapsed_.end(); ++part) {
        while (around != left_out_.end() && around->until_s < part->until_s) ++around;
        double until_s = around == left_out_.end() ? known_until_s : around->until_s;
        if (std::next(part) != lapsed_.end()) until_s = std::min(until_s, std::next(part)->from_s);
        double shorter_s = part->until_s;
        for (std::size_t d = 0; d < delays_.directions.size() && shorter_s < until_s; ++d)
            shorter_s = std::max(shorter_s, shorter_at(d, part->until_s, until_s));
        add_joined(strained_, {part->from_s, std::max(part->until_s, std::min(shorter_s, until_s)), part->kinds});
    }
}

/// When, before `until_s`, the delays of a direction are visibly shorter than those just after `from_s`; at once where
/// these are as before, or where no frame arrives.
double CleanTime::shorter_at(std::size_t direction, double from_s, double until_s) const noexcept {
    const auto first = static_cast<std::size_t>(std::ceil(std::max(0.0, from_s) / delays_.slice_s));
    const auto last = slice_at(until_s);
    const double as_before_s = this->as_before_s(direction, from_s).value_or(0);
    std::size_t seen = 0;
    std::size_t in_a_row = 0;
    double peak_s = 0;
    for (std::size_t slice = first; slice < last; ++slice) {
        const auto of = delays_.greatest_s(direction, slice);
        if (!of) continue;
        if (seen++ < peak_slices) peak_s = std::max(peak_s, *of);
        const double shorter_s = seen > peak_slices ? peak_s * shorter_ratio : 0;
        in_a_row = *of <= std::max(as_before_s, shorter_s) ? in_a_row + 1 : 0;
        if (in_a_row == slices_in_a_row) return static_cast<double>(slice + 1 - slices_in_a_row) * delays_.slice_s;
    }
    return seen == 0 ? from_s : until_s;
}

double seconds_without(std::span<const LeftOut> parts, double until_s) noexcept {
    double left_s = until_s;
    for (const auto& part : parts)
        left_s -= std::max(0.0, std::min(part.until_s, until_s) - std::max(part.from_s, 0.0));
    return left_s;
}

std::size_t pieces_without(std::span<const LeftOut> parts, double until_s) noexcept {
    std::size_t pieces = 0;
    double at_s = 0;
    for (const auto& part : parts) {
        if (part.from_s > at_s) ++pieces;
        at_s = part.until_s;
    }
    return pieces + static_cast<std::size_t>(at_s < until_s);
}

std::array<std::size_t, lapse_names.size()> CleanTime::lapses() const noexcept {
    std::array<std::size_t, lapse_names.size()> counts{};
    for (const auto& lapse : lapses_) ++counts.at(static_cast<std::size_t>(lapse.kind));
    return counts;
}

std::size_t CleanTime::slice_at(double seconds) const noexcept {
    const std::size_t count = delays_.slices();
    const double slice = std::floor(seconds / delays_.slice_s);
    return slice <= 0 ? 0 : std::min(static_cast<std::size_t>(slice), count);
}

/// When the first of the frames was due that were on their way, or in a queue, at `from_s`: earlier than that by the
/// greatest delay of the frames that were sent last.
double CleanTime::in_flight_since(double from_s) const noexcept {
    double greatest_s = 0;
    for (std::size_t d = 0; d < delays_.directions.size(); ++d) {
        std::size_t seen = 0;
        const std::size_t last = std::min(slice_at(from_s) + 1, delays_.slices());
        for (std::size_t back = 0; back < std::min(last, farthest_slices) && seen < flight_slices; ++back) {
            const auto of = delays_.greatest_s(d, last - 1 - back);
            if (!of) continue;
            ++seen;
            greatest_s = std::max(greatest_s, *of);
        }
    }
    return std::max(0.0, from_s - greatest_s - delays_.slice_s);
}

/// The greatest delay that a slice may have if the DUT's queue is to be as it was before that time: the usual one of
/// the last judged slices, and a little more, though no more than any of them had. Near its limit a queue that is
/// longer by a few frames than it ever was may be one that loses some.
std::optional<double> CleanTime::as_before_s(std::size_t direction, double before_s) const noexcept {
    std::array<double, usual_slices> greatest_s{};
    std::size_t seen = 0;
    auto part = left_out_.rbegin();
    std::size_t slice = slice_at(before_s);
    for (std::size_t steps = 0; slice > 0 && steps < farthest_slices && seen < usual_slices; ++steps) {
        --slice;
        const double begins_s = static_cast<double>(slice) * delays_.slice_s;
        while (part != left_out_.rend() && part->from_s >= begins_s + delays_.slice_s) ++part;
        if (part != left_out_.rend() && part->until_s > begins_s) {
            slice = std::min(slice, slice_at(part->from_s));
            continue;
        }
        const auto of = delays_.greatest_s(direction, slice);
        if (of) greatest_s.at(seen++) = *of;
    }
    if (seen < fewest_usual) return std::nullopt;
    const auto end = greatest_s.begin() + static_cast<std::ptrdiff_t>(seen);
    std::sort(greatest_s.begin(), end);
    const double usual_s = greatest_s.at(static_cast<std::size_t>(usual_share * static_cast<double>(seen - 1)));
    return std::min(usual_s * same_ratio + same_s, std::max(usual_s + same_s, greatest_s.at(seen - 1)));
}

double CleanTime::caught_up_at(const Series& series, double known_until_s) const noexcept {
    double at_s = series.until_s;
    for (std::size_t d = 0; d < delays_.directions.size(); ++d)
        at_s = std::max(at_s, caught_up_at(d, series, known_until_s));
    return at_s;
}

/// When the delays of a direction are as they were before. If they do not come back to that, or the previous delays are
/// unknown, as at the beginning of a trial: when they no longer decrease. The DUT is then given as much time as the
/// lapses took, at least; the same if no frame arrives.
double CleanTime::caught_up_at(std::size_t direction, const Series& series, double known_until_s) const noexcept {
    const double slice_s = delays_.slice_s;
    const auto as_before_s = this->as_before_s(direction, series.from_s);
    const double again_s = series.until_s + std::max(series.lasted_s, static_cast<double>(slices_in_a_row) * slice_s);
    const auto known = slice_at(known_until_s);
    const auto first = static_cast<std::size_t>(std::ceil(std::max(0.0, series.until_s) / slice_s));
    const auto of_part = std::max(fewest_of_part, static_cast<std::size_t>(std::ceil(series.lasted_s / slice_s)));
    std::size_t as_before = 0;
    double sum_s = 0;
    std::size_t summed = 0;
    std::optional<double> mean_before_s;
    for (std::size_t slice = first; slice < known; ++slice) {
        const auto of = delays_.greatest_s(direction, slice);
        as_before = as_before_s && of && *of <= *as_before_s ? as_before + 1 : 0;
        if (as_before == slices_in_a_row) return static_cast<double>(slice + 1 - slices_in_a_row) * slice_s;
        if (of) sum_s += *of, ++summed;
        if ((slice + 1 - first) % of_part != 0) continue;
        if (summed == 0) return again_s;
        const double mean_s = sum_s / static_cast<double>(summed);
        const bool has_risen = mean_before_s && mean_s > *mean_before_s * rise_ratio + same_s;
        if (mean_before_s && mean_s >= *mean_before_s && !has_risen)
            return std::max(again_s, static_cast<double>(slice + 1 - of_part) * slice_s);
        mean_before_s = mean_s;
        sum_s = 0;
        summed = 0;
    }
    return std::max(known_until_s, series.until_s);
}

}  // namespace evenhand::tally
