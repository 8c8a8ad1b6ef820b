// SPDX-License-Identifier: Apache-2.0
#include "run/worker_trials.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "frame/connections.hpp"
#include "frame/host_mac_source.hpp"
#include "frame/mix_source.hpp"
#include "frame/source.hpp"
#include "frame/template.hpp"
#include "frame/translation.hpp"
#include "frame/vlan.hpp"
#include "run/load.hpp"
#include "run/trial_map.hpp"
#include "units.hpp"

namespace evenhand::run {
namespace {

using plan::Direction;
using plan::IpVersion;
using plan::Side;

/// The shares of the workers, made one after the other.
class TrialMaker {
   public:
    TrialMaker(Tester& tester, const TrialRequest& request, const Timeline& time, double ticks_per_second,
               TrialRecords& records)
        : tester_{tester}, request_{request}, time_{time}, ticks_per_second_{ticks_per_second}, records_{records} {}

    /// Of the worker with this number in the request.
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

    /// Room for as many lapses as a busy host brings about; they are told apart to a millisecond.
    [[nodiscard]] std::unique_ptr<WorkerTrial::Lapses> make_lapses() const {
        constexpr double most_a_second = 10;
        constexpr double least = 4096;
        constexpr double joined_us = 1000;
        const auto most = static_cast<std::size_t>(std::max(least, most_a_second * sending_s(request_)));
        return std::make_unique<WorkerTrial::Lapses>(most, ticks(joined_us));
    }

    /// By which a port may be slower than the schedule: see Punctuality.
    [[nodiscard]] std::uint64_t port_lag() const {
        return static_cast<std::uint64_t>(std::ldexp(request_.limits.offered_tolerance, 32));
    }

    using Plain = frame::TestFrameSource;
    using Translated = frame::TranslatedSource;

    [[nodiscard]] frame::FrameTemplate template_of(Side side, const frame::StreamIdentity& identity) const {
        const auto& responder = tester_.responder(side);
        const auto& sent = tester_.traffic(identity.direction).kinds.front().sent;
        return frame::make_template(tester_.request().plan, sent.frame_size, identity, responder.own_mac(),
                                    responder.dut_mac().value());
    }

    template <class Source>
    [[nodiscard]] auto source_of() const {
        return [this](Side side, const frame::StreamIdentity& identity, const frame::StreamShare& share) {
            const auto& open = tester_.request();
            return Source{template_of(side, identity), plan::FlowDraw{open.plan, identity.direction, open.seed}, share};
        };
    }

    /// Which of this tester's connections each frame of a direction is of.
    [[nodiscard]] plan::ConnectionDraw connection_draw(Direction direction) const {
        const auto use = request_.connections->use == ConnectionRequest::Use::established
                             ? plan::ConnectionUse::drawn
                             : plan::ConnectionUse::each_once;
        return {use, direction, tester_.state_table()->connections(), tester_.request().seed};
    }

    [[nodiscard]] std::unique_ptr<TrialLoop> make_connection_loop(const WorkerRequest& worker, Queues& queues) const {
        return make_tagged_or_not<frame::ConnectionSource>(
            worker, queues, [&](Side side, const frame::StreamIdentity& identity, const frame::StreamShare& share) {
                const auto direction = identity.direction;
                return frame::ConnectionSource{
                    template_of(side, identity),
                    frame::ConnectionFlows{*tester_.state_table(), connection_draw(direction), direction,
                                           frame::LinkEnd::sent},
                    share};
            });
    }

    /// The kind of frame is chosen here: a trial whose hosts have the port's MAC runs the loop without theirs.
    [[nodiscard]] std::unique_ptr<TrialLoop> make_loop_of(const WorkerRequest& worker, Queues& queues) const {
        const auto& open = tester_.request();
        if (tester_.mix() != nullptr) return make_mix_loop(worker, queues);
        if (open.plan.has_state) return make_connection_loop(worker, queues);
        if (open.plan.is_translated()) return make_tagged_or_not<Translated>(worker, queues, source_of<Translated>());
        if (open.host_macs == HostMacMode::port) return make_tagged_or_not<Plain>(worker, queues, source_of<Plain>());
        return open.plan.version() == IpVersion::v4 ? make_loop_with_macs<IpVersion::v4>(worker, queues)
                                                    : make_loop_with_macs<IpVersion::v6>(worker, queues);
    }

    template <IpVersion V>
    [[nodiscard]] std::unique_ptr<TrialLoop> make_loop_with_macs(const WorkerRequest& worker, Queues& queues) const {
        using WithMacs = frame::HostMacSource<Plain, V>;
        return make_tagged_or_not<WithMacs>(
            worker, queues, [&](Side side, const frame::StreamIdentity& identity, const frame::StreamShare& share) {
                return WithMacs{source_of<Plain>()(side, identity, share),
                                plan::HostSet{tester_.traffic(identity.direction).kinds.front().sent.sources},
                                plan::HostMacs{tester_.request().seed, side}};
            });
    }

    /// The same where frames are of several classes.
    [[nodiscard]] std::unique_ptr<TrialLoop> make_mix_loop(const WorkerRequest& worker, Queues& queues) const {
        const auto& open = tester_.request();
        const auto source = [&](Side side, const frame::StreamIdentity& identity, const frame::StreamShare& share) {
            std::vector<plan::MacAddress> dut_macs;
            dut_macs.reserve(tester_.plans());
            for (std::size_t p = 0; p < tester_.plans(); ++p)
                dut_macs.push_back(tester_.responder(side, p).dut_mac().value());
            const auto host_macs = open.host_macs == HostMacMode::pseudorandom
                                       ? std::optional{plan::HostMacs{open.seed, side}}
                                       : std::nullopt;
            return frame::MixSource{frame::make_mix_parts(
                open.plan, tester_.untagged_mix(side), open.seed, identity, share,
                {.source_mac = tester_.responder(side).own_mac(), .dut_macs = dut_macs, .hosts = host_macs})};
        };
        return make_tagged_or_not<frame::MixSource>(worker, queues, source);
    }

    /// A trial without VLAN tags runs the loop without those. `make_source`: from the side that sends, the identity of
    /// the stream, and its share.
    template <class Source, class MakeSource>
    [[nodiscard]] std::unique_ptr<TrialLoop> make_tagged_or_not(const WorkerRequest& worker, Queues& queues,
                                                                MakeSource make_source) const {
        if (!tester_.has_tags()) return make_senders<Source>(worker, queues, make_source);
        using Tagged = frame::TaggedSource<Source>;
        return make_senders<Tagged>(
            worker, queues, [&](Side side, const frame::StreamIdentity& identity, const frame::StreamShare& share) {
                return Tagged{make_source(side, identity, share), tester_.tags(side)};
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
            const frame::StreamShare share = tester_.share(request_, direction).stream(s.number);
            const frame::StreamIdentity identity{.direction = direction,
                                                 .stream = static_cast<std::uint8_t>(share.first),
                                                 .trial = tester_.wire_trial(request_.trial)};
            const auto schedule =
                schedule_of(request_, time_.start, ticks_per_second_).stream(share.first, share.stride);
            senders.emplace_back(
                tester_.port(s.side), s.number, make_source(s.side, identity, share), schedule,
                share.count(frames_of(request_)),
                Punctuality{.overdue_after = ticks(request_.limits.overdue_after_us), .port_lag = port_lag()},
                time_.send_deadline);
            streams.push_back(
                {.direction = direction, .share = share, .own = tester_.share(request_, direction).own_stream(share)});
        }
        return make_loop(queues, std::move(senders), std::move(streams));
    }

    /// Of a ring, in a trial that is judged by its clean time: what comes may come faster than the load for a while.
    static constexpr double nearly_full = 0.8;

    [[nodiscard]] WorkerTrial::Reception make_reception(std::size_t worker, std::size_t receiver,
                                                        Direction direction) const {
        const auto side = plan::receiving_side(direction);
        const auto index = static_cast<std::size_t>(direction);
        const auto share = tester_.share(request_, direction);
        const auto ticks_of = [&](double frames) {
            return static_cast<Ticks>(frames / (share.part() * peak_fps(request_)) * ticks_per_second_);
        };
        // The port's hash may give all frames to one queue; with a single address pair it does.
        const bool is_one_of_many = tester_.receive_queues(side) > 1;
        auto& tracks = records_.delays[index];
        WorkerTrial::Reception reception{
            .receiver = receiver,
            .direction = direction,
            .expectation = {.trial = tester_.wire_trial(request_.trial),
                            .direction = direction,
                            .frames = known_frames(direction, tester_.traffic(direction).kinds.front().arrives, 0),
                            .share = share,
                            .start = time_.start,
                            .clock_skew = ticks(tally::clock_skew_us),
                            .residual_end = time_.residual_end,
                            .ring_lasts =
                                ticks_of((request_.clean ? nearly_full : 1) * tester_.port(side).receive_ring_frames()),
                            .burst_lasts = ticks_of(receive_burst),
                            .is_one_of_many = is_one_of_many,
                            .order = is_one_of_many ? &records_.orders[index] : nullptr,
                            .delays = tracks ? &*tracks : nullptr,
                            .schedule = schedule_of(request_, time_.start, ticks_per_second_),
                            .overdue_after = ticks(request_.limits.overdue_after_us),
                            .port_lag = port_lag()},
            .map = &records_.maps[index],
            .part = receiving_workers_before(tester_.request(), side, worker),
            .tally = std::make_unique<tally::ReceiverTally>()};
        if (request_.clean) reception.tally->delay_by_slice = tally::SliceDelays{finer_slices(request_)};
        if (tester_.mix() != nullptr) {
            reception.mix = make_mix_expectation(direction);
            reception.expectation.mix = reception.mix.get();
        } else if (tester_.plan(0).has_state) {
            const auto& arrives = tester_.traffic(direction).kinds.front().arrives;
            reception.connections = std::make_unique<frame::ConnectionExpectation>(
                tester_.frame_expectation(direction, arrives), arrives, *tester_.state_table(),
                connection_draw(direction), direction, request_.connections->use == ConnectionRequest::Use::establish,
                share.stride());
            reception.expectation.connections = reception.connections.get();
        } else if (tester_.plan(0).is_translated()) {
            reception.translation = std::make_unique<frame::TranslationExpectation>(
                translation_expectation(direction, tester_.traffic(direction).kinds.front().arrives, 0));
            reception.expectation.translation = reception.translation.get();
        }
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

    /// What arrives of a mix in one direction.
    [[nodiscard]] std::unique_ptr<frame::MixExpectation> make_mix_expectation(Direction direction) const {
        std::vector<frame::TestFrameExpectation> of_class;
        std::vector<std::optional<frame::TranslationExpectation>> translated;
        const auto& kinds = tester_.traffic(direction).kinds;
        of_class.reserve(kinds.size());
        for (std::size_t c = 0; c < kinds.size(); ++c) {
            const auto plan = tester_.mix()->classes()[c].plan;
            of_class.push_back(known_frames(direction, kinds[c].arrives, plan));
            translated.push_back(tester_.plan(plan).is_translated()
                                     ? std::optional{translation_expectation(direction, kinds[c].arrives, plan)}
                                     : std::nullopt);
        }
        return std::make_unique<frame::MixExpectation>(*tester_.mix(), std::move(of_class), std::move(translated));
    }

    /// What arrives of frames of this plan: the very ones that are sent, where the DUT does not translate.
    [[nodiscard]] frame::TestFrameExpectation known_frames(Direction direction, const frame::LinkFrames& arrives,
                                                           std::size_t plan) const {
        auto frames = tester_.frame_expectation(direction, arrives, plan);
        const auto& of = tester_.plan(plan);
        if (!of.has_state && !of.is_translated())
            frames.know(plan::FlowDraw{of, direction, tester_.request().seed},
                        tester_.share(request_, direction).stride());
        return frames;
    }

    /// What arrives of frames of this plan, which the DUT translates.
    [[nodiscard]] frame::TranslationExpectation translation_expectation(Direction direction,
                                                                        const frame::LinkFrames& arrives,
                                                                        std::size_t plan) const {
        return {tester_.frame_expectation(direction, arrives, plan), arrives,
                plan::FlowDraw{tester_.plan(plan), direction, tester_.request().seed},
                tester_.share(request_, direction).stride()};
    }

    Tester& tester_;
    const TrialRequest& request_;
    const Timeline& time_;
    double ticks_per_second_;
    TrialRecords& records_;
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
