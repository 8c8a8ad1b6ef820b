// SPDX-License-Identifier: Apache-2.0
#include "run/worker_trials.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <type_traits>
#include <utility>
#include <variant>

#include "frame/connections.hpp"
#include "frame/envelope.hpp"
#include "frame/host_mac_source.hpp"
#include "frame/mix_source.hpp"
#include "frame/source.hpp"
#include "frame/template.hpp"
#include "frame/translation.hpp"
#include "run/load.hpp"
#include "run/trial_map.hpp"
#include "units.hpp"

namespace evenhand::run {
namespace {

using plan::Direction;
using plan::IpVersion;
using plan::Side;

using Plain = frame::TestFrameSource;
template <IpVersion V>
using WithHostMacs = frame::HostMacSource<Plain, V>;
using Translated = frame::TranslatedSource;
using Connections = frame::ConnectionSource;
using Mixed = frame::MixSource;

/// A kind of traffic: the source that writes its frames, and the type of the expectation for what arrives of them.
template <FrameSource S>
struct Kind {
    using Source = S;
    using Expected = typename S::Expectation;
};

/// All kinds of traffic. The loop is compiled for the source of the kind, and receivers expect what goes with it (one
/// of ExpectedFrames), so that the two cannot differ.
using TrafficKind = std::variant<Kind<Plain>, Kind<WithHostMacs<IpVersion::v4>>, Kind<WithHostMacs<IpVersion::v6>>,
                                 Kind<Translated>, Kind<Connections>, Kind<Mixed>>;

/// Something is a kind of its own if the others would otherwise pay for it with each frame: a trial whose hosts all
/// have the port's MAC runs a loop that knows no other MACs.
TrafficKind kind_of(const Tester& tester) {
    const auto& open = tester.request();
    if (tester.has_mix()) return Kind<Mixed>{};
    if (open.plan.has_state) return Kind<Connections>{};
    if (open.plan.is_translated()) return Kind<Translated>{};
    if (open.host_macs == HostMacMode::port) return Kind<Plain>{};
    if (open.plan.version() == IpVersion::v4) return Kind<WithHostMacs<IpVersion::v4>>{};
    return Kind<WithHostMacs<IpVersion::v6>>{};
}

/// Makes the workers' parts of a trial, one after the other.
class TrialMaker {
   public:
    TrialMaker(Tester& tester, const TrialRequest& request, const Timeline& time, double ticks_per_second,
               TrialRecords& records)
        : tester_{tester},
          request_{request},
          time_{time},
          ticks_per_second_{ticks_per_second},
          records_{records},
          kind_{kind_of(tester)} {}

    /// The part of the worker that has this number in the request.
    [[nodiscard]] std::unique_ptr<WorkerTrial> make(std::size_t number) const {
        const auto& worker = tester_.request().workers[number];
        auto trial = std::make_unique<WorkerTrial>();
        trial->loop = make_loop_of(worker, tester_.workers()[number]->queues());
        for (std::size_t i = 0; i < worker.receivers.size(); ++i) {
            const auto direction = plan::direction_sent_by(plan::other_side(worker.receivers[i].side));
            if (is_asked_for(direction)) trial->receptions.push_back(make_reception(number, i, direction));
        }
        if (request_.clean) {
            trial->lapses = make_lapses();
            for (auto& reception : trial->receptions) reception.expectation.lapses = &trial->lapses->of_receivers;
        }
        trial->finish = time_.finish;
        return trial;
    }

   private:
    using Queues = WorkerQueues<port::DpdkPort>;

    [[nodiscard]] bool is_asked_for(Direction direction) const {
        return std::ranges::find(request_.directions, direction) != request_.directions.end();
    }
    [[nodiscard]] Ticks ticks(double us) const { return static_cast<Ticks>(us * ticks_per_second_ / us_per_second); }

    /// Has room for as many lapses as a busy host causes. Lapses are separate if they are more than a millisecond
    /// apart.
    [[nodiscard]] std::unique_ptr<WorkerTrial::Lapses> make_lapses() const {
        constexpr double most_a_second = 10;
        constexpr double least = 4096;
        constexpr double joined_us = 1000;
        const auto most = static_cast<std::size_t>(std::max(least, most_a_second * sending_s(request_)));
        return std::make_unique<WorkerTrial::Lapses>(most, ticks(joined_us));
    }

    /// By how much a port may be slower than the schedule: see Punctuality.
    [[nodiscard]] std::uint64_t port_lag() const {
        return static_cast<std::uint64_t>(std::ldexp(request_.limits.offered_tolerance, 32));
    }

    [[nodiscard]] frame::FrameTemplate template_of(Side side, const frame::StreamIdentity& identity) const {
        const auto& responder = tester_.responder(side);
        const auto& sent = tester_.traffic(identity.direction).kinds.front().sent;
        return frame::make_template(tester_.request().plan, sent.frame_size, identity, responder.own_mac(),
                                    responder.dut_mac().value());
    }

    /// Which of this tester's connections each frame of a direction belongs to.
    [[nodiscard]] plan::ConnectionDraw connection_draw(Direction direction) const {
        const auto use = request_.connections->use == ConnectionRequest::Use::established
                             ? plan::ConnectionUse::drawn
                             : plan::ConnectionUse::each_once;
        return {use, direction, tester_.state_table()->connections(), tester_.request().seed};
    }

    // source_of(): what one sender sends, for each kind of traffic. Arguments: the side that sends, the identity of the
    // stream, and its share of the direction's frames.

    template <class Source>
        requires(std::is_same_v<Source, Plain> || std::is_same_v<Source, Translated>)
    [[nodiscard]] Source source_of(Kind<Source> /*kind*/, Side side, const frame::StreamIdentity& identity,
                                   const frame::StreamShare& share) const {
        const auto& open = tester_.request();
        return {template_of(side, identity), plan::FlowDraw{open.plan, identity.direction, open.seed}, share};
    }

    template <IpVersion V>
    [[nodiscard]] WithHostMacs<V> source_of(Kind<WithHostMacs<V>> /*kind*/, Side side,
                                            const frame::StreamIdentity& identity,
                                            const frame::StreamShare& share) const {
        return {source_of(Kind<Plain>{}, side, identity, share),
                plan::HostSet{tester_.traffic(identity.direction).kinds.front().sent.sources},
                plan::HostMacs{tester_.request().seed, side}};
    }

    [[nodiscard]] Connections source_of(Kind<Connections> /*kind*/, Side side, const frame::StreamIdentity& identity,
                                        const frame::StreamShare& share) const {
        return {template_of(side, identity),
                frame::ConnectionFlows{*tester_.state_table(), connection_draw(identity.direction), identity.direction,
                                       frame::LinkEnd::sent},
                share};
    }

    [[nodiscard]] Mixed source_of(Kind<Mixed> /*kind*/, Side side, const frame::StreamIdentity& identity,
                                  const frame::StreamShare& share) const {
        const auto& open = tester_.request();
        std::vector<plan::MacAddress> dut_macs;
        dut_macs.reserve(tester_.plans());
        for (std::size_t p = 0; p < tester_.plans(); ++p)
            dut_macs.push_back(tester_.responder(side, p).dut_mac().value());
        const auto host_macs =
            open.host_macs == HostMacMode::pseudorandom ? std::optional{plan::HostMacs{open.seed, side}} : std::nullopt;
        return Mixed{frame::make_mix_parts(
            open.plan, tester_.untagged_mix(side), open.seed, identity, share,
            {.source_mac = tester_.responder(side).own_mac(), .dut_macs = dut_macs, .hosts = host_macs})};
    }

    [[nodiscard]] std::unique_ptr<TrialLoop> make_loop_of(const WorkerRequest& worker, Queues& queues) const {
        return std::visit(
            [&]<class Source>(Kind<Source> kind) {
                return make_tagged_or_not<Source>(
                    worker, queues,
                    [this, kind](Side side, const frame::StreamIdentity& identity, const frame::StreamShare& share) {
                        return source_of(kind, side, identity, share);
                    });
            },
            kind_);
    }

    /// A trial without VLAN tags and tunnels runs a loop that knows none. `make_source`: as source_of().
    template <class Source, class MakeSource>
    [[nodiscard]] std::unique_ptr<TrialLoop> make_tagged_or_not(const WorkerRequest& worker, Queues& queues,
                                                                MakeSource make_source) const {
        if (!tester_.has_envelopes()) return make_senders<Source>(worker, queues, make_source);
        using Tagged = frame::TaggedSource<Source>;
        return make_senders<Tagged>(
            worker, queues, [&](Side side, const frame::StreamIdentity& identity, const frame::StreamShare& share) {
                return Tagged{make_source(side, identity, share), tester_.envelope(side)};
            });
    }

    template <class Source, class MakeSource>
    [[nodiscard]] std::unique_ptr<TrialLoop> make_senders(const WorkerRequest& worker, Queues& queues,
                                                          MakeSource make_source) const {
        std::vector<Sender<port::DpdkPort, Source>> senders;
        std::vector<Stream> streams;
        for (const auto& s : worker.senders) {
            const auto direction = plan::direction_sent_by(s.side);
            if (!is_asked_for(direction)) continue;
            const frame::StreamShare share = records_[direction].share.stream(s.number);
            const frame::StreamIdentity identity{.direction = direction,
                                                 .stream = static_cast<std::uint8_t>(share.first),
                                                 .trial = tester_.wire_trial(request_.trial)};
            const auto load = of_direction(request_, direction);
            const auto schedule = schedule_of(load, time_.start, ticks_per_second_).stream(share.first, share.stride);
            senders.emplace_back(
                tester_.port(s.side), tester_.transmit_queue(s.side, s.number), make_source(s.side, identity, share),
                schedule, share.count(frames_of(load)),
                Punctuality{.overdue_after = ticks(request_.limits.overdue_after_us), .port_lag = port_lag()},
                time_.send_deadline);
            streams.push_back(
                {.direction = direction, .share = share, .own = records_[direction].share.own_stream(share)});
        }
        return make_loop(queues, std::move(senders), std::move(streams));
    }

    /// The part of a ring that counts as its size in a trial that is judged by its clean time, in which frames may
    /// arrive faster than the load for a while.
    static constexpr double nearly_full = 0.8;

    [[nodiscard]] WorkerTrial::Reception make_reception(std::size_t worker, std::size_t receiver,
                                                        Direction direction) const {
        const auto side = plan::receiving_side(direction);
        auto& record = records_[direction];
        const auto share = record.share;
        const auto load = of_direction(request_, direction);
        const double part_of_port = tester_.part_of_port(request_, direction);
        const auto ticks_of = [&](double frames) {
            return static_cast<Ticks>(frames * part_of_port / (share.part() * peak_fps(load)) * ticks_per_second_);
        };
        // The port's hash may send all frames to one queue; with a single address pair it does.
        const bool is_one_of_many = tester_.receive_queues(side) > 1;
        auto& tracks = record.delays;
        WorkerTrial::Reception reception{
            .receiver = receiver,
            .direction = direction,
            .expectation = {.trial = tester_.wire_trial(request_.trial),
                            .direction = direction,
                            .frames = expected_frames(direction),
                            .share = share,
                            .start = time_.start,
                            .clock_skew = ticks(tally::clock_skew_us),
                            .residual_end = time_.residual_end,
                            .ring_lasts =
                                ticks_of((request_.clean ? nearly_full : 1) * tester_.port(side).receive_ring_frames()),
                            .burst_lasts = ticks_of(receive_burst),
                            .is_one_of_many = is_one_of_many,
                            .order = is_one_of_many ? &record.order : nullptr,
                            .delays = tracks ? &*tracks : nullptr,
                            .schedule = schedule_of(load, time_.start, ticks_per_second_),
                            .overdue_after = ticks(request_.limits.overdue_after_us),
                            .port_lag = port_lag()},
            .map = &record.map,
            .part = receiving_workers_before(tester_.request(), side, worker),
            .tally = std::make_unique<tally::ReceiverTally>()};
        if (const auto* const mix = tester_.mix(direction); mix != nullptr && mix->has_flows())
            reception.tally->flows.resize(mix->classes().size());
        if (request_.clean) reception.tally->delay_by_slice = tally::SliceDelays{finer_slices(request_)};
        if (tracks) {
            reception.spread = std::make_unique<tally::DelaySpread>();
            reception.expectation.spread = reception.spread.get();
        }
        if (tracks && tracks->wish().has_variation) {
            reception.variation = std::make_unique<tally::VariationHistogram>();
            reception.expectation.variation = reception.variation.get();
        }
        return reception;
    }

    /// What one receiver of this direction expects.
    [[nodiscard]] ExpectedFrames expected_frames(Direction direction) const {
        const auto& arrives = tester_.traffic(direction).kinds.front().arrives;
        return std::visit(
            [&]<class Source>(Kind<Source> /*kind*/) -> ExpectedFrames {
                using Expected = typename Kind<Source>::Expected;
                if constexpr (std::is_same_v<Expected, frame::MixExpectation>) {
                    return mix_expectation(direction);
                } else if constexpr (std::is_same_v<Expected, frame::ConnectionExpectation>) {
                    return connection_expectation(direction, arrives);
                } else if constexpr (std::is_same_v<Expected, frame::TranslationExpectation>) {
                    return translation_expectation(direction, arrives, 0);
                } else {
                    static_assert(std::is_same_v<Expected, frame::TestFrameExpectation>);
                    return known_frames(direction, arrives, 0);
                }
            },
            kind_);
    }

    [[nodiscard]] frame::MixExpectation mix_expectation(Direction direction) const {
        std::vector<frame::MixExpectation::Class> classes;
        const auto& mix = *tester_.mix(direction);
        const auto& kinds = tester_.traffic(direction).kinds;
        classes.reserve(kinds.size());
        for (std::size_t c = 0; c < kinds.size(); ++c) {
            const auto plan = mix.classes()[c].plan;
            const auto& arrives = kinds[c].arrives;
            // Classes of one plan share the flows that are drawn.
            const std::span before{mix.classes().data(), c};
            const auto same = std::ranges::find(before, plan, &frame::FrameClass::plan);
            const auto known = static_cast<std::size_t>(same - before.begin());
            if (known == c) {
                classes.push_back({.frames = known_frames(direction, arrives, plan)});
            } else {
                classes.push_back({.frames = tester_.frame_expectation(direction, arrives, plan)});
                classes.back().frames.know_as(classes[known].frames);
            }
            if (tester_.plan(plan).is_translated())
                classes.back().translated.emplace(translation_expectation(direction, arrives, plan));
        }
        return {mix, std::move(classes)};
    }

    [[nodiscard]] frame::ConnectionExpectation connection_expectation(Direction direction,
                                                                      const frame::LinkFrames& arrives) const {
        return {tester_.frame_expectation(direction, arrives),
                arrives,
                *tester_.state_table(),
                connection_draw(direction),
                direction,
                request_.connections->use == ConnectionRequest::Use::establish,
                records_[direction].share.stride()};
    }

    /// Frames of this plan as they arrive. Each must be the very frame that was sent, where the DUT does not translate.
    [[nodiscard]] frame::TestFrameExpectation known_frames(Direction direction, const frame::LinkFrames& arrives,
                                                           std::size_t plan) const {
        auto frames = tester_.frame_expectation(direction, arrives, plan);
        const auto& of = tester_.plan(plan);
        if (!of.has_state && !of.is_translated())
            frames.know(tester_.has_mix()
                            ? frame::draw_of(of, *tester_.mix(direction), direction, tester_.request().seed)
                            : plan::FlowDraw{of, direction, tester_.request().seed},
                        records_[direction].share.stride());
        return frames;
    }

    /// Frames of this plan, which the DUT translates, as they arrive.
    [[nodiscard]] frame::TranslationExpectation translation_expectation(Direction direction,
                                                                        const frame::LinkFrames& arrives,
                                                                        std::size_t plan) const {
        return {tester_.frame_expectation(direction, arrives, plan), arrives,
                plan::FlowDraw{tester_.plan(plan), direction, tester_.request().seed},
                records_[direction].share.stride()};
    }

    Tester& tester_;
    const TrialRequest& request_;
    const Timeline& time_;
    double ticks_per_second_;
    TrialRecords& records_;
    TrafficKind kind_;
};

}  // namespace

std::vector<std::unique_ptr<WorkerTrial>> make_worker_trials(Tester& tester, const TrialRequest& request,
                                                             const Timeline& time, double ticks_per_second,
                                                             TrialRecords& records) {
    const TrialMaker maker{tester, request, time, ticks_per_second, records};
    std::vector<std::unique_ptr<WorkerTrial>> trials;
    trials.reserve(tester.workers().size());
    for (std::size_t i = 0; i < tester.workers().size(); ++i) trials.push_back(maker.make(i));
    return trials;
}

}  // namespace evenhand::run
