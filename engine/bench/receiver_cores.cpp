// SPDX-License-Identifier: Apache-2.0
// Bench: how much time a frame takes the receivers of a direction on several cores. Each has a queue of its own, to
// which a hash sends a random share of the frames, and a part of the sequence map. All take their frames at the same
// time. bench/cores.py runs it.
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "frame/source.hpp"
#include "frame/template.hpp"
#include "gateway_plan.hpp"
#include "pace/clock.hpp"
#include "parts.hpp"
#include "pool_port.hpp"
#include "run/receiver.hpp"
#include "split_mix.hpp"

namespace {

using namespace evenhand;
using pace::TickClock;
using pace::Ticks;
using plan::IpVersion;

constexpr unsigned frames_of_round = 1024;
constexpr unsigned sent_together = 32;  // frames with the same time in their tags

struct Case {
    std::vector<unsigned> cpus;
    IpVersion version = IpVersion::v4;
    std::size_t frame_size = 0;
    std::uint64_t rounds = 0;
};

[[nodiscard]] bool stay_on(unsigned cpu) {
    cpu_set_t here;
    CPU_ZERO(&here);
    CPU_SET(cpu, &here);
    return sched_setaffinity(0, sizeof here, &here) == 0;
}

/// The queue of a frame, spread as by a hash of pseudorandom addresses. It is the same for all callers.
[[nodiscard]] unsigned queue_of(std::uint64_t sequence, std::size_t queues) {
    constexpr unsigned upper_half = 32;
    return static_cast<unsigned>((((sequence + 1) * golden_multiplier) >> upper_half) % queues);
}

/// One core's share of the direction.
struct Core {
    bench::Part part{"all"};
    std::uint64_t received_frames = 0;
    bool is_there = true;
};

void receive(Core& core, unsigned queue, const Case& c, tally::SequenceMap& map, double ticks_per_second,
             std::barrier<>& together) {
    core.is_there = stay_on(c.cpus[queue]);
    const auto plan = bench::gateway_plan(c.version);
    const plan::MacAddress own_mac{2, 0, 0, 0, 0, 2};
    const auto shape =
        frame::make_template(plan, c.frame_size, {.trial = bench::trial_number}, {2, 0, 0, 0, 0, 1}, own_mac);
    frame::TestFrameSource source{shape, plan::FlowDraw{plan, plan::Direction::forward, bench::seed}, {}};
    bench::PoolPort port{frames_of_round};
    for (auto& frame : port.all()) {
        frame.length = shape.octets;
        frame::write_pattern(c.version, {frame.octets.data(), shape.octets});
    }
    bench::NoAnswers responder;
    run::Receiver<bench::PoolPort, bench::NoAnswers> receiver{port, queue, responder};
    const auto tally = std::make_unique<tally::ReceiverTally>();
    const auto arrives = frame::traffic_of(plan, plan::Direction::forward, c.frame_size).arrives;
    const Ticks start = TickClock::now();
    constexpr double an_hour_s = 3600;
    const auto hour = static_cast<Ticks>(an_hour_s * ticks_per_second);
    frame::TestFrameExpectation expected{arrives, own_mac, own_mac};
    expected.know(plan::FlowDraw{plan, plan::Direction::forward, bench::seed}, 1);
    receiver.arm({.trial = bench::trial_number,
                  .frames = expected,
                  .start = start,
                  .clock_skew = hour,
                  .residual_end = start + hour,
                  .ring_lasts = hour,
                  .burst_lasts = 1,
                  .schedule = pace::EvenSchedule{start, ticks_per_second, 1e9}},
                 map, *tally, start);
    std::vector<std::byte> elsewhere(frame::largest_frame_size);
    std::vector<std::byte*> burst;
    std::uint64_t next = 0;
    TickClock clock;
    for (std::uint64_t round = 0; round < c.rounds + bench::rounds_before; ++round) {
        // All cores write the same numbers, as one sender would, and each keeps its own: the same number of frames in
        // each round.
        for (std::size_t at = 0; at < frames_of_round;) {
            burst.clear();
            for (unsigned i = 0; i < sent_together; ++i, ++next) {
                const bool is_ours = at < frames_of_round && queue_of(next, c.cpus.size()) == queue;
                burst.push_back(is_ours ? port.all()[at++].octets.data() : elsewhere.data());
            }
            source.write_next(burst, TickClock::now());
        }
        port.rewind();
        together.arrive_and_wait();
        const Ticks begin = TickClock::now();
        while (receiver.turn(TickClock::now(), clock) != 0) {}
        const auto took = static_cast<double>(TickClock::now() - begin);
        if (round >= bench::rounds_before) core.part.ticks_per_frame.push_back(took / frames_of_round);
        together.arrive_and_wait();
    }
    core.received_frames = tally->received_frames;
}

}  // namespace

int main(int argc, char** argv) {
    constexpr int least = 5;
    if (argc < least) {
        fmt::print(stderr, "usage: {} 4|6 OCTETS ROUNDS CPU...\n", argv[0]);
        return 2;
    }
    const auto number = [&](int i) { return static_cast<unsigned>(std::max(0, std::atoi(argv[i]))); };
    Case c{.version = std::string{argv[1]} == "6" ? IpVersion::v6 : IpVersion::v4,
           .frame_size = number(2),
           .rounds = number(3)};
    for (int i = 4; i < argc; ++i) c.cpus.push_back(number(i));
    const double ticks_per_second = pace::calibrate_ticks_per_second();
    const std::uint64_t frames = (c.rounds + bench::rounds_before) * frames_of_round;
    // Twice what the shares make likely.
    auto map =
        tally::SequenceMap::apart(2 * frames * c.cpus.size() + sent_together, static_cast<unsigned>(c.cpus.size()));
    std::barrier<> together{static_cast<std::ptrdiff_t>(c.cpus.size())};
    std::vector<Core> cores(c.cpus.size());
    {
        std::vector<std::jthread> threads;
        threads.reserve(cores.size());
        for (unsigned queue = 0; queue < cores.size(); ++queue)
            threads.emplace_back([&, queue] { receive(cores[queue], queue, c, map, ticks_per_second, together); });
    }
    for (auto& core : cores) {
        if (!core.is_there) {
            fmt::print(stderr, "a CPU cannot be used\n");
            return 3;
        }
        bench::print({&core.part, 1}, ticks_per_second);
        if (core.received_frames != frames) {
            fmt::print(stderr, "{} of {} frames were counted: the bench is wrong\n", core.received_frames, frames);
            return 1;
        }
    }
    return 0;
}
