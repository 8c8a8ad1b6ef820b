// SPDX-License-Identifier: Apache-2.0
#include "run/so_far.hpp"

#include <algorithm>

#include "run/load.hpp"

namespace evenhand::run {
namespace {

constexpr double delays_every_s = 0.45;
/// Reading goes through tens of thousands of buckets, and this thread may take its CPU from a worker: the least ratio
/// of all time to the time that it takes.
constexpr unsigned delays_share = 2000;

}  // namespace

std::uint64_t SoFar::settled(plan::Direction direction, pace::Ticks now, double sending_s) const noexcept {
    const auto passed = static_cast<std::int64_t>(now - start_);
    const double settled_s = static_cast<double>(passed) / ticks_per_second_ - settles_after_s(request_);
    return settled_s <= 0 ? 0 : frames_before(loads_[direction], std::min(settled_s, sending_s));
}

void SoFar::read_delays(pace::Ticks now) {
    const auto between = static_cast<pace::Ticks>(delays_every_s * ticks_per_second_) + delays_share * reading_took_;
    if (static_cast<std::int64_t>(now - delays_read_at_ - between) < 0) return;
    const pace::Ticks begin = pace::TickClock::now();
    for (const auto direction : request_.directions) last_delays_[direction] = read_delays(direction);
    reading_took_ = pace::TickClock::now() - begin;
    delays_read_at_ = now;
}

std::optional<SoFar::RecentLatency> SoFar::read_delays(plan::Direction direction) {
    std::uint64_t greatest = 0;
    for (const auto& trial : trials_)
        greatest = std::max(greatest, trial->so_far[direction].max_latency_ticks.load(std::memory_order_relaxed));
    auto& recent = recent_[direction];
    recent.begin(greatest);
    for (const auto& trial : trials_) {
        for (const auto& reception : trial->receptions) {
            if (reception.direction == direction) recent.add(reception.tally->latency);
        }
    }
    const auto found = recent.end();
    if (!found) return {};
    return RecentLatency{.median_s = static_cast<double>(found->median) / ticks_per_second_,
                         .p999_s = static_cast<double>(found->p999) / ticks_per_second_};
}

std::vector<std::uint64_t> SoFar::received_of_flows(plan::Direction direction) const {
    std::vector<std::uint64_t> found;
    for (const auto& trial : trials_) {
        for (const auto& reception : trial->receptions) {
            if (reception.direction != direction) continue;
            found.resize(reception.tally->flows.size());
            for (std::size_t c = 0; c < found.size(); ++c) found[c] += reception.tally->received_so_far(c);
        }
    }
    return found;
}

void SoFar::count(Progress& progress, pace::Ticks now, double sending_s) {
    read_delays(now);
    progress.sent_frames = progress.received_frames = 0;
    for (const auto direction : request_.directions) {
        const auto& record = records_[direction];
        const std::uint64_t settled = std::min(record.share.count(this->settled(direction, now, sending_s)),
                                               had_left_[direction].note(now, sent_until(trials_, direction)));
        Progress::OfDirection of;
        double latency = 0;
        std::uint64_t timed = 0;
        std::uint64_t max_latency = 0;
        for (const auto& trial : trials_) {
            const auto& so_far = trial->so_far[direction];
            of.sent_frames += so_far.sent_frames.load(std::memory_order_relaxed);
            of.received_frames += so_far.received_frames.load(std::memory_order_relaxed);
            const auto frames = so_far.timed_frames.load(std::memory_order_relaxed);
            timed += frames;
            latency += static_cast<double>(frames) * so_far.mean_latency_ticks.load(std::memory_order_relaxed);
            max_latency = std::max(max_latency, so_far.max_latency_ticks.load(std::memory_order_relaxed));
        }
        if (timed != 0) {
            of.mean_latency_s = latency / static_cast<double>(timed) / ticks_per_second_;
            of.max_latency_s = static_cast<double>(max_latency) / ticks_per_second_;
        }
        auto& lost = lost_[direction];
        lost.catch_up(record.map);
        if (settled > lost.looked_at()) lost.add(settled, record.map.missing(lost.looked_at(), settled));
        // A sender that is behind has not sent all frames that are due.
        of.settled_frames = std::min(lost.looked_at(), of.sent_frames),
        of.lost_frames = std::min(lost.missing(), of.settled_frames);
        progress.sent_frames += of.sent_frames, progress.received_frames += of.received_frames;
        of.recent_latency = last_delays_[direction];
        of.received_of_flows = received_of_flows(direction);
        progress.directions[direction] = of;
    }
}

}  // namespace evenhand::run
