// SPDX-License-Identifier: Apache-2.0
// Stations 3 to 5: the loops when a port, a CPU or a neighbour gets in their way. D7, R2544-25, R2544-39.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "rig.hpp"

namespace sender_test {

using namespace evenhand;
using namespace evenhand::tests;

namespace {

constexpr auto no_limit = static_cast<std::size_t>(-1);

std::vector<MemoryPort::Frame*> take_all_buffers(MemoryPort& port, std::size_t buffers) {
    std::vector<MemoryPort::Frame*> all(buffers);
    all.resize(port.reserve(0, all.data(), static_cast<unsigned>(buffers)));
    return all;
}

std::string arp_request(const char* target) {
    return "ffffffffffff"
           "020000000003"
           "0806"
           "0001080006040001"
           "020000000003"
           "0a000101"
           "000000000000" +
           hex(std::as_bytes(ip(target).bytes()));
}

}  // namespace

TEST_CASE("nothing leaves before it is due") {
    Rig4 rig;
    rig.run_until(start);
    CHECK(rig.offered() == 0);
    CHECK(rig.sent().refusals == 0);
    for (std::uint64_t frames = 1; frames < 20; ++frames) {
        rig.run_until(start + frames * us);
        CHECK(rig.offered() <= frames);
        CHECK(rig.offered() + 1 >= frames);
    }
}

TEST_CASE("a burst never exceeds 32, however late the sender is") {
    Rig4 rig;
    unsigned in_turn = 0;
    rig.left.on_the_wire = [&](MemoryPort::Frame&) {
        ++in_turn;
        return 1U;
    };
    rig.clock.time = start + 500 * us + 1;
    for (int turn = 0; turn < 20; ++turn) {
        in_turn = 0;
        rig.send();
        CHECK(in_turn <= run::burst_size);
    }
    CHECK(rig.offered() == 501);
    CHECK(rig.sent().largest_burst == run::burst_size);
    CHECK(rig.sent().max_overdue == 500 * us + 1);
    CHECK(rig.sent().overdue_frames == 401);  // 0 .. 400 were due more than 100 us ago
    CHECK_FALSE(rig.senders.front().is_done(rig.clock.now()));
}

TEST_CASE("a port that refuses makes frames overdue, but none is lost, skipped or out of order") {
    for (const std::uint64_t streams : {1U, 3U}) {
        Rig4 rig{{.streams = streams}};
        rig.run_until(start + 200 * us);
        rig.left.accept_at_most = 0;
        rig.run_until(start + 700 * us);
        const auto before = rig.offered();
        CHECK(before <= 200);
        rig.left.accept_at_most = no_limit;
        rig.run();
        CHECK(rig.offered() == 1000);
        CHECK(rig.got().received_frames == 1000);
        CHECK(damage_of(rig.got()) == Damage{});
        std::uint64_t overdue = 0;
        std::uint64_t refusals = 0;
        for (const auto& sender : rig.senders) {
            overdue += sender.tally().overdue_frames;
            refusals += sender.tally().refusals;
            CHECK(sender.tally().max_overdue >= 498 * us);
            CHECK(sender.tally().max_overdue <= 500 * us);
            CHECK(sender.tally().largest_burst == run::burst_size);
        }
        // Those due in the first 400 of the 500 us, and a few that waited for the others to leave.
        CHECK(overdue >= 400);
        CHECK(overdue <= 420);
        CHECK(refusals >= 497 * streams);
        CHECK(refusals <= 500 * streams);
        // The frames that were written before the wait tell their age: that is what came late.
        CHECK(rig.got().latency.max() >= 497 * us);
    }
}

TEST_CASE("a port that takes a part of a burst gets the rest first") {
    Rig6 rig{{.turn = 10 * us}};
    for (; rig.clock.time < start + 1600 * us; rig.clock.time += 10 * us) {
        rig.left.accept_at_most = 7;  // of ten that are due
        rig.send();
        rig.receive();
    }
    CHECK(rig.got().received_frames == 1000);
    CHECK(damage_of(rig.got()) == Damage{});
    CHECK(rig.sent().refusals > 90);
    CHECK(rig.sent().overdue_frames > 500);
}

TEST_CASE("a port out of buffers is a refusal, and the sender goes on when it has some again") {
    Rig4 rig{{.buffers = 64}};
    rig.run_until(start + 100 * us);
    const auto before = rig.offered();
    auto held = take_all_buffers(rig.left, 64);
    REQUIRE(held.size() == 64);
    rig.run_until(start + 150 * us);
    CHECK(rig.offered() == before);
    CHECK(rig.sent().refusals == 50);
    rig.left.give_back(held.data(), 3);  // fewer than are due
    rig.run_until(start + 300 * us);
    rig.left.give_back(held.data() + 3, 61);
    rig.run();
    CHECK(rig.offered() == 1000);
    CHECK(rig.got().received_frames == 1000);
    CHECK(damage_of(rig.got()) == Damage{});
}

namespace {

/// Overdue frames of a load of the whole line, whose crystal is `ppm` slower than ours; the port's ring holds 64
/// frames. `stall_us` in the middle.
std::uint64_t overdue_on_a_slow_line(double ppm, Ticks stall_us = 0) {
    constexpr std::uint64_t frames = 2'500'000;
    constexpr double ring = 64;
    Rig4 rig{{.frames = frames}};
    rig.left.on_the_wire = [](MemoryPort::Frame&) { return 0U; };
    rig.senders.clear();
    const auto shape = frame::make_template(rig.plan, 64, {.trial = trial}, left_mac, dut_mac);
    rig.senders.emplace_back(
        rig.left, 0, frame::TestFrameSource{shape, plan::FlowDraw{rig.plan, Direction::forward, 1}, {}},
        pace::EvenSchedule{start, second, rate_fps}, frames,
        run::Punctuality{.overdue_after = 100 * us, .port_lag = static_cast<std::uint64_t>(1e-4 * 0x1p32)},
        start + 3 * second);
    double sent_by_line = 0;
    for (rig.clock.time = start; !rig.senders.front().is_done(rig.clock.time); rig.clock.time += 8 * us) {
        const auto middle = start + second;
        if (stall_us != 0 && rig.clock.time >= middle && rig.clock.time < middle + stall_us * us) {
            // Nothing is given to the port: its ring runs empty, and the line idles.
            sent_by_line = std::min(static_cast<double>(rig.offered()), sent_by_line + 8 * (1 - ppm * 1e-6));
            continue;
        }
        sent_by_line = std::min(static_cast<double>(rig.offered()), sent_by_line + 8 * (1 - ppm * 1e-6));
        rig.left.accept_at_most =
            static_cast<std::size_t>(std::max(0.0, sent_by_line + ring - static_cast<double>(rig.offered())));
        rig.send();
    }
    CHECK(rig.offered() == frames);
    return rig.sent().overdue_frames;
}

}  // namespace

TEST_CASE("a burst leaves when it is due, and between bursts nothing does (R2544-17)") {
    for (const std::uint64_t streams : {1U, 3U}) {
        CAPTURE(streams);
        constexpr std::uint64_t frames = 320;
        Rig4 rig{{.frames = frames, .streams = streams}};
        rig.senders.clear();
        const auto whole = pace::Schedule::bursts(start, second, rate_fps, 64, 1e-3);
        for (std::uint64_t s = 0; s < streams; ++s) {
            const frame::StreamShare share{.first = s, .stride = streams};
            const auto shape = frame::make_template(
                rig.plan, 64, {.stream = static_cast<std::uint8_t>(s), .trial = trial}, left_mac, dut_mac);
            rig.senders.emplace_back(
                rig.left, static_cast<unsigned>(s),
                frame::TestFrameSource{shape, plan::FlowDraw{rig.plan, Direction::forward, 1}, share},
                whole.stream(share.first, share.stride), share.count(frames),
                run::Punctuality{.overdue_after = 100 * us}, start + second);
        }
        rig.run_until(start + 65 * us);
        CHECK(rig.offered() == 64);
        rig.run_until(start + 999 * us);
        CHECK(rig.offered() == 64);
        rig.run_until(start + 4'100 * us);
        CHECK(rig.offered() == frames);
        CHECK(rig.got().received_frames == frames);
        for (const auto& sender : rig.senders) {
            CHECK(sender.tally().overdue_frames == 0);
            CHECK(sender.tally().max_overdue <= us);
        }
    }
}

TEST_CASE("a line whose crystal is some ppm slow takes the whole line rate, and no frame of it is overdue (R2544-15)") {
    for (const double ppm : {0.0, 5.0, 20.0, 90.0}) {
        CAPTURE(ppm);
        CHECK(overdue_on_a_slow_line(ppm) == 0);
    }
    // More than the offered load may be off is no crystal any more.
    CHECK(overdue_on_a_slow_line(300) > 1'000'000);
}

TEST_CASE("on a line that sets the pace a stall of ours is overdue all the same") {
    CHECK(overdue_on_a_slow_line(20, 400) > 1'000'000);  // it can never be made good
    CHECK(overdue_on_a_slow_line(20, 80) == 0);          // shorter than what counts as overdue
}

TEST_CASE("the sender stops at the deadline; what was not offered by then never is (R2544-39)") {
    Rig4 rig{{.buffers = 128}};
    rig.run_until(start + 500 * us);
    rig.left.accept_at_most = 0;
    rig.run_until(rig.deadline + us);
    CHECK(rig.senders.front().is_done(rig.clock.now()));
    rig.left.accept_at_most = no_limit;
    rig.run_until(rig.deadline + 100 * us);
    CHECK(rig.offered() >= 499);
    CHECK(rig.offered() <= 500);
    CHECK(rig.got().received_frames == rig.offered());
    CHECK(rig.sent().last_send < start + 500 * us);
    rig.senders.front().give_back();
    CHECK(take_all_buffers(rig.left, 128).size() == 128);
}

TEST_CASE("the sender is done when all is offered, and sends no more") {
    Rig4 rig{{.frames = 10}};
    rig.run_until(start + 5 * us);
    CHECK_FALSE(rig.senders.front().is_done(rig.clock.now()));
    rig.run_until(start + 500 * us);
    CHECK(rig.senders.front().is_done(rig.clock.now()));
    CHECK(rig.offered() == 10);
}

TEST_CASE("a receiver that did not look for longer than its ring lasts says by how much") {
    Rig4 rig{{.ring_lasts = 50 * us}};
    rig.run_until(start + 100 * us);
    CHECK(rig.got().max_poll_gap == us);
    CHECK(rig.got().gap_excess[0] == 0);
    SUBCASE("a gap within the ring is only noted") {
        rig.clock.time += 30 * us;
        rig.receive();
        CHECK(rig.got().max_poll_gap == 31 * us);
        CHECK(rig.got().gap_excess[0] == 0);
    }
    SUBCASE("what is beyond the ring adds up over the gaps") {
        for (const std::uint64_t gap : {200U, 80U, 50U}) {
            rig.clock.time += gap * us - us;  // a microsecond has passed since the last look
            rig.receive();
            rig.clock.time += us;
            rig.receive();
            rig.clock.time += us;
        }
        CHECK(rig.got().max_poll_gap == 200 * us);
        CHECK(rig.got().gap_excess[0] == (150 + 30) * us);
    }
    SUBCASE("after the residual wait nothing that counts can be missed") {
        rig.run();
        rig.clock.time = rig.residual_end - us;
        rig.receive();
        const auto longest = rig.got().max_poll_gap;
        rig.clock.time = rig.residual_end + second;
        rig.receive();
        rig.clock.time += second;
        rig.receive();
        CHECK(rig.got().max_poll_gap == longest);
    }
}

TEST_CASE("a stall of the whole CPU loses nothing by itself") {
    Rig6 rig;
    rig.run_until(start + 300 * us);
    rig.clock.time += 400 * us;
    rig.run();
    CHECK(rig.got().received_frames == 1000);
    CHECK(damage_of(rig.got()) == Damage{});
    CHECK(rig.got().max_poll_gap >= 400 * us);
    CHECK(rig.got().gap_excess[0] >= 350 * us);
    CHECK(rig.sent().overdue_frames >= 300);
    CHECK(rig.sent().overdue_frames < 330);
}

TEST_CASE("neighbours are answered during a trial without disturbing its counts (R2544-25)") {
    Rig4 rig{{.buffers = 64}};
    rig.run_until(start + 300 * us);
    rig.right.inject(frame_of(arp_request("10.0.1.2")));
    rig.run_until(start + 302 * us);
    REQUIRE(rig.left.arrived().size() == 1);
    const auto& reply = rig.left.arrived().front();
    CHECK(hex(std::span{reply.octets}.first(reply.length)) ==
          "020000000003"
          "020000000002"
          "0806"
          "0001080006040002"
          "020000000002"
          "0a000102"
          "020000000003"
          "0a000101");
    CHECK(rig.responder.dut_mac() == dut_mac);
    rig.right.inject(frame_of(arp_request("198.19.0.1")));  // a host: nobody's
    rig.run();
    CHECK(rig.left.arrived().size() == 1);
    CHECK(rig.offered() == 1000);
    CHECK(rig.got().received_frames == 1000);
    CHECK(damage_of(rig.got()) == Damage{.neighbor = 2});
}

TEST_CASE("a flood of questions uses up no buffers") {
    Rig4 rig{{.buffers = 64}};
    for (int i = 0; i < 1000; ++i) rig.right.inject(frame_of(arp_request(i % 2 == 0 ? "10.0.1.2" : "10.0.1.3")));
    rig.run_until(start + 100 * us);
    CHECK(rig.left.arrived().size() == 500);
    CHECK(take_all_buffers(rig.right, 64).size() == 64);
}

TEST_CASE("without a trial questions are answered and test frames counted nowhere") {
    Rig4 rig;
    rig.receiver.disarm();
    rig.right.inject(frame_of(arp_request("10.0.1.2")));
    rig.run();
    CHECK(rig.offered() == 1000);
    CHECK(rig.got().received_frames == 0);
    CHECK(damage_of(rig.got()) == Damage{});
    CHECK(rig.got().max_poll_gap == 0);
    CHECK(rig.left.arrived().size() == 1);
    CHECK(take_all_buffers(rig.right, 2048).size() == 2048);
}

}  // namespace sender_test
