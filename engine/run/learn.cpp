// SPDX-License-Identifier: Apache-2.0
// Learning on the opened ports: round after round by the workers' own loops until every host has been reached.
#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>
#include <thread>
#include <utility>

#include "fault.hpp"
#include "frame/envelope.hpp"
#include "frame/learning_source.hpp"
#include "run/learning.hpp"
#include "run/tester.hpp"
#include "units.hpp"

namespace evenhand::run {
namespace {

using plan::Direction;
using Steady = std::chrono::steady_clock;

constexpr double lead_s = 0.05;  // time for the workers to wake from their idle sleep
/// The spacing of learning frames is not judged: a stalled sender, or one whose port refuses frames, gets this much
/// more time.
constexpr double grace_s = 5;

double since(Steady::time_point t) { return std::chrono::duration<double>{Steady::now() - t}.count(); }

/// Small test frames of this plan, whatever the frame size of trials is.
frame::Traffic learning_traffic(const Tester& tester, Direction direction, std::size_t plan) {
    const auto& of = tester.plan(plan);
    const auto& sender = of.side(plan::sending_side(direction));
    return frame::traffic_of(
        of, direction, frame::LearningSource::octets_of(sender.version()) + frame::fcs_octets - sender.added_octets);
}

/// A call: inlined, GCC 12 takes the variant of a reception that is destroyed early for unset, and warns.
[[gnu::noinline]] WorkerTrial::Reception reception_of(std::size_t receiver, ExpectedFrames expected,
                                                      HostsToReach& hosts, Ticks start, Ticks finish,
                                                      Ticks clock_skew) {
    constexpr Ticks for_ever = Ticks{1} << 62U;
    auto own_tally = std::make_unique<tally::ReceiverTally>();
    return {.receiver = receiver,
            .direction = hosts.direction(),
            .expectation = {.trial = 0,
                            .direction = hosts.direction(),
                            .frames = std::move(expected),
                            .start = start,
                            .clock_skew = clock_skew,
                            .residual_end = finish,
                            .ring_lasts = for_ever},
            .map = &hosts.map(),
            .tally = std::move(own_tally)};
}

/// One round, in all directions.
class Round {
   public:
    /// `plan`: its number; a mix of IP versions has two. `rate_share`: the share of the requested rate.
    Round(Tester& tester, const LearnRequest& request, double rate_share, std::size_t plan,
          std::vector<HostsToReach>& directions)
        : plan_{plan}, directions_{directions} {
        const double rate = tester.ticks_per_second();
        std::size_t longest = 0;
        for (const auto& d : directions) longest = std::max(longest, d.pending().size());
        const double rate_fps = request.rate_fps * rate_share;
        const double sending_s = static_cast<double>(longest) / rate_fps;
        const Ticks start = pace::TickClock::now() + static_cast<Ticks>(lead_s * rate);
        const Ticks finish = start + static_cast<Ticks>((2 * sending_s + grace_s + request.wait_s) * rate);
        give_up_s_ = lead_s + 2 * sending_s + grace_s + request.wait_s;
        for (const auto& worker : tester.request().workers) {
            auto share = std::make_unique<WorkerTrial>();
            share->finish = finish;
            Senders senders;
            std::vector<Stream> streams;
            for (auto& d : directions) {
                if (d.pending().empty()) continue;
                add_senders(tester, worker, d, {start, rate, rate_fps}, finish, senders, streams);
                add_receptions(tester, worker, d, start, finish, *share);
            }
            share->loop = make_loop(tester.workers()[shares_.size()]->queues(), std::move(senders), std::move(streams));
            shares_.push_back(std::move(share));
        }
    }

    /// False if the observer ended it.
    bool run(Tester& tester, const LearnRequest& request, const LearningProgress& before, LearningObserver& observer) {
        using namespace std::chrono_literals;
        std::uint64_t pending = 0;
        for (const auto& d : directions_) pending += d.pending().size();
        const BusyWorkers busy{tester.workers(), shares_};
        const auto begin = Steady::now();
        auto sent_at = Steady::time_point::max();
        bool goes_on = true;
        while (goes_on && since(begin) < give_up_s_) {
            const LearningProgress progress = count(before);
            goes_on = observer.goes_on(progress) && !tester.has_lost_a_port();
            if (is_all_reachable(progress)) break;
            if (sent_at == Steady::time_point::max() && sent_frames() == pending) sent_at = Steady::now();
            if (sent_at != Steady::time_point::max() && since(sent_at) >= request.wait_s) break;
            std::this_thread::sleep_for(10ms);
        }
        return goes_on;
    }

   private:
    using Senders = std::vector<Sender<port::DpdkPort, frame::TaggedSource<frame::LearningSource>>>;

    void add_senders(Tester& tester, const WorkerRequest& worker, const HostsToReach& hosts,
                     const pace::EvenSchedule& whole, Ticks deadline, Senders& senders,
                     std::vector<Stream>& streams_of_senders) const {
        for (const auto& s : worker.senders) {
            if (plan::direction_sent_by(s.side) != hosts.direction()) continue;
            const unsigned streams = tester.streams(s.side);
            const frame::StreamShare share{.first = s.number, .stride = streams};
            const frame::TaggedSource source{
                hosts.make_source(tester.plan(plan_), static_cast<std::uint8_t>(s.number), share,
                                  tester.source_mac(s.side, 0), tester.responder(s.side, plan_).dut_mac().value()),
                tester.envelope(s.side)};
            const auto schedule = whole.stream(share.first, share.stride);
            constexpr Punctuality never_overdue{.overdue_after = Ticks{1} << 62U};
            senders.emplace_back(tester.port(s.side), tester.transmit_queue(s.side, s.number), source, schedule,
                                 share.count(hosts.pending().size()), never_overdue, deadline);
            streams_of_senders.push_back({.direction = hosts.direction(), .share = share});
        }
    }

    void add_receptions(const Tester& tester, const WorkerRequest& worker, HostsToReach& hosts, Ticks start,
                        Ticks finish, WorkerTrial& share) const {
        for (std::size_t i = 0; i < worker.receivers.size(); ++i) {
            if (worker.receivers[i].side != plan::receiving_side(hosts.direction())) continue;
            const auto direction = hosts.direction();
            const auto arrives = learning_traffic(tester, direction, plan_).arrives;
            ExpectedFrames expected{tester.frame_expectation(direction, arrives, plan_)};
            const double clock_skew = tally::clock_skew_us / us_per_second * tester.ticks_per_second();
            share.receptions.push_back(
                reception_of(i, std::move(expected), hosts, start, finish, static_cast<Ticks>(clock_skew)));
        }
    }

    [[nodiscard]] std::uint64_t sent_frames() const {
        std::uint64_t sum = 0;
        for (const auto& share : shares_) {
            for (const auto& direction : share->so_far) sum += direction.sent_frames.load(std::memory_order_relaxed);
        }
        return sum;
    }

    /// Adds what the receivers have reported to what was reached before this round.
    [[nodiscard]] LearningProgress count(LearningProgress progress) const {
        for (const auto& share : shares_) {
            for (const auto& d : directions_) {
                progress.sides[plan::receiving_side(d.direction())]->reachable +=
                    share->so_far[d.direction()].received_frames.load(std::memory_order_relaxed);
            }
        }
        return progress;
    }

    static bool is_all_reachable(const LearningProgress& progress) {
        return std::ranges::all_of(progress.sides,
                                   [](const auto& side) { return !side || side->reachable == side->hosts; });
    }

    std::size_t plan_;
    std::vector<HostsToReach>& directions_;
    std::vector<std::unique_ptr<WorkerTrial>> shares_;
    double give_up_s_;
};

/// Announces the MACs of the hosts that were not reached, before another round. A DUT that remembers the MACs of an
/// earlier session sends their frames to nobody, and forgets a MAC that does not answer only after minutes. False if
/// the observer ended it.
bool announce_missing(Tester& tester, std::size_t plan, const std::vector<HostsToReach>& directions,
                      const LearningProgress& progress, LearningObserver& observer) {
    using namespace std::chrono_literals;
    std::deque<Announcements> announced;  // an Announcements cannot be moved
    for (const auto& hosts : directions) {
        const auto& responder = tester.responder(plan::receiving_side(hosts.direction()), plan);
        if (!hosts.wants_announcements() || !responder.has_hosts()) continue;
        auto& work = announced.emplace_back();
        work.responder = &responder;
        work.hosts = hosts.pending();
        if (!std::ranges::any_of(tester.workers(), [&](auto& worker) { return worker->announce(work); }))
            work.is_over = true;
    }
    bool goes_on = true;
    // To be completed even if the observer ends it: the workers read the list.
    while (!std::ranges::all_of(announced,
                                [](const auto& work) { return work.is_over.load(std::memory_order_acquire); })) {
        goes_on = observer.goes_on(progress) && goes_on;
        std::this_thread::sleep_for(10ms);
    }
    return goes_on;
}

/// Includes the hosts of earlier plans in the progress.
class AddingObserver : public LearningObserver {
   public:
    AddingObserver(LearningObserver& observer, const LearningResult& before) : observer_{observer}, before_{before} {}

    bool goes_on(const LearningProgress& progress) override {
        LearningProgress sum = progress;
        for (const auto side : plan::both_sides) {
            if (!sum.sides[side] || !before_.sides[side]) continue;
            sum.sides[side]->hosts += before_.sides[side]->hosts;
            sum.sides[side]->reachable += before_.sides[side]->reachable;
        }
        return observer_.goes_on(sum);
    }

   private:
    LearningObserver& observer_;
    const LearningResult& before_;
};

LearningResult add(LearningResult first, const LearningResult& second) {
    first.stopped = first.stopped || second.stopped;
    first.rate_share = std::min(first.rate_share, second.rate_share);
    for (const auto side : plan::both_sides) {
        if (!second.sides[side]) continue;
        if (!first.sides[side]) first.sides[side] = LearningResult::OfSide{};
        auto& sum = *first.sides[side];
        const auto& more = *second.sides[side];
        sum.hosts += more.hosts;
        sum.reachable += more.reachable;
        sum.rounds = std::max(sum.rounds, more.rounds);
        for (const auto& address : more.unreachable) {
            if (sum.unreachable.size() < most_unreachable_listed) sum.unreachable.push_back(address);
        }
    }
    return first;
}

}  // namespace

LearningResult Tester::learn(const LearnRequest& request, LearningObserver& observer) {
    if (request_.plan.has_state)
        throw Fault{FaultCode::bad_request, "a plan with state: no host is reached before it has opened a connection",
                    "learn", "Establish connections instead."};
    for (const auto direction : request.directions) {
        for (std::size_t p = 0; p < plans(); ++p)
            check_rate(direction, request.rate_fps, {.kinds = {learning_traffic(*this, direction, p)}}, "rate_fps",
                       false);
    }
    check_ports();
    check_resolved("learn");
    plan::PerSide<std::uint64_t> answers_before{};
    for (const auto direction : request.directions) {
        const auto side = plan::receiving_side(direction);
        answers_before[side] = answers_sent(side);
    }
    LearningResult result;
    for (std::size_t p = 0; p < plans() && !result.stopped; ++p) {
        std::vector<HostsToReach> directions;
        directions.reserve(request.directions.size());
        for (const auto direction : request.directions)
            directions.emplace_back(plan(p), direction, receive_queues(plan::receiving_side(direction)) > 1);
        // What was reached with the first plan is included: the client sees the hosts of both IP versions as one
        // number.
        AddingObserver adding{observer, result};
        const auto run_round = [&](const LearningProgress& progress) {
            return announce_missing(*this, p, directions, progress, adding) &&
                   Round{*this, request, progress.rate_share, p, directions}.run(*this, request, progress, adding);
        };
        result = add(std::move(result), learn_in_rounds(directions, request.rounds, run_round));
    }
    check_ports();  // a port that was removed has reached nobody since
    for (const auto direction : request.directions) {
        const auto side = plan::receiving_side(direction);
        result.sides[side]->questions_answered = answers_sent(side) - answers_before[side];
        has_learnt_[side] = has_learnt_[side] || !result.stopped;
    }
    return result;
}

Hosts Tester::hosts_before(const std::vector<plan::Direction>& directions) const {
    if (!is_direct()) return Hosts::behind_gateways;
    const bool are_learnt =
        std::ranges::all_of(directions, [&](auto direction) { return has_learnt_[plan::receiving_side(direction)]; });
    return are_learnt ? Hosts::learnt_before : Hosts::on_the_link;
}

}  // namespace evenhand::run
