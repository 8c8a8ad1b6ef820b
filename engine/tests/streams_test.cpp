// SPDX-License-Identifier: Apache-2.0
// Stations 3 to 6: one direction over several streams and several receive queues. SEED-44, R2544-06, R2544-07, D3.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <deque>
#include <set>
#include <thread>
#include <vector>

#include "rig.hpp"
#include "run/trial_map.hpp"
#include "tally/stream_order.hpp"

namespace streams_test {

using namespace evenhand;
using namespace evenhand::tests;

namespace {

constexpr Ticks settles_after = 50 * us;
using Frames = std::vector<MemoryPort::Frame>;

/// All frames of a trial as they leave, in their order.
Frames frames_of_a_trial(const Options& options) {
    Rig4 rig{options};
    Frames frames;
    rig.left.on_the_wire = [&](MemoryPort::Frame& f) {
        frames.push_back(f);
        return 0U;
    };
    rig.run();
    return frames;
}

/// One receive queue: its frames wait in a port of their own.
struct Queue {
    Queue(unsigned queue, std::size_t buffers) : number{queue}, port{buffers}, receiver{port, queue, responder} {}
    /// As if each queue had a thread of its own.
    void arm(std::size_t octets, tally::SequenceMap& map, tally::StreamOrder* order, Ticks begin = tests::start) {
        receiver.arm({.trial = trial,
                      .direction = Direction::forward,
                      .frames = expected(plan, octets + frame::fcs_octets),
                      .start = begin,
                      .clock_skew = second,  // these tests give frames when they like
                      .residual_end = begin + second,
                      .ring_lasts = second,
                      .order = order},
                     map, *tally, begin, number);
    }

    unsigned number;
    MemoryPort port;
    plan::AddressPlan plan = tests::gateway_v4();
    neighbor::Responder responder{right_mac, plan.right.gateway.value(), plan.right.dut_address};
    run::Receiver<MemoryPort, neighbor::Responder> receiver;
    std::unique_ptr<tally::ReceiverTally> tally = std::make_unique<tally::ReceiverTally>();
};

/// Several queues that one port spreads its frames over, read turn by turn with a clock driven by hand: a frame each
/// microsecond.
class Queues {
   public:
    Queues(unsigned queues, unsigned streams, Ticks when = start)
        : begin{when},
          frames{frames_of_a_trial({.frames = 3000, .streams = streams, .start = when})},
          map{tally::SequenceMap::apart(3000, queues)},
          order{queues, streams, settles_after} {
        std::ranges::sort(frames, {}, [](MemoryPort::Frame& f) { return number_of(f); });
        for (unsigned q = 0; q < queues; ++q)
            queues_.emplace_back(q, 4096).arm(frames.front().length, map, &order, begin);
    }
    Queues(const Queues&) = delete;
    Queues& operator=(const Queues&) = delete;

    /// Frame `i` comes at start + i us into the queue `queue_of(frame)`; queue q is read every `look_every[q]` us.
    template <class QueueOf>
    void run(QueueOf queue_of, const std::vector<std::size_t>& look_every) {
        for (std::size_t i = 0; i < frames.size() + 30'000; ++i) {
            clock.time = begin + i * us;
            if (i < frames.size()) queues_.at(queue_of(frames[i])).port.inject(frames[i]);
            for (std::size_t q = 0; q < queues_.size(); ++q) {
                if (i % look_every[q] == 0) queues_[q].receiver.turn(clock.now(), clock);
            }
        }
    }

    /// Frame `k` changes places with the frame of its stream that is sent `frames_later` after it.
    void swap(std::size_t k, std::size_t frames_later) { std::swap(frames.at(k), frames.at(k + frames_later)); }

    [[nodiscard]] tally::ReceiverTally& sum() {
        *sum_ = {};
        map.bring_together();
        for (std::size_t q = 0; q < queues_.size(); ++q) {
            const auto tally = std::make_unique<tally::ReceiverTally>(*queues_[q].tally);
            tally->take_back(map.copies(q));
            sum_->add(*tally);
        }
        return *sum_;
    }

    Ticks begin;  // frame 0 is due
    Frames frames;
    tally::SequenceMap map;
    tally::StreamOrder order;
    HandClock clock;

   private:
    std::deque<Queue> queues_;
    std::unique_ptr<tally::ReceiverTally> sum_ = std::make_unique<tally::ReceiverTally>();
};

/// As a port's hash does: all frames of a flow go to one queue.
std::size_t by_hash(MemoryPort::Frame& f, std::size_t queues) {
    return (static_cast<std::size_t>(f.octets[29]) ^ static_cast<std::size_t>(f.octets[33])) % queues;
}

}  // namespace

TEST_CASE("the streams of a direction are due when its frames are, to the tick, at any rate and number (SEED-44)") {
    const bool right = rc::check("merged due times", [] {
        const double ticks_per_second = *rc::gen::inRange(1'000'000'000, 2'000'000'000) * 2.0 + 0.25;
        const double rate = *rc::gen::inRange(1, 2'000'000'000) / 7.0;
        const auto n = *rc::gen::element<std::uint64_t>(1, 2, 3, 7, 128);
        const pace::EvenSchedule whole{1000, ticks_per_second, rate};
        const auto k = *rc::gen::inRange<std::uint64_t>(0, static_cast<std::uint64_t>(rate * 86400) + 1);
        RC_ASSERT(whole.stream(k % n, n).due(k / n) == whole.due(k));
        RC_ASSERT(whole.stream(k % n, n).start() == whole.due(k % n));
    });
    CHECK(right);
}

TEST_CASE("at any moment the streams together owe as many frames as the direction does") {
    const bool right = rc::check("merged due counts", [] {
        const double rate = *rc::gen::inRange(1, 200'000'000) / 3.0;
        const auto n = *rc::gen::element<std::uint64_t>(2, 3, 7);
        const pace::EvenSchedule whole{5'000'000, 2.5e9, rate};
        const auto k = *rc::gen::inRange<std::uint64_t>(0, static_cast<std::uint64_t>(rate * 86400) + 1);
        // At the tick of frame k, which is the worst place, and just before it.
        for (const Ticks now : {whole.due(k), whole.due(k) - 1}) {
            std::uint64_t sum = 0;
            for (std::uint64_t s = 0; s < n; ++s) sum += whole.stream(s, n).due_count(now);
            RC_ASSERT(sum == whole.due_count(now));
        }
        RC_ASSERT(whole.due_count(whole.due(k)) >= k + 1);
        RC_ASSERT(whole.due_count(whole.due(k) - 1) <= k);
    });
    CHECK(right);
}

TEST_CASE("a number of frames that the streams do not divide is still sent whole") {
    for (const std::uint64_t n : {1U, 2U, 3U, 7U, 128U}) {
        for (const std::uint64_t frames : {1U, 2U, 6U, 7U, 127U, 1000U, 999'983U}) {
            CAPTURE(n);
            CAPTURE(frames);
            std::uint64_t sum = 0;
            std::uint64_t least = frames;
            std::uint64_t most = 0;
            for (std::uint64_t s = 0; s < n; ++s) {
                const auto count = frame::StreamShare{.first = s, .stride = n}.count(frames);
                sum += count;
                least = std::min(least, count);
                most = std::max(most, count);
            }
            CHECK(sum == frames);
            CHECK(most - least <= 1);
        }
    }
}

TEST_CASE("the senders of several streams put every frame on the wire in its own slot") {
    // Read each nanosecond around the slots of a rate that no number of streams divides: 999,983 fps.
    constexpr double odd_rate_fps = 999'983;
    constexpr std::uint64_t frames = 200;
    const auto plan = tests::gateway_v4();
    for (const std::uint64_t n : {2U, 3U, 7U}) {
        CAPTURE(n);
        const pace::EvenSchedule whole{start, second, odd_rate_fps};
        MemoryPort port{256};
        std::vector<Rig4::TestSender> senders;
        for (std::uint64_t s = 0; s < n; ++s) {
            const frame::StreamShare share{.first = s, .stride = n};
            const auto shape = frame::make_template(
                plan, 64, {.direction = Direction::forward, .stream = static_cast<std::uint8_t>(s), .trial = trial},
                left_mac, dut_mac);
            senders.emplace_back(port, static_cast<unsigned>(s),
                                 frame::TestFrameSource{shape, plan::FlowDraw{plan, Direction::forward, 1}, share},
                                 whole.stream(s, n), share.count(frames), run::Punctuality{.overdue_after = 100 * us},
                                 start + second);
        }
        Ticks now = 0;
        std::vector<Ticks> sent_at;
        port.on_the_wire = [&](MemoryPort::Frame& f) {
            REQUIRE(number_of(f) == sent_at.size());  // in the order of the direction
            sent_at.push_back(now);
            return 0U;
        };
        for (now = start - 2; now < start + (frames + 1) * us; ++now) {
            for (auto& sender : senders) sender.turn(now);
        }
        REQUIRE(sent_at.size() == frames);
        for (std::uint64_t k = 0; k < frames; ++k) REQUIRE(sent_at[k] == whole.due(k));
    }
}

TEST_CASE(
    "two receivers in two threads count each frame once between them, and every other copy as duplicate (R2544-07)") {
    const auto frames = frames_of_a_trial({.frames = 3000, .streams = 2});
    for (const bool apart : {false, true}) {
        CAPTURE(apart);
        auto map = apart ? tally::SequenceMap::apart(3000, 2) : tally::SequenceMap{3000, true};
        tally::StreamOrder order{2, 2, settles_after};
        Queue one{0, 4096};
        Queue other{1, 4096};
        std::uint64_t copies = 0;
        for (auto* const queue : {&one, &other}) {
            queue->arm(frames.front().length, map, &order);
            for (const auto& f : frames) {
                auto copy = f;
                if (number_of(copy) == 1234) continue;  // lost on both: no duplicate may stand in for it
                queue->port.inject(copy);
                ++copies;
            }
        }
        {
            const auto receive_all = [](Queue& queue) {
                HandClock clock{start};
                while (!queue.port.arrived().empty()) {
                    clock.time += us;
                    queue.receiver.turn(clock.now(), clock);
                }
            };
            std::jthread here{[&] { receive_all(one); }};
            std::jthread there{[&] { receive_all(other); }};
        }
        map.bring_together();
        one.tally->take_back(map.copies(0));
        other.tally->take_back(map.copies(1));
        CHECK(one.tally->received_frames + other.tally->received_frames == 2999);
        CHECK(one.tally->duplicated_frames + other.tally->duplicated_frames == copies - 2999);
        CHECK(map.first_missing(3000, 10) == std::vector<std::uint64_t>{1234});
    }
}

TEST_CASE("copies are taken back from the queues of the worker that has the higher number (R2544-07)") {
    auto map = tally::SequenceMap::apart(1000, 2);
    std::vector<std::unique_ptr<run::WorkerTrial>> trials;
    // The other direction comes first; each worker has two queues of this one.
    for (unsigned worker = 0; worker < 2; ++worker) {
        auto& trial = trials.emplace_back(std::make_unique<run::WorkerTrial>());
        for (const auto direction : {Direction::reverse, Direction::forward, Direction::forward}) {
            trial->receptions.push_back({.direction = direction,
                                         .expectation = {.frames = expected(tests::gateway_v4(), 64)},
                                         .part = worker,
                                         .tally = std::make_unique<tally::ReceiverTally>()});
            trial->receptions.back().tally->received_frames = 100;
        }
    }
    for (std::uint64_t k = 0; k < 130; ++k) {
        map.part(0).mark(k);
        map.part(1).mark(k);
    }
    run::take_back_copies(trials, Direction::forward, map);
    const auto received = [&](std::size_t worker, std::size_t reception) {
        return trials[worker]->receptions[reception].tally->received_frames;
    };
    for (std::size_t reception = 0; reception < 3; ++reception) CHECK(received(0, reception) == 100);
    CHECK(received(1, 0) == 100);
    CHECK(received(1, 1) == 0);
    CHECK(received(1, 2) == 70);
    CHECK(trials[1]->receptions[1].tally->duplicated_frames == 100);
    CHECK(trials[1]->receptions[2].tally->duplicated_frames == 30);
    CHECK(map.missing(0, 1000) == 870);
}

TEST_CASE("a record that is larger than the memory that is left is refused, and what to do is said") {
    const run::MapMemory needed{.frames = 1'000'000'000, .octets = 500'000'000, .most_parts = 2};
    CHECK_NOTHROW(run::check_map_memory(needed, 500'000'000));
    try {
        run::check_map_memory(needed, 499'000'000);
        FAIL("not refused");
    } catch (const Fault& fault) {
        CHECK(fault.code == FaultCode::no_memory);
        CHECK(fault.what_text == "the record of 1000000000 frames a direction takes 500 MB, but 499 MB are available");
        CHECK(fault.next.find("fewer CPUs") != std::string::npos);
    }
}

TEST_CASE("a record lasts for some seconds at any rate, and for as long as frames are waited for") {
    run::TrialRequest request;
    const auto held = [&](double rate_fps, double residual_s) {
        request.rate_fps = rate_fps;
        request.waits.residual_s = residual_s;
        return run::held_frames(request);
    };
    constexpr std::uint64_t mebi = std::uint64_t{1} << 20U;
    CHECK(held(1000, 2) == 64 * mebi);
    CHECK(held(10e6, 2) == 64 * mebi);  // 8 MiB
    CHECK(held(11.5e6, 2) == 128 * mebi);
    CHECK(held(148.8e6, 2) == 1024 * mebi);
    CHECK(held(1e12, 2) == 1024 * mebi);
    CHECK(held(10e6, 10) == 256 * mebi);
    request.then = tally::LoadChange{.rate_fps = 60e6, .duration_s = 1};
    CHECK(held(10e6, 2) == 512 * mebi);
    request.then.reset();
    for (double rate_fps = 1e6; rate_fps < 140e6; rate_fps *= 1.3)
        for (const double residual_s : {0.0, 2.0, 4.0}) {
            const auto frames = static_cast<double>(held(rate_fps, residual_s));
            CHECK(frames * 0.625 / rate_fps > std::max(3.8, residual_s));
        }
}

TEST_CASE("a worker's part is its place among those that receive on a side") {
    run::OpenRequest request;
    const auto receives = [](const std::vector<plan::Side>& sides) {
        run::WorkerRequest worker;
        for (const auto side : sides) worker.receivers.push_back({.side = side});
        return worker;
    };
    using plan::Side;
    request.workers = {receives({}), receives({Side::left, Side::left}), receives({Side::right}),
                       receives({Side::left, Side::right})};
    CHECK(run::receiving_workers_before(request, Side::left, 1) == 0);
    CHECK(run::receiving_workers_before(request, Side::left, 3) == 1);
    CHECK(run::receiving_workers_before(request, Side::right, 3) == 1);
    CHECK(run::receiving_workers_before(request, Side::left, 4) == 2);
    CHECK(run::receiving_workers_before(request, Side::right, 4) == 2);
}

TEST_CASE("frames that a hash spreads over queues are in order, however unlike the queues are read (R2544-06)") {
    for (const auto& look_every :
         std::vector<std::vector<std::size_t>>{{1, 1, 1}, {1, 7, 200}, {400, 1, 30}, {33, 65, 1}}) {
        for (const unsigned streams : {1U, 3U}) {
            CAPTURE(streams);
            Queues queues{3, streams};
            queues.run([](MemoryPort::Frame& f) { return by_hash(f, 3); }, look_every);
            CHECK(queues.sum().received_frames == 3000);
            CHECK(damage_of(queues.sum()) == Damage{});
        }
    }
}

TEST_CASE("two frames of one queue that change places are one reordered frame, with several queues too (R2544-06)") {
    Queues queues{2, 2};
    std::size_t k = 1000;
    while (by_hash(queues.frames[k], 2) != by_hash(queues.frames[k + 2], 2)) ++k;
    queues.swap(k, 2);
    queues.run([](MemoryPort::Frame& f) { return by_hash(f, 2); }, {1, 1});
    CHECK(queues.sum().received_frames == 3000);
    CHECK(damage_of(queues.sum()) == Damage{.reordered = 1});
}

TEST_CASE("a frame that is overtaken by one of another queue is reordered if that was long enough before (R2544-06)") {
    const auto reordered = [](std::size_t frames_later, const std::vector<std::size_t>& look_every,
                              Ticks begin = start) {
        Queues queues{2, 1, begin};
        // Frame 1000 is held back, and is alone in its queue: nothing but the other queue can tell.
        auto held = queues.frames.at(1000);
        queues.frames.erase(queues.frames.begin() + 1000);
        queues.frames.insert(queues.frames.begin() + 1000 + static_cast<std::ptrdiff_t>(frames_later), held);
        queues.run([](MemoryPort::Frame& f) { return number_of(f) == 1000 ? 1U : 0U; }, look_every);
        CHECK(queues.sum().received_frames == 3000);
        return queues.sum().reordered_frames;
    };
    CHECK(reordered(0, {1, 1}) == 0);
    // Within the time in which a port may hand one queue's frames over later than another's, nobody can know.
    for (const std::size_t frames_later : {1U, 10U, 49U}) CHECK(reordered(frames_later, {1, 1}) == 0);
    for (const std::size_t frames_later : {160U, 200U, 1500U}) CHECK(reordered(frames_later, {1, 1}) == 1);
    // Wherever the counter stands, also where it begins anew in between.
    for (const Ticks begin : starts_before_overflow(1100 * us)) {
        CHECK(reordered(49, {1, 1}, begin) == 0);
        CHECK(reordered(200, {1, 1}, begin) == 1);
    }
    // A queue that nobody read for a while does not make its frames late.
    CHECK(reordered(0, {1, 400}) == 0);
    CHECK(reordered(0, {400, 1}) == 0);
}

TEST_CASE("a queue that is never empty is told nothing, and still tells what it has") {
    constexpr unsigned full = run::more_may_wait;
    const auto frames = frames_of_a_trial({.frames = 3000, .streams = 1});
    auto map = tally::SequenceMap::apart(3000, 2);
    tally::StreamOrder order{2, 1, settles_after};
    Queue busy{0, 4096};
    Queue quiet{1, 4096};
    for (auto* const queue : {&busy, &quiet}) queue->arm(frames.front().length, map, &order);
    HandClock clock{start};
    for (std::size_t i = 0; i < 1000;) {
        clock.time += settles_after;
        for (unsigned j = 0; j < full; ++j, ++i) busy.port.inject(frames[i + 1]);
        busy.receiver.turn(clock.now(), clock);
        quiet.receiver.turn(clock.now(), clock);
    }
    quiet.port.inject(frames[0]);
    quiet.receiver.turn(clock.now(), clock);
    CHECK(quiet.tally->reordered_frames == 1);
    // Now the busy queue hears of much larger numbers while frames may still wait in it: they are not judged by them.
    quiet.port.inject(frames[2999]);
    quiet.receiver.turn(clock.now(), clock);
    for (int turn = 0; turn < 10; ++turn) {
        clock.time += settles_after;
        quiet.receiver.turn(clock.now(), clock);
        for (unsigned j = 0; j < full; ++j) busy.port.inject(frames[1500 + static_cast<std::size_t>(turn) * full + j]);
        busy.receiver.turn(clock.now(), clock);
    }
    CHECK(busy.tally->reordered_frames == 0);
    for (int turn = 0; turn < 2; ++turn) {
        clock.time += settles_after;
        busy.receiver.turn(clock.now(), clock);
    }
    busy.port.inject(frames[2500]);
    busy.receiver.turn(clock.now(), clock);
    CHECK(busy.tally->reordered_frames == 1);
}

}  // namespace streams_test
