// SPDX-License-Identifier: Apache-2.0
// Stations 3 to 5: THE loop as a worker runs it, with everything that it does between two turns, on ports in memory. By
// the CPU's clock: the loop reads no other.
#include <doctest/doctest.h>

#include <memory>
#include <utility>
#include <vector>

#include "frame/mix_source.hpp"
#include "pace/clock.hpp"
#include "rig.hpp"
#include "run/loops.hpp"

namespace worker_loop_test {

using namespace evenhand;
using namespace evenhand::tests;
using Source = frame::TestFrameSource;

namespace {

constexpr std::uint64_t frames = 2000;

/// One worker with both sides: it sends from the left to the right, and waits a little for what is under way.
struct Bench {
    Bench() {
        left.connect(right);
        right.connect(left);
        std::vector<MemoryPort::Frame*> all(2048);
        const auto n = left.reserve(0, all.data(), 2048);
        for (auto* const f : all) frame::write_pattern(IpVersion::v4, std::span{f->octets}.first(1514));
        left.give_back(all.data(), n);
        queues.add_receiver(left, 0, left_responder, {}, icmp_errors, capture, nullptr);
        queues.add_receiver(right, 0, right_responder, {}, icmp_errors, capture, nullptr);
        queues.add_outlet(left, left_responder, {}, nullptr);
        queues.add_outlet(right, right_responder, {}, nullptr);
    }

    template <class S>
    void run(S source, const run::ExpectedFrames& of_frames, double begins_after_s = 0) {
        const Ticks begin = pace::TickClock::now();
        const double ticks_per_second = pace::calibrate_ticks_per_second();
        const auto after = [&](double s) { return begin + static_cast<Ticks>(s * ticks_per_second); };
        const pace::EvenSchedule schedule{after(begins_after_s), ticks_per_second, 1e6};
        std::vector<run::Sender<MemoryPort, S>> senders;
        senders.emplace_back(left, 0, std::move(source), schedule, frames, run::Punctuality{.overdue_after = after(1)},
                             after(5));
        worker_trial.loop =
            run::make_loop(queues, std::move(senders), {{.direction = Direction::forward, .share = {}}});
        worker_trial.receptions.push_back({.receiver = 1,
                                           .direction = Direction::forward,
                                           .expectation = {.trial = trial,
                                                           .direction = Direction::forward,
                                                           .frames = of_frames,
                                                           .start = begin,
                                                           .residual_end = after(5),
                                                           .ring_lasts = after(5) - begin,
                                                           .schedule = schedule},
                                           .map = &map,
                                           .tally = std::make_unique<tally::ReceiverTally>()});
        worker_trial.finish = after(0.05);
        worker_trial.loop->run(worker_trial);
    }

    [[nodiscard]] const tally::ReceiverTally& got() const { return *worker_trial.receptions.front().tally; }
    [[nodiscard]] const run::WorkerTrial::SoFar& so_far() const { return worker_trial.so_far[Direction::forward]; }

    plan::AddressPlan plan = gateway_v4();
    MemoryPort left{2048};
    MemoryPort right{2048};
    neighbor::Responder left_responder{left_mac, plan.left.gateway.value(), plan.left.dut_address};
    neighbor::Responder right_responder{right_mac, plan.right.gateway.value(), plan.right.dut_address};
    tally::IcmpErrors icmp_errors{{}};
    tally::FrameCapture capture;
    run::WorkerQueues<MemoryPort> queues;
    tally::SequenceMap map{frames, false};
    run::WorkerTrial worker_trial;
};

}  // namespace

TEST_CASE("one call runs a worker's whole trial: everything is sent, received and told") {
    Bench bench;
    const auto shape =
        frame::make_template(bench.plan, 64, {.direction = Direction::forward, .trial = trial}, left_mac, dut_mac);
    bench.run(Source{shape, plan::FlowDraw{bench.plan, Direction::forward, 1}, {}}, expected(bench.plan, 64));
    const auto sent = bench.worker_trial.loop->sent();
    REQUIRE(sent.size() == 1);
    CHECK(sent[0].frames == frames);
    CHECK(sent[0].stream.direction == Direction::forward);
    CHECK(sent[0].tally.offered_frames == frames);
    CHECK(bench.got().received_frames == frames);
    CHECK(damage_of(bench.got()) == Damage{});
    CHECK(bench.so_far().sent_frames == frames);
    CHECK(bench.so_far().sent_until == frames);
    CHECK(bench.worker_trial.so_far[Direction::reverse].sent_until ==
          ~std::uint64_t{0});  // it sends nothing in the other direction
    CHECK(bench.so_far().received_frames == frames);
    CHECK(bench.so_far().timed_frames == frames);
}

TEST_CASE("a loop over a mix expects the frames of a mix") {
    Bench bench;
    const frame::MixedPlans mixed{.mix = {{{.frame_size = 64}, {.frame_size = 128}}, {0, 0, 1}}, .other_plan = {}};
    bench.run(
        frame::MixSource{frame::make_mix_parts(bench.plan, mixed, 1, {.direction = Direction::forward, .trial = trial},
                                               {}, {.source_mac = left_mac, .dut_macs = {dut_mac}, .hosts = {}})},
        frame::MixExpectation{mixed.mix,
                              {{.frames = expected(bench.plan, 64)}, {.frames = expected(bench.plan, 128)}}});
    CHECK(bench.got().received_frames == frames);
    CHECK(damage_of(bench.got()) == Damage{});
    CHECK(bench.got().received_of_class[0] == 1334);
    CHECK(bench.got().received_of_class[1] == 666);
}

TEST_CASE("a trial that is shortened sends no more than it still should, and ends when it then should") {
    Bench bench;
    const auto shape =
        frame::make_template(bench.plan, 64, {.direction = Direction::forward, .trial = trial}, left_mac, dut_mac);
    const Ticks now = pace::TickClock::now();
    bench.worker_trial.shorten({.frames = {}, .send_deadline = now, .residual_end = now, .finish = now});
    constexpr double beyond_its_end_s = 4;
    bench.run(Source{shape, plan::FlowDraw{bench.plan, Direction::forward, 1}, {}}, expected(bench.plan, 64),
              beyond_its_end_s);
    const auto sent = bench.worker_trial.loop->sent();
    CHECK(sent[0].frames == 0);
    CHECK(sent[0].tally.offered_frames == 0);
}

TEST_CASE("questions leave between trials when they are asked for, and once") {
    Bench bench;
    CHECK_FALSE(bench.queues.idle_turn());
    bench.queues.send_questions();
    (void)bench.queues.idle_turn();
    REQUIRE(bench.left.arrived().size() == 1);
    REQUIRE(bench.right.arrived().size() == 1);
    CHECK(bench.queues.idle_turn());  // both ends hear the other's question
    CHECK_FALSE(bench.queues.idle_turn());
    CHECK(bench.queues.taken_frames(bench.left) == 1);
    CHECK(bench.queues.taken_frames(bench.right) == 1);
}

}  // namespace worker_loop_test
