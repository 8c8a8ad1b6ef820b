// SPDX-License-Identifier: Apache-2.0
// Station 5: a receiver of ours that loses frames is known, and only frames of this trial that came as a router passes
// them on are received. D5, R2544-05, R2544-06, R2544-19, R2544-40.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <functional>
#include <string>
#include <vector>

#include "neighbor/messages.hpp"
#include "plan/host_set.hpp"
#include "rig.hpp"

namespace receiver_test {

using namespace evenhand;
using namespace evenhand::tests;

namespace {

using Change = std::function<void(MemoryPort::Frame&)>;

template <IpVersion V>
void repair(MemoryPort::Frame& f) {
    using L = frame::Layout<V>;
    const auto sum = [&](std::size_t from, std::size_t octets) {
        return frame::sum_octets(f.octets.data() + from, octets);
    };
    frame::store(f.octets.data() + L::udp_checksum, std::uint16_t{0});
    frame::store(f.octets.data() + L::udp_checksum,
                 frame::udp_checksum(sum(L::source, f.length - L::source) +
                                     frame::pseudo_header_sum(frame::protocol_udp, f.length - L::udp)));
    if constexpr (V == IpVersion::v4) {
        frame::store(f.octets.data() + L::ipv4_checksum, std::uint16_t{0});
        frame::store(f.octets.data() + L::ipv4_checksum, frame::ip_checksum(sum(L::ip, L::ip_octets)));
    }
}

/// Every frame arrives so changed, with right checksums.
template <IpVersion V>
tally::ReceiverTally received_with(const Change& change) {
    Rig<V> rig{{.frames = 100}};
    rig.left.on_the_wire = [&](MemoryPort::Frame& f) {
        auto changed = f;
        change(changed);
        repair<V>(changed);
        rig.right.inject(changed);
        return 0U;
    };
    rig.run();
    return rig.got();
}

template <class T>
Change put(std::size_t at, T value) {
    return [=](MemoryPort::Frame& f) { frame::store(f.octets.data() + at, value); };
}

/// A receiver that takes `turn` ticks for each look at a frame every `us`, of 20,000: what it says it may have lost.
std::uint64_t may_have_lost(Ticks turn, Ticks ring_lasts) {
    Rig4 rig{{.frames = 20'000, .turn = turn, .ring_lasts = ring_lasts, .buffers = 40'000}};
    for (; rig.clock.time < start + 20'000 * us; rig.clock.time += turn) {
        for (Ticks sent = 0; sent < turn; sent += 32 * us) rig.send();
        rig.receive();
    }
    return rig.got().gap_excess[0] / us;
}

}  // namespace

TEST_CASE("a receiver that takes too long for each burst is known by what must wait in its ring") {
    // 64 frames a look: 40 come in the meantime, then 64, then 80.
    CHECK(may_have_lost(40 * us, 2048 * us) == 0);
    CHECK(may_have_lost(63 * us, 2048 * us) == 0);
    // Each look leaves 16 of the 80 frames that arrive: after 128 looks the ring is full, and from then on a fifth is
    // lost.
    const auto lost = may_have_lost(80 * us, 2048 * us);
    CHECK(lost > 1500);
    CHECK(lost < 2500);
}

TEST_CASE("several gaps that are each shorter than the ring lasts may overrun it together") {
    Rig4 rig{{.frames = 2000, .ring_lasts = 200 * us}};
    rig.run_until(start + 100 * us);
    CHECK(rig.got().gap_excess[0] == 0);
    for (int gap = 0; gap < 3; ++gap) {
        rig.clock.time += 180 * us;
        for (int bursts = 0; bursts < 6; ++bursts) rig.send();
        rig.receive();  // 64 of the 180 that came
    }
    // 180, less 64, and 180 more: 96 too many; the ring is full then, takes 64, and gets 180 more.
    CHECK(rig.got().gap_excess[0] == doctest::Approx((96 + 116) * us).epsilon(0.02));
}

TEST_CASE("a poll that empties the ring ends all doubt") {
    Rig4 rig{{.frames = 2000, .ring_lasts = 200 * us}};
    rig.run_until(start + 100 * us);
    for (int gap = 0; gap < 10; ++gap) {
        rig.clock.time += 180 * us;
        for (int bursts = 0; bursts < 6; ++bursts) rig.send();
        for (int looks = 0; looks < 4; ++looks) rig.receive();
    }
    CHECK(rig.got().gap_excess[0] == 0);
}

TEST_CASE("a stall across the end of the residual wait is a gap, and what waited then is late by our fault") {
    Rig4 rig{{.ring_lasts = 5000 * us}};
    std::vector<MemoryPort::Frame> held;
    rig.left.on_the_wire = [&](MemoryPort::Frame& f) {
        held.push_back(f);
        return 0U;
    };
    rig.run();
    rig.clock.time = rig.residual_end - 300 * us;
    rig.receive();
    for (std::size_t i = 0; i < 900; ++i) rig.right.inject(held[i]);
    rig.clock.time = rig.residual_end + 700 * us;
    for (int looks = 0; looks < 20; ++looks, rig.clock.time += us) rig.receive();
    CHECK(damage_of(rig.got()) == Damage{.late = 900});
    CHECK(rig.got().late_by_gap_frames == 900);
    // What comes after that is late by itself.
    for (std::size_t i = 900; i < 1000; ++i) rig.right.inject(held[i]);
    for (int looks = 0; looks < 20; ++looks, rig.clock.time += us) rig.receive();
    CHECK(damage_of(rig.got()) == Damage{.late = 1000});
    CHECK(rig.got().late_by_gap_frames == 900);
    CHECK(rig.got().max_poll_gap >= 300 * us);
}

TEST_CASE("frames of this trial that were sent before it, or in the future, are counted by themselves") {
    for (const auto& [shift, wrong] :
         {std::pair{-2'000'000'000LL, 100U}, {-200'000LL, 100U}, {0LL, 0U}, {2'000'000LL, 100U}, {1LL << 47U, 100U}}) {
        CAPTURE(shift);
        const auto got = received_with<IpVersion::v4>([shift = shift](MemoryPort::Frame& f) {
            using L = frame::Layout<IpVersion::v4>;
            auto* const at = f.octets.data() + L::tag + frame::tag_time;
            std::uint64_t time =
                frame::look_at(f.octets.data(), f.length).tag.time_ticks + static_cast<std::uint64_t>(shift);
            for (int octet = 5; octet >= 0; --octet, time >>= 8U) at[octet] = static_cast<std::byte>(time & 0xFFU);
        });
        CHECK(got.wrong_time_frames == wrong);
        CHECK(got.stale_frames == 0);
        CHECK(got.received_frames == 100 - wrong);
    }
}

namespace {

template <IpVersion V>
void check_hosts_like_host_set(const plan::HostRange& range) {
    const frame::HostCheck<V> check{range};
    const plan::HostSet set{range};
    const auto agree = [&](const plan::IpAddress& address) {
        const auto* const octets = reinterpret_cast<const std::byte*>(address.octets.data());
        RC_ASSERT(check.holds(octets) == set.find(octets).has_value());
    };
    const bool held = rc::check("hosts and near misses", [&] {
        auto address = set.address(*rc::gen::inRange<std::uint32_t>(0, set.size()));
        agree(address);
        // One octet changed, most often among those that vary.
        const auto at = *rc::gen::inRange<std::size_t>(0, plan::address_octets(V));
        address.octets.at(at) = static_cast<std::uint8_t>(*rc::gen::inRange(0, 256));
        agree(address);
    });
    CHECK(held);
}

}  // namespace

TEST_CASE("an address is a host's for the receiver exactly if it is for the responder") {
    for (const auto hosts : {1U, 3U, 65534U}) {
        CAPTURE(hosts);
        check_hosts_like_host_set<IpVersion::v4>(tests::gateway_v4(hosts).right.hosts);
        check_hosts_like_host_set<IpVersion::v6>(tests::gateway_v6(hosts).left.hosts);
        check_hosts_like_host_set<IpVersion::v6>(tests::nets_v6(7, hosts).right.hosts);
    }
    check_hosts_like_host_set<IpVersion::v4>(tests::nets_v4(256, 254).left.hosts);
    check_hosts_like_host_set<IpVersion::v4>(tests::nets_v4(3, 5).right.hosts);
}

TEST_CASE("what comes before the first frame is due is of the wrong time") {
    Rig4 earlier{{.frames = 100}};
    std::vector<MemoryPort::Frame> captured;
    earlier.left.on_the_wire = [&](MemoryPort::Frame& f) {
        captured.push_back(f);
        return 0U;
    };
    earlier.run();
    Rig4 rig{{.frames = 100, .start = start + second}};
    for (const auto& f : captured) rig.right.inject(f);
    rig.run_until(rig.options.start - us);
    CHECK(rig.got().wrong_time_frames == 100);
    CHECK(rig.got().received_frames == 0);
}

TEST_CASE("what no router makes of a test frame is not received, even with right checksums: IPv4") {
    using L = frame::Layout<IpVersion::v4>;
    struct Case {
        const char* what;
        Change change;
        std::uint64_t tally::ReceiverTally::* count = &tally::ReceiverTally::corrupted_frames;
    };
    const std::vector<Case> cases{
        {"a foreign MAC", put(0, frame::big(std::uint32_t{0x02ffffff}))},
        {"IP options", put(L::ip, std::byte{0x46})},
        {"a short total length", put(L::ip + 2, frame::big(std::uint16_t{28}))},
        {"more fragments", put(L::ip + 6, frame::big(std::uint16_t{0x2000}))},
        {"a later fragment", put(L::ip + 6, frame::big(std::uint16_t{0x0001}))},
        {"time to live 0", put(L::ip + 8, std::byte{0})},
        {"more time to live than was sent", put(L::ip + 8, std::byte{64})},
        {"TCP", put(L::ip + 9, std::byte{6})},
        {"another source", put(L::source, frame::big(std::uint32_t{0x0a000001})),
         &tally::ReceiverTally::wrong_address_frames},
        {"another destination", put(L::destination, frame::big(std::uint32_t{0x0a000001})),
         &tally::ReceiverTally::wrong_address_frames},
        {"source and destination of the other direction", put(L::source, frame::big(std::uint32_t{0xc6130005})),
         &tally::ReceiverTally::wrong_address_frames},
        {"a source port below the range", put(L::udp, frame::big(std::uint16_t{1023})),
         &tally::ReceiverTally::wrong_port_frames},
        {"a destination port above the range", put(L::udp + 2, frame::big(std::uint16_t{49152})),
         &tally::ReceiverTally::wrong_port_frames},
        {"a UDP length of its own", put(L::udp_length, frame::big(std::uint16_t{8}))},
    };
    for (const auto& c : cases) {
        CAPTURE(c.what);
        const auto got = received_with<IpVersion::v4>(c.change);
        CHECK(got.received_frames == 0);
        CHECK(got.*c.count == 100);
    }
    CHECK(received_with<IpVersion::v4>([](MemoryPort::Frame&) {}).received_frames == 100);
    CHECK(received_with<IpVersion::v4>(put(L::ip + 6, frame::big(std::uint16_t{0x4000}))).received_frames == 0);
    const auto marked = received_with<IpVersion::v4>(put(L::ip + 1, std::byte{0xB8}));  // a traffic class
    CHECK(marked.received_frames == 100);
    CHECK(marked.remarked_frames == 100);
    CHECK(received_with<IpVersion::v4>(put(L::ip + 8, std::byte{1})).received_frames == 100);  // nine hops
}

TEST_CASE("what no router makes of a test frame is not received, even with right checksums: IPv6") {
    using L = frame::Layout<IpVersion::v6>;
    struct Case {
        const char* what;
        Change change;
        std::uint64_t tally::ReceiverTally::* count = &tally::ReceiverTally::corrupted_frames;
    };
    const std::vector<Case> cases{
        {"a foreign MAC", put(0, frame::big(std::uint32_t{0x02ffffff}))},
        {"version 4", put(L::ip, std::byte{0x40})},
        {"another payload length", put(L::ip + 4, frame::big(std::uint16_t{28}))},
        {"TCP", put(L::ip + 6, std::byte{6})},
        {"a fragment header", put(L::ip + 6, std::byte{44})},
        {"hop limit 0", put(L::ip + 7, std::byte{0})},
        {"a larger hop limit than was sent", put(L::ip + 7, std::byte{64})},
        {"another source", put(L::source, frame::big(std::uint32_t{0x20010db8})),
         &tally::ReceiverTally::wrong_address_frames},
        {"another destination", put(L::destination, frame::big(std::uint32_t{0x20010db8})),
         &tally::ReceiverTally::wrong_address_frames},
        {"a UDP length of its own", put(L::udp_length, frame::big(std::uint16_t{8}))},
    };
    for (const auto& [what, change, count] : cases) {
        CAPTURE(what);
        const auto got = received_with<IpVersion::v6>(change);
        CHECK(got.received_frames == 0);
        CHECK(got.*count == 100);
    }
    CHECK(received_with<IpVersion::v6>([](MemoryPort::Frame&) {}).received_frames == 100);
    CHECK(received_with<IpVersion::v6>(put(L::ip + 7, std::byte{1})).received_frames == 100);
    const auto marked = received_with<IpVersion::v6>(put(L::ip + 1, std::byte{0x0F}));  // flow label
    CHECK(marked.received_frames == 100);
    CHECK(marked.remarked_frames == 100);
}

}  // namespace receiver_test
