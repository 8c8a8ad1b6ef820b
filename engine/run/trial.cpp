// SPDX-License-Identifier: Apache-2.0
#include "run/trial.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <new>
#include <numeric>
#include <utility>

#include "fault.hpp"
#include "run/connections.hpp"
#include "run/deviations.hpp"
#include "run/load.hpp"
#include "run/memory.hpp"
#include "run/settled.hpp"
#include "run/sum_up.hpp"
#include "run/trial_checks.hpp"
#include "run/trial_map.hpp"
#include "run/trial_watch.hpp"
#include "tally/verdict.hpp"
#include "units.hpp"

namespace evenhand::run {
namespace {

using plan::Side;

constexpr double order_settles_us = 50;  // NICs write descriptors back in groups, or some microseconds later

/// How many of a direction's frames may be lost at the most in a trial that passes.
double most_lost(const frame::FrameMix& mix, double loss_ratio) {
    const auto frames = mix.count({}, mix.period());
    double lost = 0;
    for (std::size_t c = 0; c < frames.size(); ++c)
        lost += mix.classes()[c].loss_at_most.value_or(loss_ratio) * static_cast<double>(frames[c]);
    return lost / static_cast<double>(mix.period());
}

/// The same of all frames. Where directions differ, what more may be lost in one decides.
double most_lost(const Tester& tester, const TrialRequest& request) {
    double most = 0;
    for (const auto direction : request.directions)
        most = std::max(most, most_lost(*tester.mix(direction), request.limits.loss_ratio));
    return most;
}

TrialRequest with_usual_limits(const Tester& tester, TrialRequest request) {
    if (tester.has_mix()) request.failed_beyond = most_lost(tester, request);
    if (!request.has_overdue_after) request.limits.overdue_after_us = tally::usual_overdue_after_us(peak_fps(request));
    return request;
}

/// Tagged frames are spread evenly over the frames whose delay counts. Where several testers send them, they are spread
/// over the streams of all testers as well: the first tagged frame belongs to another stream in each trial, and the
/// step has no divisor in common with the number of streams, so that it reaches each stream equally often.
tally::DelayWish wish_of(const TrialRequest& request) {
    const auto first = first_delay_frame(request);
    const auto counted = frames_of(request) - first;
    const auto tagged = request.delays->tagged_frames;
    tally::DelayWish wish{.first = first, .tag_first = first, .has_variation = request.delays->has_variation};
    if (tagged == 0) return wish;
    const std::uint64_t streams = request.share ? request.share->stride : 1;
    const auto skipped = std::min(request.trial % streams, counted - tagged);
    wish.tagged = tagged;
    wish.tag_first += skipped;
    wish.tag_every = (counted - skipped) / tagged;
    while (std::gcd(wish.tag_every, streams) != 1) --wish.tag_every;
    return wish;
}

/// Everything but the orders of streams, which need the clock's rate: prepare() makes them.
TrialRecords make_records(const Tester& tester, const TrialRequest& request) {
    check_map_memory(map_memory(tester, request), available_octets());
    TrialRecords records;
    try {
        for (const auto direction : request.directions) {
            auto& record = records[direction];
            const bool is_shared = tester.receive_queues(plan::receiving_side(direction)) > 1;
            const auto load = of_direction(request, direction);
            record.share = tester.share(request, direction);
            record.map = make_map(tester, request, direction);
            record.losses = tally::Losses{record.share.count(first_delay_frame(load))};
            if (request.delays) record.delays.emplace(wish_of(load), is_shared);
        }
    } catch (const std::bad_alloc&) {
        throw Fault{FaultCode::no_memory, fmt::format("no memory to record {} frames a direction", frames_of(request)),
                    "trial", "Shorten the trial or lower the rate."};
    }
    return records;
}

/// The parts of a result that are known before the trial.
tally::TrialResult begin_result(const Tester& tester, const TrialRequest& request) {
    tally::TrialResult result;
    result.trial = request.trial;
    result.started_at = fmt::format("{:%FT%TZ}", fmt::gmtime(std::chrono::system_clock::now()));
    result.frame_size = tester.request().frame_size;
    if (const auto* const mix = tester.mix(request.directions.front())) {
        result.frame_size = static_cast<std::size_t>(std::llround(mix->mean_frame_size()));
        result.mix = {.period_frames = mix->period(), .mean_frame_size = mix->mean_frame_size()};
    }
    result.intended_fps = mean_fps(request);
    result.intended_duration_s = request.clean ? request.clean->wanted_s : sending_s(request);
    result.burst = request.burst;
    result.then = request.then;
    if (request.share)
        result.share = tally::Share{
            .first = request.share->first, .streams = tester.streams(Side::left), .stride = request.share->stride};
    result.is_one_armed = tester.is_one_armed();
    result.limits = request.limits;
    result.deviations = deviations_of(request, tester.hosts_before(request.directions));
    return result;
}

double total_s(const TrialRequest& request) {
    const auto& w = request.waits;
    const double usual_s = request.clean ? request.clean->wanted_s : sending_s(request);
    return w.after_routing_s + w.after_learning_s + usual_s + w.residual_s + w.restabilize_s;
}

}  // namespace

RunningTrial::RunningTrial(Tester& tester, const TrialRequest& asked, std::optional<std::int64_t> steered_start_ns,
                           TrialObserver& observer)
    : tester_{tester},
      observer_{observer},
      request_{with_usual_limits(tester, asked)},
      steered_start_ns_{steered_start_ns},
      records_{make_records(tester, request_)},
      result_{begin_result(tester, request_)},
      phases_{tester, result_, observer, total_s(request_)} {}

void RunningTrial::prepare() {
    wait_before_sending();
    for (const auto side : plan::both_sides)
        result_.ports[side].before = count_before(tester_.port(side), [&] { return tester_.taken_frames(side); });
    tester_.begin_icmp_errors(tester_.wire_trial(request_.trial));
    tester_.begin_captures(request_.kept_frames, request_.kept_received);
    ticks_per_second_ = tester_.ticks_per_second();
    clock_before_ = pace::sample_clocks();
    for (const auto direction : request_.directions) {
        auto& record = records_[direction];
        record.order = {tester_.receive_queues(plan::receiving_side(direction)),
                        static_cast<unsigned>(record.share.stride()),
                        static_cast<Ticks>(order_settles_us * ticks_per_second_ / us_per_second)};
    }
    host_.emplace(tester_);
    time_.emplace(request_, steered_start_ns_, ticks_per_second_);
    workers_ = make_worker_trials(tester_, request_, *time_, ticks_per_second_, records_);
    if (request_.clean) {
        const auto absences = [this] { return host_->absences(request_.rate_fps); };
        FlowLimits::Mixes mixes{};
        for (const auto direction : request_.directions) mixes[direction] = tester_.mix(direction);
        clean_.emplace(request_, workers_, absences, time_->start, ticks_per_second_, mixes);
    }
    if (goes_on_) check_is_ready(request_, steered_start_ns_);
}

void RunningTrial::wait_before_sending() {
    const auto& w = request_.waits;
    goes_on_ = phases_.wait("routing", w.after_routing_s);
    if (!goes_on_) return;
    // Learning frames: the DUT learns the gateways from them (R2544-34). Hosts on the link are left to learn(), which
    // runs once: up to 65,533 of them would take some seconds before each trial, and a DUT that has received a host's
    // frame has not thereby proved that it remembers the host.
    if (!tester_.is_direct()) tester_.send_questions();
    // With a given time of start, wait longer if the other testers need longer to be ready.
    const double wait_s = steered_start_ns_
                              ? std::max(w.after_learning_s, until_s(*steered_start_ns_) - 2 * Timeline::lead_s)
                              : w.after_learning_s;
    goes_on_ = phases_.wait("learning", wait_s);
}

void RunningTrial::run() {
    if (!goes_on_) return;
    const BusyWorkers busy{tester_.workers(), workers_};
    TrialWatch watch{{.request = request_,
                      .workers = workers_,
                      .records = records_,
                      .time = *time_,
                      .result = result_,
                      .ticks_per_second = ticks_per_second_,
                      .clean = clean_ ? &*clean_ : nullptr},
                     observer_};
    const auto count = [&](Progress& progress) { watch.count(progress); };
    const auto is_sent = [&] { return watch.is_sent(); };
    const auto until = [](Ticks end) {
        return [=] { return static_cast<std::int64_t>(pace::TickClock::now() - end) >= 0; };
    };
    constexpr double at_most_s = 1e9;
    goes_on_ = phases_.wait("sending", at_most_s, is_sent, count);
    goes_on_ = goes_on_ && phases_.wait("residual", at_most_s, until(time_->residual_end), count);
    goes_on_ = goes_on_ && phases_.wait("restabilize", at_most_s, until(time_->finish), count);
    // On a busy host this thread may not have run between the start and now.
    if (goes_on_) watch.note_start();
}

tally::TrialResult RunningTrial::collect() {
    host_->end(ticks_per_second_);
    result_.host = host_->record();
    result_.stopped = !goes_on_ && !tester_.has_lost_a_port();  // a removed port ended it, not the observer
    read_ports_after();
    read_clocks_after();
    if (clean_) end_clean();
    for (const auto direction : request_.directions) result_.directions.push_back(result_of(direction));
    if (clean_) {
        const auto judged = clean_->judged();
        result_.clean = judged.time;
        for (auto& d : result_.directions) {
            const auto& counts = judged.counts[d.direction];
            d.clean = counts.all;
            for (std::size_t f = 0; f < counts.flows.size(); ++f) d.classes[f].clean = counts.flows[f];
        }
    }
    tally::judge(result_);
    return std::move(result_);
}

void RunningTrial::end_clean() {
    const auto loads = by_direction(request_);
    // When the next frame would be due.
    const auto end_of = [&](const TrialLoop::Sent& sent) {
        const auto& load = loads[sent.stream.direction];
        return due_s(load, sent.stream.share.sequence(sent.frames - 1)) + 1 / load.rate_fps;
    };
    double sent_s = 0;
    for (const auto& worker : workers_) {
        for (const auto& sent : worker->loop->sent()) {
            if (sent.frames != 0) sent_s = std::max(sent_s, end_of(sent));
        }
    }
    clean_->end(sent_s);
    result_.clean = clean_->judged().time;  // of this, only sent_s is final yet
}

void RunningTrial::read_ports_after() {
    for (const auto side : plan::both_sides) {
        auto& counters = result_.ports[side];
        counters.after = count_after(tester_.port(side), counters.before, [&] { return tester_.taken_frames(side); });
        counters.icmp_errors = tester_.icmp_errors(side);
        for (const auto& each : observer_.link_switches()) {
            if (each.side != side) continue;
            const auto ticks = static_cast<std::int64_t>(each.at - time_->start);
            counters.link_switches.push_back(
                {.at_s = static_cast<double>(ticks) / ticks_per_second_, .is_up = each.is_up});
        }
        result_.keeps_frames = request_.kept_frames != 0 || request_.kept_received != 0;
        if (result_.keeps_frames) counters.kept_frames = tester_.end_captures(side);
    }
}

void RunningTrial::read_clocks_after() {
    result_.ticks_per_second = ticks_per_second_;
    result_.clock_offsets = tester_.clock_offsets();
    const auto now = pace::sample_clocks();
    result_.ended = now;
    result_.clock_error_ppm = (pace::ticks_per_second(clock_before_, now) / ticks_per_second_ - 1) * per_million;
    if (pace::is_steered_clock_right()) {
        const double steered = pace::steered_ticks_per_second(tester_.opened_at(), now);
        result_.steered_clock_error_ppm = (ticks_per_second_ / steered - 1) * per_million;
    }
}

tally::DirectionResult RunningTrial::result_of(plan::Direction direction) {
    auto& record = records_[direction];
    const auto load = of_direction(request_, direction);
    take_back_copies(workers_, direction, record.map);
    const double ring_frames = tester_.port(plan::receiving_side(direction)).receive_ring_frames();
    auto d = sum_up(tester_, load, direction, workers_, record, time_->start, ticks_per_second_, result_.sending_s(),
                    static_cast<unsigned>(ring_frames * tester_.part_of_port(request_, direction)));
    if (request_.has_rate_parts) d.intended_fps = mean_fps(load);
    if (clean_)
        clean_->take(direction, record.map, std::min(record.map.end(), frames_before(load, result_.clean->sent_s)));
    if (request_.connections) count_connections(d, *request_.connections, *tester_.state_table());
    d.away_frames = host_->frames_while_away(peak_fps(load), time_->start, time_->send_deadline, ticks_per_second_);
    return d;
}

tally::TrialResult Tester::run_trial(const TrialRequest& asked, TrialObserver& observer) {
    const auto start_ns = steered_start_ns(asked);
    check_trial(*this, asked, start_ns);
    Progress waiting;
    waiting.trial = asked.trial, waiting.phase = "routing";
    wait_for_links([&] { return observer.goes_on(waiting); });
    prepare_connections(asked);
    RunningTrial trial{*this, asked, start_ns, observer};
    trial.prepare();
    trial.run();
    return trial.collect();
}

}  // namespace evenhand::run
