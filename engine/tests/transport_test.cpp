// SPDX-License-Identifier: Apache-2.0
// Stations 2 and 5: flows of TCP and ICMP, and flows with a payload of their own.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <string>
#include <vector>

#include "flow_frames.hpp"
#include "mix_rig.hpp"
#include "slow.hpp"

namespace transport_test {

using namespace evenhand;
using namespace evenhand::tests;
using frame::MixedPlans;

namespace {

/// Flows whose headers are in turn those of UDP, TCP and ICMP; their sizes are equal. `payloads`: how many octets of
/// their own they have, in turn.
MixedPlans with_transports(std::size_t count, std::size_t frame_size, IpVersion version,
                           const std::vector<std::size_t>& payloads = {0}) {
    using Kind = frame::Transport::Kind;
    const auto plain = flows_of(count, frame_size, version).mix;
    auto classes = plain.classes();
    std::vector<std::uint8_t> cycle;
    cycle.reserve(plain.period());
    for (std::size_t k = 0; k < plain.period(); ++k) cycle.push_back(static_cast<std::uint8_t>(plain.class_of(k)));
    for (std::size_t c = 0; c < count; ++c) {
        auto& transport = classes[c].fields.transport;
        transport.kind = c % 3 == 0 ? Kind::udp : c % 3 == 1 ? Kind::tcp : Kind::icmp;
        if (transport.kind == Kind::tcp) {
            for (std::size_t i = 4; i < 16; ++i) transport.header[i] = static_cast<std::byte>(16 * c + i);
            transport.header[12] = std::byte{0x50};
        } else if (transport.kind == Kind::icmp) {
            transport.header[0] = std::byte{version == IpVersion::v4 ? std::uint8_t{8} : std::uint8_t{128}};
        }
        transport.payload_octets = static_cast<std::uint8_t>(payloads[c % payloads.size()]);
        for (std::size_t i = 0; i < transport.payload_octets; ++i)
            transport.payload[i] = static_cast<std::byte>(0xF0 - 16 * c - 3 * i);
    }
    return {.mix = {classes, cycle}, .other_plan = {}};
}

/// The frame that was sent as UDP, as it is with the header of its class: put together from both, with sums anew.
template <IpVersion V>
Octets with_header(const Octets& udp, const frame::Transport& transport) {
    using L = frame::Layout<V>;
    using Kind = frame::Transport::Kind;
    if (transport.is_plain()) return udp;
    const bool is_udp = transport.kind == Kind::udp;
    const bool is_tcp = transport.kind == Kind::tcp;
    const std::size_t length = is_tcp ? 20 : 8;
    Octets octets = udp;
    std::byte* const at = octets.data() + L::udp;
    std::copy_n(udp.data() + L::tag, frame::tag_octets, at + length + transport.payload_octets);
    std::copy_n(transport.payload.data(), transport.payload_octets, at + length);
    const std::size_t checksum = is_udp ? 6 : is_tcp ? 16 : 2;
    if (!is_udp) std::copy_n(transport.header.data(), length, at);
    if (!is_udp) std::copy_n(udp.data() + L::udp, 4, at + (is_tcp ? 0 : 4));
    frame::store(at + checksum, std::uint16_t{0});
    const std::uint8_t protocol = is_udp ? 17 : is_tcp ? 6 : V == IpVersion::v4 ? 1 : 58;
    octets[L::ip + (V == IpVersion::v4 ? 9 : 6)] = std::byte{protocol};
    if constexpr (V == IpVersion::v4) {
        octets[L::ip + 10] = octets[L::ip + 11] = std::byte{0};
        frame::store(octets.data() + L::ip + 10,
                     static_cast<std::uint16_t>(~frame::fold(frame::sum_octets(octets.data() + L::ip, 20))));
    }
    const bool has_pseudo = is_udp || is_tcp || V == IpVersion::v6;
    const std::size_t from = has_pseudo ? L::source : L::udp;
    std::uint64_t sum = frame::sum_octets(octets.data() + from, octets.size() - from);
    if (has_pseudo) sum += frame::pseudo_header_sum(protocol, octets.size() - L::udp);
    const auto inverted = static_cast<std::uint16_t>(~frame::fold(sum));
    frame::store(at + checksum, inverted == 0 ? std::uint16_t{0xFFFF} : inverted);
    return octets;
}

template <IpVersion V>
void check_headers(const plan::AddressPlan& p, std::size_t frame_size, const std::vector<std::size_t>& payloads = {0}) {
    const auto mixed = with_transports(7, frame_size, V, payloads);
    std::vector<Octets> buffers(32, Octets(frame_size - frame::fcs_octets));
    for (auto& buffer : buffers) frame::write_pattern(V, buffer);
    auto source = source_of(p, mixed, {});
    std::uint64_t k = 0;
    for (unsigned burst = 0; burst < 40; ++burst) {
        std::vector<std::byte*> at;
        at.reserve(buffers.size());
        for (unsigned j = 0; j < 1 + burst % 32; ++j) at.push_back(buffers[j].data());
        source.write_next(at, 7);
        for (std::size_t j = 0; j < at.size(); ++j, ++k) {
            const auto& transport = mixed.mix.classes()[mixed.mix.class_of(k)].fields.transport;
            REQUIRE(tests::hex(buffers[j]) == tests::hex(with_header<V>(by_hand<V>(p, mixed, k), transport)));
        }
    }
}

}  // namespace

TEST_CASE("a flow of TCP or ICMP has that header, and right sums, whatever was in its buffer before") {
    for (const std::size_t size : {76U, 77U, 300U}) check_headers<IpVersion::v4>(gateway_v4(), size);
    for (const std::size_t size : {96U, 97U, 300U}) check_headers<IpVersion::v6>(gateway_v6(), size);
    // Payloads of even and odd length, up to the longest, and in a frame that has room for nothing else.
    for (const std::size_t size : {204U, 205U, 400U}) check_headers<IpVersion::v4>(gateway_v4(), size, {0, 1, 8, 128});
    for (const std::size_t size : {224U, 225U, 400U}) check_headers<IpVersion::v6>(gateway_v6(), size, {5, 0, 128, 18});
}

TEST_CASE("flows of TCP and ICMP are received as those of UDP are, and whatever is altered is found") {
    for (const bool is_v4 : {true, false}) {
        CAPTURE(is_v4);
        const auto mixed = with_transports(6, 120, is_v4 ? IpVersion::v4 : IpVersion::v6);
        const auto first_of = [&](std::size_t c) {
            std::uint64_t k = 0;
            while (mixed.mix.class_of(k) != c) ++k;
            return k;
        };
        MixRig whole{mixed, 20 * mixed.mix.period(), is_v4 ? gateway_v4() : gateway_v6()};
        whole.run();
        CHECK(whole.tally->received_frames == whole.frames);
        CHECK(damage_of(*whole.tally) == Damage{});
        for (std::size_t c = 0; c < 6; ++c) CHECK(whole.tally->received_of_class[c] == 20 * (c % 3 + 1));

        // One octet of one frame of each header: in front of it, in it, and in the tag behind it.
        const std::size_t header = is_v4 ? 34 : 54;
        for (const std::size_t c : {1U, 2U}) {
            for (const std::size_t at : {header - 1, header, header + 7, header + 25}) {
                CAPTURE(c);
                CAPTURE(at);
                const auto number = first_of(c);
                std::uint64_t k = 0;
                MixRig rig{mixed, 5 * mixed.mix.period(), is_v4 ? gateway_v4() : gateway_v6()};
                rig.left.on_the_wire = [&](MemoryPort::Frame& f) {
                    if (k++ == number) f.octets[at] ^= std::byte{0x10};
                    return 1U;
                };
                rig.run();
                CHECK(rig.tally->received_frames == rig.frames - 1);
            }
        }
        // TCP's header with another flag and the sum that belongs to it: sound, but not what was sent.
        std::uint64_t k = 0;
        MixRig rig{mixed, 5 * mixed.mix.period(), is_v4 ? gateway_v4() : gateway_v6()};
        rig.left.on_the_wire = [&](MemoryPort::Frame& f) {
            if (k++ == first_of(1)) {
                std::byte* const tcp = f.octets.data() + header;
                const auto before = frame::load<std::uint16_t>(tcp + 12);
                tcp[13] ^= std::byte{0x02};
                const auto after = frame::load<std::uint16_t>(tcp + 12);
                const auto inverted = static_cast<std::uint16_t>(~frame::load<std::uint16_t>(tcp + 16));
                const std::uint64_t sum = std::uint64_t{inverted} + static_cast<std::uint16_t>(~before) + after;
                frame::store(tcp + 16, static_cast<std::uint16_t>(~frame::fold(sum)));
            }
            return 1U;
        };
        rig.run();
        CHECK(rig.tally->received_frames == rig.frames - 1);
        CHECK(rig.tally->corrupted_by[static_cast<std::size_t>(frame::FrameFault::header)] == 1);
    }
}

template <IpVersion V>
void put_sum(Octets& frame) {
    using L = frame::Layout<V>;
    std::byte* const at = frame.data() + L::udp_checksum;
    frame::store(at, std::uint16_t{0});
    const auto sum = frame::sum_octets(frame.data() + L::source, frame.size() - L::source) +
                     frame::pseudo_header_sum(frame::protocol_udp, frame.size() - L::udp);
    frame::store(at, frame::udp_checksum(sum));
}

/// The number of the first frame of a class.
std::uint64_t first_of(const MixedPlans& mixed, std::size_t c) {
    std::uint64_t k = 0;
    while (mixed.mix.class_of(k) != c) ++k;
    return k;
}

/// What a trial makes of its frames if that of this number is altered.
template <IpVersion V, class Alter>
tally::ReceiverTally with_altered(const MixedPlans& mixed, std::uint64_t number, const Alter& alter) {
    MixRig rig{mixed, 5 * mixed.mix.period(), V == IpVersion::v4 ? gateway_v4() : gateway_v6()};
    std::uint64_t k = 0;
    rig.left.on_the_wire = [&](MemoryPort::Frame& f) {
        if (k++ == number) {
            Octets octets(f.octets.data(), f.octets.data() + f.length);
            alter(octets);
            std::copy(octets.begin(), octets.end(), f.octets.data());
        }
        return 1U;
    };
    rig.run();
    CHECK(rig.tally->received_frames == rig.frames - 1);
    return *rig.tally;
}

template <IpVersion V>
void check_payloads() {
    using L = frame::Layout<V>;
    const auto mixed = with_transports(6, 260, V, {0, 8, 33, 128});
    MixRig whole{mixed, 20 * mixed.mix.period(), V == IpVersion::v4 ? gateway_v4() : gateway_v6()};
    whole.run();
    CHECK(whole.tally->received_frames == whole.frames);
    CHECK(damage_of(*whole.tally) == Damage{});
    // Class 3 is UDP with 128 octets: an octet of its payload is as one of the pattern, with the right sum or not.
    for (const std::size_t at : {L::tag, L::tag + 1, L::tag + 64, L::tag + 127}) {
        CAPTURE(at);
        const auto number = first_of(mixed, 3);
        const auto with_sum = with_altered<V>(mixed, number, [&](Octets& octets) {
            octets[at] ^= std::byte{0x10};
            put_sum<V>(octets);
        });
        CHECK(damage_of(with_sum) == Damage{.wrong_payload = 1});
        const auto without = with_altered<V>(mixed, number, [&](Octets& octets) { octets[at] ^= std::byte{0x10}; });
        CHECK(damage_of(without) == Damage{.corrupted = 1});
        CHECK(without.corrupted_by[static_cast<std::size_t>(frame::FrameFault::udp_checksum)] == 1);
    }
    // No frame of any class in which an octet behind the IP header is altered counts. The octets that follow are not
    // written for each frame, so what alters them here alters all that have the buffer.
    for (std::size_t c = 0; c < 6; ++c) {
        for (std::size_t at = L::udp; at < L::tag_end + 128; at += tests::is_slow ? 37 : 5) {
            CAPTURE(c);
            CAPTURE(at);
            (void)with_altered<V>(mixed, first_of(mixed, c), [&](Octets& octets) { octets[at] ^= std::byte{0x81}; });
        }
    }
}

TEST_CASE("a payload is received as it was sent, and an octet of it is checked as one of the pattern") {
    check_payloads<IpVersion::v4>();
    check_payloads<IpVersion::v6>();
}

TEST_CASE("a frame of one flow with the header or the payload's length of another is not the one that was sent") {
    using L = frame::Layout<IpVersion::v4>;
    auto mixed = with_transports(4, 200, IpVersion::v4, {0, 8, 8, 24});  // UDP, TCP, ICMP, UDP
    // The payload of class 3 is cut to the 8 octets that others have, and taken away, with the right sum.
    for (const std::size_t left : {8U, 0U}) {
        const auto tally = with_altered<IpVersion::v4>(mixed, first_of(mixed, 3), [&](Octets& octets) {
            std::copy_n(octets.data() + L::tag + 24, 18, octets.data() + L::tag + left);
            for (std::size_t i = L::tag_end + left; i < L::tag_end + 24; ++i)
                octets[i] = static_cast<std::byte>(i - L::tag_end);
            put_sum<IpVersion::v4>(octets);
        });
        CHECK(damage_of(tally) == Damage{.corrupted = 1});
        CHECK(tally.corrupted_by[static_cast<std::size_t>(frame::FrameFault::header)] == 1);
    }
    // UDP's header with 8 octets where TCP's is to be.
    const auto tally = with_altered<IpVersion::v4>(mixed, first_of(mixed, 1), [&](Octets& octets) {
        const auto k = first_of(mixed, 1);
        auto other = mixed.mix.classes()[1].fields.transport;
        other.kind = frame::Transport::Kind::udp;
        octets = with_header<IpVersion::v4>(by_hand<IpVersion::v4>(gateway_v4(), mixed, k), other);
    });
    CHECK(tally.received_of_class[1] == 5 * 2 - 1);
}

TEST_CASE("octets of a payload that look like a tag are none") {
    using L = frame::Layout<IpVersion::v4>;
    auto classes = with_transports(4, 120, IpVersion::v4, {0, 0, 0, 24}).mix.classes();
    const std::vector<std::uint8_t> cycle{0, 3, 1, 2, 3};
    // The tag of frame 0, which is of a class without a payload, and of frame 1, which is of this one.
    for (const std::uint64_t number : {0U, 1U}) {
        CAPTURE(number);
        const MixedPlans plain{.mix = {classes, cycle}, .other_plan = {}};
        const auto of = by_hand<IpVersion::v4>(gateway_v4(), plain, number);
        for (const std::size_t at : {0U, 6U}) {
            CAPTURE(at);
            auto& transport = classes[3].fields.transport;
            transport.payload = {};
            std::copy_n(of.data() + L::tag, 18, transport.payload.data() + at);
            const MixedPlans mixed{.mix = {classes, cycle}, .other_plan = {}};
            MixRig rig{mixed, 1000};
            rig.run();
            CHECK(rig.tally->received_frames == rig.frames);
            CHECK(damage_of(*rig.tally) == Damage{});
            for (const std::size_t altered : {L::tag, L::tag + 23}) {
                const auto tally =
                    with_altered<IpVersion::v4>(mixed, 1, [&](Octets& octets) { octets[altered] ^= std::byte{0x01}; });
                CHECK(damage_of(tally) == Damage{.corrupted = 1});
                CHECK(tally.received_of_class[0] == 5);
            }
            // The true tag is gone: whatever the frame is taken for, it does not count.
            (void)with_altered<IpVersion::v4>(mixed, 1, [&](Octets& octets) {
                octets[L::tag + 24] ^= std::byte{0x01};
                put_sum<IpVersion::v4>(octets);
            });
        }
    }
}

/// wrap() after unwrap() gives the octets that came, whatever they are, and unwrap() keeps what is wrong with them.
template <IpVersion V>
void check_both_ways() {
    const auto mixed = with_transports(6, 260, V, {0, 8, 33, 128});
    const auto p = V == IpVersion::v4 ? gateway_v4() : gateway_v6();
    const auto expected = expectation_of(p, mixed);
    CHECK(rc::check("both ways", [&] {
        const auto k = *rc::gen::inRange<std::uint64_t>(0, 100);
        const auto& sent = mixed.mix.classes()[mixed.mix.class_of(k)].fields.transport;
        const auto udp = by_hand<V>(p, mixed, k);
        Octets octets = with_header<V>(udp, sent);
        const auto altered = *rc::gen::container<std::vector<std::size_t>>(
            rc::gen::inRange<std::size_t>(frame::Layout<V>::ip + 6, octets.size()));
        for (const auto at : altered) octets[at] ^= static_cast<std::byte>(*rc::gen::inRange<unsigned>(1, 256));
        const auto came = octets;
        frame::Transport had;
        const bool is_changed = frame::unwrap(octets.data(), octets.size(), mixed.mix, trial, &had);
        if (altered.empty()) {
            RC_ASSERT(is_changed == !sent.is_plain());
            RC_ASSERT(octets == udp);
        } else if (std::ranges::min(altered) >= frame::Layout<V>::source && came != with_header<V>(udp, sent)) {
            // In front of the addresses, a router may alter the hop limit.
            const auto look = frame::look_at(octets.data(), octets.size());
            RC_ASSERT(look.kind != frame::FrameKind::test ||
                      !expected.holds(mixed.mix.class_of(look.tag.sequence), octets.data(), V) ||
                      octets == by_hand<V>(p, mixed, look.tag.sequence));
        }
        if (is_changed) frame::wrap<V>(octets.data(), octets.size(), had);
        RC_ASSERT(octets == came);
    }));
}

TEST_CASE("a frame that was unwrapped can be had as it came") {
    check_both_ways<IpVersion::v4>();
    check_both_ways<IpVersion::v6>();
}

}  // namespace transport_test
