// SPDX-License-Identifier: Apache-2.0
// Stations 3 to 6: what both loops count together. R2544-06, R2544-07, R2544-19, R2544-40.
#include <doctest/doctest.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "rig.hpp"

namespace loop_test {

using namespace evenhand;
using namespace evenhand::tests;

namespace {

template <IpVersion V>
void check_everything_arrives(const Options& options) {
    Rig<V> rig{options};
    rig.run();
    CHECK(rig.offered() == options.frames);
    CHECK(rig.got().received_frames == options.frames);
    CHECK(damage_of(rig.got()) == Damage{});
    CHECK(rig.map.missing(0, options.frames) == 0);
    for (const auto& sender : rig.senders) {
        CHECK(sender.is_done(rig.clock.now()));
        CHECK(sender.tally().overdue_frames == 0);
        CHECK(sender.tally().refusals == 0);
    }
    CHECK(rig.got().latency.count() == options.frames);
    CHECK(rig.got().latency.max() == 0);
}

}  // namespace

TEST_CASE("everything sent is received") {
    for (const std::uint64_t streams : {1U, 3U}) {
        for (const std::uint64_t frames : {1U, 2U, 1000U}) {
            CAPTURE(streams);
            CAPTURE(frames);
            check_everything_arrives<IpVersion::v4>({.frames = frames, .streams = streams});
            check_everything_arrives<IpVersion::v6>({.frames = frames, .streams = streams});
        }
    }
    check_everything_arrives<IpVersion::v4>({.streams = 3, .frame_size = 1518});
    check_everything_arrives<IpVersion::v6>({.streams = 3, .frame_size = 128, .turn = 40 * us});
}

TEST_CASE("everything sent is received wherever the counter stands, also where it begins anew") {
    for (const Ticks before : {0 * us, 500 * us, 990 * us}) {
        for (const Ticks begin : starts_before_overflow(before)) {
            CAPTURE(begin);
            check_everything_arrives<IpVersion::v4>({.streams = 3, .start = begin});
            check_everything_arrives<IpVersion::v6>({.start = begin});
        }
    }
}

TEST_CASE("what is late, overdue or beyond the deadline is so wherever the counter stands") {
    const auto counts = [](Ticks begin) {
        Rig4 rig{{.start = begin}};
        rig.left.on_the_wire = [&](MemoryPort::Frame& f) {
            if (number_of(f) != 600) return 1U;
            rig.right.inject(f);
            return 1U;
        };
        rig.run_until(begin + 300 * us);
        rig.clock.time += 400 * us;  // the worker was away
        rig.run_until(begin + 900 * us);
        rig.left.accept_at_most = 0;
        rig.run_until(rig.deadline + 10 * us);
        rig.left.accept_at_most = static_cast<std::size_t>(-1);
        rig.run_until(rig.deadline + 100 * us);  // nothing may leave any more
        const auto damage = damage_of(rig.got());
        const auto& sent = rig.sent();
        CHECK(sent.offered_frames < 910);
        CHECK(rig.senders.front().is_done(rig.clock.now()));
        return std::tuple{sent.offered_frames,       sent.overdue_frames,     sent.max_overdue,  sent.last_send - begin,
                          rig.got().received_frames, rig.got().latency.max(), damage.duplicated, damage.late,
                          rig.got().max_poll_gap,    rig.got().gap_excess[0]};
    };
    const auto usual = counts(start);
    CHECK(std::get<1>(usual) > 250);
    CHECK(std::get<8>(usual) >= 400 * us);
    for (const Ticks before : {0 * us, 310 * us, 500 * us, 10'900 * us}) {
        for (const Ticks begin : starts_before_overflow(before)) {
            CAPTURE(begin);
            CHECK(counts(begin) == usual);
        }
    }
}

TEST_CASE("a frame after the residual wait is late wherever the counter stands") {
    for (const Ticks before : {0 * us, 500 * us, 2 * second + 11'000 * us - 1, 2 * second + 11'000 * us + us}) {
        for (const Ticks begin : starts_before_overflow(before)) {
            CAPTURE(begin);
            Rig6 rig{{.start = begin}};
            MemoryPort::Frame held;
            rig.left.on_the_wire = [&](MemoryPort::Frame& f) {
                if (number_of(f) == 7) held = f;
                return number_of(f) == 7 ? 0U : 1U;
            };
            rig.run();
            rig.clock.time = rig.residual_end + 1;
            rig.right.inject(held);
            rig.receive();
            CHECK(rig.got().received_frames == 999);
            CHECK(damage_of(rig.got()) == Damage{.late = 1});
        }
    }
}

TEST_CASE("each stream sends its own share and nothing else") {
    Rig4 rig{{.frames = 1000, .streams = 3}};
    std::vector<std::vector<std::uint64_t>> numbers(3);
    rig.left.on_the_wire = [&](MemoryPort::Frame& f) {
        const auto look = frame::look_at(f.octets.data(), f.length);
        numbers.at(look.tag.stream).push_back(look.tag.sequence);
        return 1U;
    };
    rig.run();
    for (std::uint64_t s = 0; s < 3; ++s) {
        REQUIRE(numbers[s].size() == (s == 0 ? 334 : 333));
        for (std::uint64_t i = 0; i < numbers[s].size(); ++i) REQUIRE(numbers[s][i] == s + 3 * i);
    }
}

TEST_CASE("a lost frame is one frame less") {
    Rig6 rig;
    rig.left.on_the_wire = [](MemoryPort::Frame& f) { return number_of(f) == 613 ? 0U : 1U; };
    rig.run();
    CHECK(rig.offered() == 1000);
    CHECK(rig.got().received_frames == 999);
    CHECK(damage_of(rig.got()) == Damage{});
    CHECK(rig.map.first_missing(1000, 10) == std::vector<std::uint64_t>{613});
}

TEST_CASE("one loss and one duplicate are not zero loss (R2544-07)") {
    Rig4 rig;
    rig.left.on_the_wire = [](MemoryPort::Frame& f) {
        return number_of(f) == 200 ? 0U : number_of(f) == 500 ? 2U : 1U;
    };
    rig.run();
    CHECK(rig.got().received_frames == 999);
    CHECK(damage_of(rig.got()) == Damage{.duplicated = 1});
    CHECK(rig.map.first_missing(1000, 10) == std::vector<std::uint64_t>{200});
}

TEST_CASE("two frames that change places are one reordered frame (R2544-06)") {
    Rig4 rig;
    MemoryPort::Frame held;
    rig.left.on_the_wire = [&](MemoryPort::Frame& f) {
        if (number_of(f) == 500) held = f;
        if (number_of(f) == 502) rig.right.inject(held);
        return number_of(f) == 500 ? 0U : 1U;
    };
    rig.run();
    CHECK(rig.got().received_frames == 1000);
    CHECK(damage_of(rig.got()) == Damage{.reordered = 1});
}

TEST_CASE("order is looked at in each stream by itself") {
    // Three queues may overtake each other on their way; that is no disorder of the device.
    Rig4 rig{{.frames = 999, .streams = 3}};
    std::vector<MemoryPort::Frame> second_stream;
    rig.left.on_the_wire = [&](MemoryPort::Frame& f) {
        if (number_of(f) % 3 != 1) return 1U;
        second_stream.push_back(f);
        return 0U;
    };
    rig.run();
    for (const auto& f : second_stream) rig.right.inject(f);
    rig.run_until(rig.clock.time + 100 * us);
    CHECK(rig.got().received_frames == 999);
    CHECK(damage_of(rig.got()) == Damage{});
}

TEST_CASE("a single changed octet makes a frame corrupted, and it is lost") {
    for (const std::size_t at : {24U, 27U, 30U, 34U, 41U, 52U, 58U, 59U,
                                 99U}) {  // header checksum, addresses, port, UDP checksum, tag, payload
        CAPTURE(at);
        Rig4 rig{{.frame_size = 128}};
        rig.left.on_the_wire = [&](MemoryPort::Frame& f) {
            if (number_of(f) == 321) {
                auto changed = f;  // a copy: the sender uses the buffer again
                changed.octets[at] ^= std::byte{1};
                rig.right.inject(changed);
                return 0U;
            }
            return 1U;
        };
        rig.run();
        CHECK(rig.got().received_frames == 999);
        CHECK(damage_of(rig.got()) == Damage{.corrupted = 1});
    }
}

TEST_CASE("a frame with a number that was never to be sent is corrupted, even if its checksum is right") {
    Rig4 rig{{.frames = 100}};
    Rig4 longer{{.frames = 101}};
    MemoryPort::Frame last;
    longer.left.on_the_wire = [&](MemoryPort::Frame& f) {
        last = f;
        return 1U;
    };
    longer.run();
    REQUIRE(number_of(last) == 100);
    rig.run();
    rig.right.inject(last);
    rig.receive();
    CHECK(rig.got().received_frames == 100);
    CHECK(damage_of(rig.got()) == Damage{.corrupted = 1});
}

// R2544-05
TEST_CASE("frames of a wrong length, of another trial and of the other direction are told apart") {
    Rig6 rig{{.frame_size = 128}};
    rig.left.on_the_wire = [&](MemoryPort::Frame& f) {
        const auto k = number_of(f);
        auto changed = f;
        if (k == 10) changed.length -= 1;
        if (k == 11) changed.length += 1;
        if (k == 20) changed.octets[frame::Layout<IpVersion::v6>::tag + frame::tag_trial] ^= std::byte{1};
        if (k == 30)
            changed.octets[frame::Layout<IpVersion::v6>::tag + frame::tag_stream] ^= std::byte{frame::direction_bit};
        rig.right.inject(changed);
        return 0U;
    };
    rig.run();
    CHECK(rig.got().received_frames == 996);
    CHECK(damage_of(rig.got()) == Damage{.wrong_length = 2, .foreign = 1, .stale = 1});
}

TEST_CASE("frames that are none of ours are foreign and change no other count") {
    Rig4 rig;
    rig.run_until(start + 300 * us);
    rig.right.inject(
        frame_of("01005e000005"
                 "020000000003"
                 "0800"
                 "45c00040000000000159"));  // OSPF, cut short
    rig.right.inject(
        frame_of("0180c2000000"
                 "020000000003"
                 "0026"
                 "424203"));  // spanning tree
    rig.right.inject(
        frame_of("333300000001"
                 "020000000003"
                 "86dd"
                 "6000000000003aff"));  // cut short
    rig.right.inject(frame_of(""));
    rig.run();
    CHECK(rig.got().received_frames == 1000);
    CHECK(damage_of(rig.got()) == Damage{.foreign = 4});
}

TEST_CASE("a router changes MACs, TTL and header checksum, and the frame is received (R2544-40)") {
    Rig4 rig;
    rig.left.on_the_wire = [&](MemoryPort::Frame& f) {
        auto routed = f;
        std::ranges::copy(std::as_bytes(std::span{right_mac}), routed.octets.begin());
        std::fill_n(routed.octets.begin() + 6, 6, std::byte{0x0A});
        routed.octets[22] = std::byte{9};
        // One less in the TTL's half of a word is one more in that of the checksum (RFC 1624), here without its carry.
        if (routed.octets[24] == std::byte{0xFF}) return 1U;
        routed.octets[24] = static_cast<std::byte>(static_cast<int>(routed.octets[24]) + 1);
        rig.right.inject(routed);
        return 0U;
    };
    rig.run();
    CHECK(rig.got().received_frames == 1000);
    CHECK(damage_of(rig.got()) == Damage{});
}

TEST_CASE("a frame 1.9 s behind the sending is received, one at 2.1 s is late (R2544-19)") {
    for (const auto& [delay, received, late] : {std::tuple{19U, 1000U, 0U}, {20U, 1000U, 0U}, {21U, 999U, 1U}}) {
        Rig4 rig;
        MemoryPort::Frame held;
        rig.left.on_the_wire = [&](MemoryPort::Frame& f) {
            if (number_of(f) == 999) held = f;
            return number_of(f) == 999 ? 0U : 1U;
        };
        rig.run();
        rig.right.inject(held);
        rig.clock.time = rig.deadline + delay * (second / 10);
        rig.receive();
        CHECK(rig.got().received_frames == received);
        CHECK(damage_of(rig.got()) == Damage{.late = late});
    }
}

TEST_CASE("the latency is from building to receiving, over the end of the 48 bits too") {
    for (const Ticks begin : {start, (Ticks{1} << 48U) - 500 * us, (Ticks{7} << 48U) - 3}) {
        Rig4 rig{{.start = begin}};
        for (rig.clock.time = begin; rig.clock.time <= begin + 1000 * us; rig.clock.time += us) {
            rig.send();
            rig.clock.time += 123;
            rig.receive();
            rig.clock.time -= 123;
        }
        CHECK(rig.got().received_frames == 1000);
        CHECK(rig.got().latency.min() == 123);
        CHECK(rig.got().latency.max() == 123);
    }
}

TEST_CASE("a receiver whose counter is some ticks behind the sender's sees no latency of years") {
    Rig4 rig;
    rig.clock.time = start;
    rig.send();
    rig.clock.time -= 40;
    rig.receive();
    CHECK(rig.got().latency.count() == 1);
    CHECK(rig.got().latency.max() == 0);
}

}  // namespace loop_test
