// SPDX-License-Identifier: Apache-2.0
// One trial: phases (a) to (e) of RFC 2544 section 23 around the loops, then the sums.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <new>
#include <numeric>

#include "fault.hpp"
#include "run/connections.hpp"
#include "run/deviations.hpp"
#include "run/early_stop.hpp"
#include "run/host_record.hpp"
#include "run/load.hpp"
#include "run/memory.hpp"
#include "run/phase_clock.hpp"
#include "run/settled.hpp"
#include "run/so_far.hpp"
#include "run/sum_up.hpp"
#include "run/tester.hpp"
#include "run/timeline.hpp"
#include "run/trial_map.hpp"
#include "run/worker_trials.hpp"
#include "tally/losses.hpp"
#include "tally/verdict.hpp"

namespace evenhand::run {
namespace {

using plan::Side;

constexpr double us_per_second = 1e6;
constexpr double order_settles_us = 50;  // NICs write descriptors back in groups, or some microseconds later
constexpr std::uint64_t most_frames = std::uint64_t{1} << 44U;  // over 24 h at 148.8 Mfps
constexpr double ns_per_second = 1e9;

/// The first frame whose delay counts: the first that is due at `from_s` or later.
std::uint64_t first_frame_of(const TrialRequest& request) {
    return request.delays ? frames_before(request, request.delays->from_s) : 0;
}

/// Tagged frames are spread evenly over those whose delay counts; and, where several testers send these, over the
/// streams of all: the first of them is of another stream in each trial, and a step that has no divisor in common with
/// their number comes to one stream as often as to another.
tally::DelayWish wish_of(const TrialRequest& request) {
    const auto first = first_frame_of(request);
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

/// One of several testers: what it cannot do, and what is not its own.
void check_share(const Tester& tester, const TrialRequest& request) {
    const auto refuse = [](std::string what, const char* where, std::string next) {
        throw Fault{FaultCode::bad_request, std::move(what), where, std::move(next)};
    };
    const auto& asked = *request.share;
    const unsigned streams = tester.streams(Side::left);
    if (tester.streams(Side::right) != streams) {
        refuse(fmt::format("a share, but the left side has {} streams and the right side {}", streams,
                           tester.streams(Side::right)),
               "share", "Open both sides with as many streams.");
    }
    if (asked.first + streams > asked.stride) {
        refuse(fmt::format("streams {} to {} are not among {}", asked.first, asked.first + streams - 1, asked.stride),
               "share", "Let stride be the number of streams of all testers, and first that of those before this one.");
    }
    for (const auto direction : request.directions) {
        if (tester.share(request, direction).count(frames_of(request)) == 0) {
            throw Fault{FaultCode::bad_rate,
                        fmt::format("{} frames for each direction, none of which is this tester's", frames_of(request)),
                        "share", fmt::format("Send at least {} frames.", asked.stride)};
        }
    }
}

/// Nothing was sent, and nothing will be.
[[noreturn]] void refuse_start(std::int64_t start_at_unix_ns, double ahead_s, const char* what) {
    throw Fault{FaultCode::too_late,
                fmt::format("frame 0 is due at {} ns of this host's clock, {:.3f} s {}: {}", start_at_unix_ns,
                            std::abs(ahead_s), ahead_s < 0 ? "ago" : "from now", what),
                "start_at_unix_ns",
                "Start later, after the waits of phases (a) and (b); and see that the clocks agree."};
}

/// Seconds until the time of day at which frame 0 is due.
double until_start_s(std::int64_t start_at_unix_ns) {
    return static_cast<double>(start_at_unix_ns - pace::sample_clocks().time_ns) / ns_per_second;
}

void check_start(const TrialRequest& request) {
    constexpr double longest_s = 3600;
    if (!request.start_at_unix_ns) return;
    const double ahead_s = until_start_s(*request.start_at_unix_ns);
    if (ahead_s < request.waits.after_routing_s + request.waits.after_learning_s + Timeline::lead_s)
        refuse_start(*request.start_at_unix_ns, ahead_s, "too soon for the waits before it");
    if (ahead_s > request.waits.after_routing_s + request.waits.after_learning_s + longest_s)
        refuse_start(*request.start_at_unix_ns, ahead_s, "hours away");
}

void check(const Tester& tester, const TrialRequest& request) {
    const auto frames = frames_of(request);
    if (frames == 0 || frames > most_frames) {
        throw Fault{FaultCode::bad_rate,
                    fmt::format("{} fps for {} s are {} frames for each direction", peak_fps(request),
                                sending_s(request), frames),
                    "trial", fmt::format("Want 1 to {} frames.", most_frames)};
    }
    if (request.share) check_share(tester, request);
    for (const auto direction : request.directions) {
        const double part = tester.share(request, direction).part();
        tester.check_rate(direction, part * request.rate_fps, tester.traffic(direction), "rate_fps");
        if (request.then)
            tester.check_rate(direction, part * request.then->rate_fps, tester.traffic(direction), "then.rate_fps");
    }
    tester.check_ports();
    tester.check_resolved("trial");
    check_start(request);
    if (const auto& delays = request.delays) {
        if (request.stops_when_failed) {
            throw Fault{FaultCode::bad_request, "delays are wanted of a trial that may stop early", "stop_when_failed",
                        "Want one or the other."};
        }
        const auto first = first_frame_of(request);
        if (first >= frames) {
            throw Fault{FaultCode::bad_request,
                        fmt::format("delays count from {} s on, but frames are sent for {} s", delays->from_s,
                                    request.duration_s),
                        "delays.from_s", "Let them count from an earlier time, or send for longer."};
        }
        if (delays->tagged_frames > frames - first) {
            throw Fault{FaultCode::bad_request,
                        fmt::format("{} frames are to be tagged, but {} are sent from {} s on", delays->tagged_frames,
                                    frames - first, delays->from_s),
                        "delays.tagged_frames", "Tag fewer, or send more."};
        }
    }
}

}  // namespace

tally::TrialResult Tester::run_trial(const TrialRequest& asked, TrialObserver& observer) {
    check(*this, asked);
    prepare_connections(asked);
    check_map_memory(map_memory(*this, asked), available_octets());
    TrialRequest request = asked;
    if (!request.has_overdue_after) request.limits.overdue_after_us = tally::usual_overdue_after_us(peak_fps(request));
    std::array<tally::SequenceMap, 2> maps;
    std::array<tally::Losses, 2> losses;
    std::array<std::optional<tally::DelayTracks>, 2> delays;
    try {
        for (const auto direction : request.directions) {
            const bool is_shared = receive_queues(plan::receiving_side(direction)) > 1;
            maps[static_cast<std::size_t>(direction)] = make_map(*this, request, direction);
            losses[static_cast<std::size_t>(direction)] =
                tally::Losses{share(request, direction).count(first_frame_of(request))};
            if (request.delays) delays[static_cast<std::size_t>(direction)].emplace(wish_of(request), is_shared);
        }
    } catch (const std::bad_alloc&) {
        throw Fault{FaultCode::no_memory, fmt::format("no memory to record {} frames a direction", frames_of(request)),
                    "trial", "Shorten the trial or lower the rate."};
    }

    tally::TrialResult result;
    result.trial = request.trial;
    result.started_at = fmt::format("{:%FT%TZ}", fmt::gmtime(std::chrono::system_clock::now()));
    result.frame_size = request_.frame_size;
    if (mix() != nullptr) {
        result.frame_size = static_cast<std::size_t>(std::llround(mix()->mean_frame_size()));
        result.mix = {.period_frames = mix()->period(), .mean_frame_size = mix()->mean_frame_size()};
    }
    result.intended_fps = mean_fps(request);
    result.intended_duration_s = sending_s(request);
    result.burst = request.burst;
    result.then = request.then;
    if (request.share)
        result.share = tally::Share{
            .first = request.share->first, .streams = streams(Side::left), .stride = request.share->stride};
    result.limits = request.limits;
    result.deviations = deviations_of(request, hosts_before(request.directions));
    const auto& w = request.waits;
    PhaseClock phases{*this, result, observer,
                      w.after_routing_s + w.after_learning_s + sending_s(request) + w.residual_s + w.restabilize_s};

    std::array<frame::TesterShare, 2> shares;
    for (const auto direction : request.directions)
        shares[static_cast<std::size_t>(direction)] = share(request, direction);

    bool goes_on = phases.wait("routing", w.after_routing_s);
    if (goes_on) {
        // Learning frames: the DUT learns the gateways from them (R2544-34). 65,533 hosts on the link would take some
        // seconds before each trial, and a DUT that heard of a host has not proved that it kept it: learn() does that,
        // once.
        if (!is_direct()) send_questions();
        // The others may need longer to be ready.
        const double wait_s =
            request.start_at_unix_ns
                ? std::max(w.after_learning_s, until_start_s(*request.start_at_unix_ns) - 2 * Timeline::lead_s)
                : w.after_learning_s;
        goes_on = phases.wait("learning", wait_s);
    }
    for (const auto side : {Side::left, Side::right})
        result.ports[index(side)].before = count_before(port(side), [&] { return taken_frames(side); });
    const double rate = ticks_per_second();
    const auto clock_before = pace::sample_clocks();
    std::array<tally::StreamOrder, 2> orders;
    for (const auto direction : request.directions) {
        orders[static_cast<std::size_t>(direction)] = {receive_queues(plan::receiving_side(direction)),
                                                       static_cast<unsigned>(share(request, direction).stride()),
                                                       static_cast<Ticks>(order_settles_us * rate / us_per_second)};
    }
    HostWitness host{*this};
    Timeline time{request, rate};
    const auto trials = make_worker_trials(*this, request, time, rate, {maps, orders, delays});
    if (request.start_at_unix_ns && goes_on) {
        constexpr double least_s = 0.01;
        if (const double ahead_s = until_start_s(*request.start_at_unix_ns); ahead_s < least_s)
            refuse_start(*request.start_at_unix_ns, ahead_s, "the tester was not ready by then");
    }
    if (goes_on) {
        const RunningTrials running{workers_, trials};
        SoFar so_far{request, trials, maps, shares, time.start, rate};
        const auto schedule = schedule_of(request, time.start, rate);
        const auto make_room = [&](Ticks now) {
            for (const auto direction : request.directions) {
                const auto& own = shares[static_cast<std::size_t>(direction)];
                const auto tenth_end = [&](std::uint64_t tenths) {
                    return own.count(frames_in_tenths(request, tenths));
                };
                auto& map = maps[static_cast<std::size_t>(direction)];
                auto& lost = losses[static_cast<std::size_t>(direction)];
                map.settle(own.count(schedule.due_count(now)), [&](std::uint64_t last) {
                    lost.take_arrivals(map, last);
                    lost.take_missing(map, last, tenth_end);
                });
            }
        };
        constexpr double at_most_s = 1e9;
        EarlyStop early{request, maps, time.start, rate, shares};
        std::optional<Progress::Failing> failing;
        const auto note_start = [&] {
            if (!request.start_at_unix_ns || result.start) return;
            result.start = tally::StartTime{.intended_unix_ns = *request.start_at_unix_ns,
                                            .actual_unix_ns = pace::time_at(time.start, pace::sample_clocks(), rate)};
        };
        const auto count = [&](Progress& progress) {
            const Ticks now = pace::TickClock::now();
            if (static_cast<std::int64_t>(now - time.start) >= 0) note_start();
            make_room(now);
            so_far.count(progress, now, result.stopped_early_s ? *result.stopped_early_s : sending_s(request));
            progress.failing = failing;
        };
        const auto until = [&](Ticks end) {
            return [=] { return static_cast<std::int64_t>(pace::TickClock::now() - end) >= 0; };
        };
        // Among several testers the client adds up, and tells all of them one end.
        const auto early_end = [&](Ticks now) -> std::optional<std::uint64_t> {
            if (!request.share) return early.look(now);
            failing = {.lost_frames = early.lost(now), .allowed_frames = early.allowed()};
            const auto wanted_s = observer.wanted_end_s();
            return wanted_s ? early.end(now, *wanted_s) : std::nullopt;
        };
        const auto is_sent = [&] {
            const Ticks now = pace::TickClock::now();
            if (request.stops_when_failed && !result.stopped_early_s) {
                if (const auto frames = early_end(now)) {
                    result.stopped_early_s = static_cast<double>(*frames) / request.rate_fps;
                    time.end_sending_after(*result.stopped_early_s, w, rate);
                    for (const auto& trial : trials)
                        trial->shorten({.frames = *frames,
                                        .send_deadline = time.send_deadline,
                                        .residual_end = time.residual_end,
                                        .finish = time.finish});
                }
            }
            return static_cast<std::int64_t>(now - time.send_deadline) >= 0;
        };
        goes_on = phases.wait("sending", at_most_s, is_sent, count);
        goes_on = goes_on && phases.wait("residual", at_most_s, until(time.residual_end), count);
        goes_on = goes_on && phases.wait("restabilize", at_most_s, until(time.finish), count);
        // A host that is busy may not have let this thread look before.
        if (goes_on) note_start();
    }
    host.end(rate);
    result.host = host.record();
    result.stopped = !goes_on && !has_lost_a_port();  // that ended it, and nobody else
    for (const auto side : {Side::left, Side::right}) {
        auto& counters = result.ports[index(side)];
        counters.after = count_after(port(side), counters.before, [&] { return taken_frames(side); });
    }
    constexpr double per_million = 1e6;
    result.ticks_per_second = rate;
    result.clock_offsets = clock_offsets_;
    const auto clock_after = pace::sample_clocks();
    result.clock_error_ppm = (pace::ticks_per_second(clock_before, clock_after) / rate - 1) * per_million;
    if (pace::is_steered_clock_right())
        result.steered_clock_error_ppm =
            (rate / pace::steered_ticks_per_second(opened_at_, clock_after) - 1) * per_million;
    for (const auto direction : request.directions) {
        take_back_copies(trials, direction, maps[static_cast<std::size_t>(direction)]);
        const auto& tracks = delays[static_cast<std::size_t>(direction)];
        auto& d = result.directions.emplace_back(
            sum_up(*this, request, direction, trials, maps[static_cast<std::size_t>(direction)],
                   losses[static_cast<std::size_t>(direction)], tracks ? &*tracks : nullptr, time.start, rate,
                   result.sending_s()));
        if (request.connections) count_connections(d, *request.connections, *state_table_);
        d.away_frames = host.frames_while_away(peak_fps(request), time.start, time.send_deadline, rate);
    }
    tally::judge(result);
    return result;
}

}  // namespace evenhand::run
