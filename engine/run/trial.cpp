// SPDX-License-Identifier: Apache-2.0
// One trial: phases (a) to (e) of RFC 2544 section 23 around the loops, then the sums.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <new>
#include <thread>

#include "fault.hpp"
#include "frame/mix_source.hpp"
#include "frame/template.hpp"
#include "run/deviations.hpp"
#include "run/early_stop.hpp"
#include "run/host_record.hpp"
#include "run/load.hpp"
#include "run/settled.hpp"
#include "run/so_far.hpp"
#include "run/sum_up.hpp"
#include "run/tester.hpp"
#include "tally/losses.hpp"
#include "tally/verdict.hpp"

namespace evenhand::run {
namespace {

using plan::Direction;
using plan::IpVersion;
using plan::Side;
using Steady = std::chrono::steady_clock;

constexpr double us_per_second = 1e6;
constexpr double order_settles_us = 50;  // NICs write descriptors back in groups, or some microseconds later
constexpr std::uint64_t most_frames = std::uint64_t{1} << 44U;  // over 24 h at 148.8 Mfps

/// The first frame whose delay counts: the first that is due at `from_s` or later.
std::uint64_t first_frame_of(const TrialRequest& request) {
    return request.delays ? frames_before(request, request.delays->from_s) : 0;
}

/// Tagged frames are spread evenly over those whose delay counts.
tally::DelayWish wish_of(const TrialRequest& request) {
    const auto first = first_frame_of(request);
    const auto tagged = request.delays->tagged_frames;
    return {.first = first,
            .tag_every = tagged == 0 ? 1 : (frames_of(request) - first) / tagged,
            .tagged = tagged,
            .has_variation = request.delays->has_variation};
}

void check(const Tester& tester, const TrialRequest& request) {
    const auto frames = frames_of(request);
    if (frames == 0 || frames > most_frames) {
        throw Fault{FaultCode::bad_rate,
                    fmt::format("{} fps for {} s are {} frames for each direction", peak_fps(request),
                                sending_s(request), frames),
                    "trial", fmt::format("Want 1 to {} frames.", most_frames)};
    }
    const auto* const mix = tester.mix();
    for (const auto direction : request.directions) {
        if (mix == nullptr) {
            tester.check_rate(direction, request.rate_fps, tester.request().frame_size, "rate_fps");
            if (request.then)
                tester.check_rate(direction, request.then->rate_fps, tester.request().frame_size, "then.rate_fps");
        } else {
            tester.check_rate(direction, request.rate_fps, mix->period_octets(), "rate_fps", mix->period());
            if (request.then)
                tester.check_rate(direction, request.then->rate_fps, mix->period_octets(), "then.rate_fps",
                                  mix->period());
        }
    }
    tester.check_resolved("trial");
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

/// Keeps the time of the phases; while waiting it asks the observer and has an eye on the ports.
class PhaseClock {
   public:
    PhaseClock(Tester& tester, tally::TrialResult& result, TrialObserver& observer, double total_s)
        : tester_{tester}, result_{result}, observer_{observer} {
        progress_.trial = result.trial, progress_.total_s = total_s;
    }

    /// Wait until `done` or for `seconds`; false if the observer ended it. `count` puts frame counts into the progress.
    template <class Done, class Count>
    bool wait(const char* phase, double seconds, Done done, Count count) {
        using namespace std::chrono_literals;
        const auto begin = Steady::now();
        const double start_s = since(start_);
        bool goes_on = true;
        while (goes_on && !done() && since(begin) < seconds) {
            progress_.phase = phase;
            progress_.elapsed_s = since(start_);
            count(progress_);
            goes_on = observer_.goes_on(progress_);
            for (const auto side : {Side::left, Side::right}) tester_.port(side).keep_watch();
            std::this_thread::sleep_for(std::min<std::chrono::duration<double>>(
                20ms, std::chrono::duration<double>{std::max(0.0, seconds - since(begin))}));
        }
        result_.phases.push_back({.name = phase, .start_s = start_s, .seconds = since(begin)});
        return goes_on;
    }
    bool wait(const char* phase, double seconds) {
        const auto never = [] { return false; };
        const auto add_nothing = [](Progress&) {};
        return wait(phase, seconds, never, add_nothing);
    }

   private:
    static double since(Steady::time_point t) { return std::chrono::duration<double>{Steady::now() - t}.count(); }

    Tester& tester_;
    tally::TrialResult& result_;
    TrialObserver& observer_;
    Progress progress_;
    Steady::time_point start_ = Steady::now();
};

/// When the parts of phases (c) to (e) begin and end.
struct Timeline {
    Ticks start;          // frame 0 is due
    Ticks send_deadline;  // what could not be sent by then is not offered
    Ticks residual_end;   // what comes later is late
    Ticks finish;

    Timeline(const TrialRequest& request, double ticks_per_second) {
        constexpr double lead_s = 0.05;  // for the workers to leave their idle sleep
        start = pace::TickClock::now() + static_cast<Ticks>(lead_s * ticks_per_second);
        end_sending_after(run::sending_s(request), request.waits, ticks_per_second);
    }

    void end_sending_after(double duration_s, const Waits& waits, double ticks_per_second) {
        constexpr double grace_s = 0.01;  // a stalled sender may catch up so long; the offered load tells
        constexpr double grace_share = 1e-3;
        const auto ticks = [=](double seconds) { return static_cast<Ticks>(seconds * ticks_per_second); };
        send_deadline = start + ticks(duration_s * (1 + grace_share) + grace_s);
        residual_end = send_deadline + ticks(waits.residual_s);
        finish = residual_end + ticks(waits.restabilize_s);
    }
};

/// The senders of one worker. `make_source`: from the side that sends, the identity of the stream, and its share.
template <class Source, class MakeSource>
std::vector<Sender<port::DpdkPort, Source>> make_senders(Tester& tester, const TrialRequest& request,
                                                         const WorkerRequest& worker, const Timeline& time,
                                                         double ticks_per_second, WorkerTrial& trial,
                                                         MakeSource make_source) {
    std::vector<Sender<port::DpdkPort, Source>> senders;
    for (const auto& s : worker.senders) {
        const auto direction = plan::direction_sent_by(s.side);
        if (std::ranges::find(request.directions, direction) == request.directions.end()) continue;
        const frame::StreamIdentity identity{.direction = direction,
                                             .stream = static_cast<std::uint8_t>(s.number),
                                             .trial = tester.wire_trial(request.trial)};
        const frame::StreamShare share{.first = s.number, .stride = tester.streams(s.side)};
        const auto schedule = schedule_of(request, time.start, ticks_per_second).stream(share.first, share.stride);
        senders.emplace_back(
            tester.port(s.side), s.number, make_source(s.side, identity, share), schedule,
            share.count(frames_of(request)),
            Punctuality{
                .overdue_after = static_cast<Ticks>(request.limits.overdue_after_us * ticks_per_second / us_per_second),
                .port_lag = static_cast<std::uint64_t>(std::ldexp(request.limits.offered_tolerance, 32))},
            time.send_deadline);
        trial.sender_directions.push_back(direction);
        trial.sender_shares.push_back(share);
    }
    return senders;
}

/// Chosen here, before the start: a trial without VLAN tags runs the loop without those.
template <class Source, class MakeSource>
void make_tagged_or_plain(WorkerTrial& trial, Tester& tester, const TrialRequest& request, const WorkerRequest& worker,
                          const Timeline& time, double ticks_per_second, MakeSource make_source) {
    if (tester.has_tags()) {
        using Tagged = frame::TaggedSource<Source>;
        trial.senders = make_senders<Tagged>(
            tester, request, worker, time, ticks_per_second, trial,
            [&](Side side, const frame::StreamIdentity& identity, const frame::StreamShare& share) {
                return Tagged{make_source(side, identity, share), tester.tags(side)};
            });
    } else {
        trial.senders = make_senders<Source>(tester, request, worker, time, ticks_per_second, trial, make_source);
    }
}

/// Chosen here, before the start: a trial whose hosts have the port's MAC runs the loop without theirs.
template <IpVersion V>
void make_senders_of(WorkerTrial& trial, Tester& tester, const TrialRequest& request, const WorkerRequest& worker,
                     const Timeline& time, double ticks_per_second) {
    using Plain = frame::TestFrameSource<V>;
    using WithMacs = frame::HostMacSource<Plain, V>;
    const auto& open = tester.request();
    const auto make = [&]<class Source>(auto make_source) {
        make_tagged_or_plain<Source>(trial, tester, request, worker, time, ticks_per_second, make_source);
    };
    const auto plain = [&](Side side, const frame::StreamIdentity& identity, const frame::StreamShare& share) {
        const auto& responder = tester.responder(side);
        const auto frame_template = frame::make_template(open.plan, tester.untagged_frame_size(side), identity,
                                                         responder.own_mac(), responder.dut_mac().value());
        return Plain{frame_template, plan::FlowDraw{open.plan, identity.direction, open.seed}, share};
    };
    if (open.host_macs == HostMacMode::port) {
        make.template operator()<Plain>(plain);
    } else {
        make.template operator()<WithMacs>(
            [&](Side side, const frame::StreamIdentity& identity, const frame::StreamShare& share) {
                return WithMacs{plain(side, identity, share), plan::HostSet{open.plan.side(side).hosts},
                                plan::HostMacs{open.seed, side}};
            });
    }
}

/// The same where frames are of several classes.
void make_mix_senders(WorkerTrial& trial, Tester& tester, const TrialRequest& request, const WorkerRequest& worker,
                      const Timeline& time, double ticks_per_second) {
    const auto make_source = [&](Side side, const frame::StreamIdentity& identity, const frame::StreamShare& share) {
        std::vector<plan::MacAddress> dut_macs;
        dut_macs.reserve(tester.plans());
        for (std::size_t p = 0; p < tester.plans(); ++p)
            dut_macs.push_back(tester.responder(side, p).dut_mac().value());
        const auto& open = tester.request();
        const auto host_macs =
            open.host_macs == HostMacMode::pseudorandom ? std::optional{plan::HostMacs{open.seed, side}} : std::nullopt;
        return frame::MixSource{frame::make_mix_parts(
            open.plan, tester.untagged_mix(side), open.seed, identity, share,
            {.source_mac = tester.responder(side).own_mac(), .dut_macs = dut_macs, .hosts = host_macs})};
    };
    make_tagged_or_plain<frame::MixSource>(trial, tester, request, worker, time, ticks_per_second, make_source);
}

/// What arrives of a mix in one direction.
std::unique_ptr<frame::MixCheck> make_mix_check(const Tester& tester, Direction direction) {
    std::vector<frame::FrameCheck> of_class;
    const std::size_t around = tester.tags(plan::sending_side(direction)).octets() + frame::fcs_octets;
    for (const auto& c : tester.mix()->classes())
        of_class.push_back(tester.frame_check(direction, c.frame_size - around, c.plan));
    return std::make_unique<frame::MixCheck>(*tester.mix(), std::move(of_class));
}

std::vector<std::unique_ptr<WorkerTrial>> make_worker_trials(Tester& tester, const TrialRequest& request,
                                                             const Timeline& time, double ticks_per_second,
                                                             std::array<tally::SequenceMap, 2>& maps,
                                                             std::array<tally::StreamOrder, 2>& orders,
                                                             std::array<std::optional<tally::DelayTracks>, 2>& delays) {
    const auto& open = tester.request();
    std::vector<std::unique_ptr<WorkerTrial>> trials;
    for (const auto& worker : open.workers) {
        auto trial = std::make_unique<WorkerTrial>();
        if (tester.mix() != nullptr) {
            make_mix_senders(*trial, tester, request, worker, time, ticks_per_second);
        } else if (open.plan.version == IpVersion::v4) {
            make_senders_of<IpVersion::v4>(*trial, tester, request, worker, time, ticks_per_second);
        } else {
            make_senders_of<IpVersion::v6>(*trial, tester, request, worker, time, ticks_per_second);
        }
        for (std::size_t i = 0; i < worker.receivers.size(); ++i) {
            const auto side = worker.receivers[i].side;
            const auto direction = plan::direction_sent_by(plan::other_side(side));
            if (std::ranges::find(request.directions, direction) == request.directions.end()) continue;
            // The port's hash may give all frames to one queue; with a single address pair it does.
            auto& tracks = delays[static_cast<std::size_t>(direction)];
            const auto ticks_of = [&](double frames) {
                return static_cast<Ticks>(frames / peak_fps(request) * ticks_per_second);
            };
            trial->receptions.push_back(
                {.receiver = i,
                 .direction = direction,
                 .expectation =
                     {.trial = tester.wire_trial(request.trial),
                      .direction = direction,
                      .check = tester.frame_check(
                          direction, tester.untagged_frame_size(plan::sending_side(direction)) - frame::fcs_octets),
                      .start = time.start,
                      .clock_skew = static_cast<Ticks>(tally::clock_skew_us * ticks_per_second / us_per_second),
                      .residual_end = time.residual_end,
                      .ring_lasts = ticks_of(tester.port(side).receive_ring_frames()),
                      .burst_lasts = ticks_of(receive_burst),
                      .is_one_of_many = tester.receive_queues(side) > 1,
                      .order = tester.receive_queues(side) > 1 ? &orders[static_cast<std::size_t>(direction)] : nullptr,
                      .delays = tracks ? &*tracks : nullptr,
                      .schedule = schedule_of(request, time.start, ticks_per_second),
                      .overdue_after =
                          static_cast<Ticks>(request.limits.overdue_after_us * ticks_per_second / us_per_second)},
                 .map = &maps[static_cast<std::size_t>(direction)],
                 .tally = std::make_unique<tally::ReceiverTally>()});
            auto& reception = trial->receptions.back();
            if (tester.mix() != nullptr) {
                reception.mix = make_mix_check(tester, direction);
                reception.expectation.mix = reception.mix.get();
            }
            if (tracks) {
                reception.spread = std::make_unique<tally::DelaySpread>();
                reception.expectation.spread = reception.spread.get();
            }
            if (tracks && tracks->wish().has_variation) {
                reception.variation = std::make_unique<tally::VariationHistogram>();
                reception.expectation.variation = reception.variation.get();
            }
        }
        trial->finish = time.finish;
        trials.push_back(std::move(trial));
    }
    return trials;
}

}  // namespace

tally::TrialResult Tester::run_trial(const TrialRequest& asked, TrialObserver& observer) {
    check(*this, asked);
    TrialRequest request = asked;
    if (!request.has_overdue_after) request.limits.overdue_after_us = tally::usual_overdue_after_us(peak_fps(request));
    std::array<tally::SequenceMap, 2> maps;
    std::array<tally::Losses, 2> losses;
    std::array<std::optional<tally::DelayTracks>, 2> delays;
    try {
        for (const auto direction : request.directions) {
            const bool is_shared = receive_queues(plan::receiving_side(direction)) > 1;
            maps[static_cast<std::size_t>(direction)] = tally::SequenceMap{frames_of(request), is_shared};
            losses[static_cast<std::size_t>(direction)] = tally::Losses{first_frame_of(request)};
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
    result.limits = request.limits;
    result.deviations = deviations_of(request, hosts_before(request.directions));
    const auto& w = request.waits;
    PhaseClock phases{*this, result, observer,
                      w.after_routing_s + w.after_learning_s + sending_s(request) + w.residual_s + w.restabilize_s};

    bool goes_on = phases.wait("routing", w.after_routing_s);
    if (goes_on) {
        // Learning frames: the DUT learns the gateways from them (R2544-34). 65,533 hosts on the link would take some
        // seconds before each trial, and a DUT that heard of a host has not proved that it kept it: learn() does that,
        // once.
        if (!is_direct()) send_questions();
        goes_on = phases.wait("learning", w.after_learning_s);
    }
    for (const auto side : {Side::left, Side::right})
        result.ports[index(side)].before = count_before(port(side), [&] { return taken_frames(side); });
    const double rate = ticks_per_second();
    const auto clock_before = pace::sample_clocks();
    std::array<tally::StreamOrder, 2> orders;
    for (const auto direction : request.directions) {
        orders[static_cast<std::size_t>(direction)] = {receive_queues(plan::receiving_side(direction)),
                                                       streams(plan::sending_side(direction)),
                                                       static_cast<Ticks>(order_settles_us * rate / us_per_second)};
    }
    HostWitness host{*this};
    Timeline time{request, rate};
    const auto trials = make_worker_trials(*this, request, time, rate, maps, orders, delays);
    if (goes_on) {
        const RunningTrials running{workers_, trials};
        SoFar so_far{request, trials, maps, time.start, rate};
        const auto schedule = schedule_of(request, time.start, rate);
        const auto tenth_end = [&](std::uint64_t tenths) { return frames_in_tenths(request, tenths); };
        const auto make_room = [&](Ticks now) {
            for (const auto direction : request.directions) {
                auto& map = maps[static_cast<std::size_t>(direction)];
                auto& lost = losses[static_cast<std::size_t>(direction)];
                map.settle(schedule.due_count(now), [&](std::uint64_t last) {
                    lost.take_arrivals(map, last);
                    lost.take_missing(map, last, tenth_end);
                });
            }
        };
        const auto count = [&](Progress& progress) {
            const Ticks now = pace::TickClock::now();
            make_room(now);
            so_far.count(progress, now, result.stopped_early_s ? *result.stopped_early_s : sending_s(request));
        };
        const auto until = [&](Ticks end) {
            return [=] { return static_cast<std::int64_t>(pace::TickClock::now() - end) >= 0; };
        };
        constexpr double at_most_s = 1e9;
        EarlyStop early{request, maps, time.start, rate};
        const auto is_sent = [&] {
            const Ticks now = pace::TickClock::now();
            if (request.stops_when_failed && !result.stopped_early_s) {
                if (const auto frames = early.look(now)) {
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
    }
    host.end(rate);
    result.host = host.record();
    result.stopped = !goes_on;
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
        const auto& tracks = delays[static_cast<std::size_t>(direction)];
        auto& d = result.directions.emplace_back(
            sum_up(*this, request, direction, trials, maps[static_cast<std::size_t>(direction)],
                   losses[static_cast<std::size_t>(direction)], tracks ? &*tracks : nullptr, time.start, rate,
                   result.sending_s()));
        d.away_frames = host.frames_while_away(peak_fps(request), time.start, time.send_deadline, rate);
    }
    tally::judge(result);
    return result;
}

}  // namespace evenhand::run
