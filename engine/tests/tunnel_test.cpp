// SPDX-License-Identifier: Apache-2.0
// Stations 2, 4 and 5: frames in a tunnel whose other end the DUT is.
#include "frame/tunnel.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <span>
#include <vector>

#include "envelope_rig.hpp"
#include "frame/checksum.hpp"

namespace tunnel_test {

using namespace evenhand;
using namespace evenhand::tests;
using frame::Tunnel;
using frame::TunnelEnds;
using frame::TunnelKind;

namespace {

constexpr plan::MacAddress own{2, 0, 0, 0, 0, 2};
constexpr plan::MacAddress dut{2, 0, 0, 0, 0, 3};

struct Case {
    TunnelEnds ends;
    std::size_t octets;
};
std::vector<Case> all_cases() {
    return {{ends_of(TunnelKind::vxlan), 50},   {ends_of(TunnelKind::vxlan, true), 70}, {ends_of(TunnelKind::mpls), 8},
            {ends_of(TunnelKind::gre), 24},     {ends_of(TunnelKind::gre, true), 44},   {ends_of(TunnelKind::ip), 20},
            {ends_of(TunnelKind::ip, true), 40}};
}

/// Test frame 0 of the direction, `around` octets behind the beginning.
template <IpVersion V>
Octets inner_frame(std::size_t around, std::uint64_t number = 0) {
    const auto plan = V == IpVersion::v4 ? tests::gateway_v4() : tests::gateway_v6();
    constexpr std::size_t size = frame::Layout<V>::smallest_frame_size;
    const auto shape = frame::make_template(plan, size, {.direction = Direction::forward, .stream = 0, .trial = trial},
                                            dut, own);  // from the DUT to the tester
    frame::TestFrameSource source{shape, plan::FlowDraw{plan, Direction::forward, 1}, {}};
    Octets octets(around + size - frame::fcs_octets);
    std::byte* const at = octets.data() + around;
    for (std::uint64_t i = 0; i <= number; ++i) source.write_next(std::span{&at, 1}, 0);
    return octets;
}

/// What the tunnel's other end sends.
template <IpVersion V>
Octets arriving(const TunnelEnds& ends, std::uint64_t number = 0) {
    const Tunnel sends = sent_into(ends, dut, own);
    Octets octets = inner_frame<V>(sends.octets(), number);
    sends.put(octets.data(), octets.size());
    return octets;
}

template <IpVersion V>
Octets tail(const Octets& frame, std::size_t from) {
    return {frame.begin() + static_cast<std::ptrdiff_t>(from), frame.end()};
}

bool fits(const TunnelEnds& ends, const Octets& frame) { return Tunnel{ends}.fits(frame.data(), frame.size()); }

}  // namespace

TEST_CASE("each outer octet of VXLAN over IPv4 is what RFC 7348 says") {
    const Tunnel tunnel = Tunnel{ends_of(TunnelKind::vxlan)}.between(own, dut);
    Octets frame = inner_frame<IpVersion::v4>(tunnel.octets());
    const Octets inner = tail<IpVersion::v4>(frame, 50);
    tunnel.put(frame.data(), frame.size());
    CHECK(hex(std::span{frame}.first(24)) ==
          "0200000000030200000000020800"  // Ethernet
          "4500006000004000"              // IPv4: 46 + 50 octets, do not fragment
          "4011");
    CHECK(frame::fold(frame::sum_short(frame.data() + 14, 20)) == 0xFFFF);
    CHECK(hex(std::span{frame}.subspan(26, 8)) == "c0000202c0000201");
    CHECK(static_cast<unsigned>(frame[34]) >= 0xC0);  // the source port is one of those of RFC 7348, 5
    CHECK(hex(std::span{frame}.subspan(36, 14)) ==
          "12b5004c0000"        // UDP: port 4789, length, no checksum
          "08000000abcdef00");  // VXLAN
    CHECK(tail<IpVersion::v4>(frame, 50) == inner);
}

TEST_CASE("each outer octet of VXLAN over IPv6 is known but flow label and source port, and the checksum is right") {
    const Tunnel tunnel = Tunnel{ends_of(TunnelKind::vxlan, true)}.between(own, dut);
    Octets frame = inner_frame<IpVersion::v6>(tunnel.octets());
    tunnel.put(frame.data(), frame.size());
    CHECK(hex(std::span{frame}.subspan(12, 3)) == "86dd60");
    CHECK(hex(std::span{frame}.subspan(18, 36)) ==
          "00601140" + std::string{"20010db8000000000000000000000002"} + "20010db8000000000000000000000001");
    CHECK(hex(std::span{frame}.subspan(56, 4)) == "12b50060");
    CHECK(hex(std::span{frame}.subspan(62, 8)) == "08000000abcdef00");
    CHECK(frame::fold(frame::sum_short(frame.data() + 22, frame.size() - 22) + frame::pseudo_header_sum(17, 96)) ==
          0xFFFF);
}

TEST_CASE("a label stack has the labels, the bottom, and the TTL of the packet; GRE and IP have their protocol") {
    const Tunnel mpls{ends_of(TunnelKind::mpls)};
    Octets frame = inner_frame<IpVersion::v4>(mpls.octets());
    const Octets inner = tail<IpVersion::v4>(frame, 8);
    mpls.put(frame.data(), frame.size());
    CHECK(hex(std::span{frame}.first(22)) == hex(std::span{inner}.first(12)) + "8847" + "0006400a" + "0001010a");
    CHECK(tail<IpVersion::v4>(frame, 22) == tail<IpVersion::v4>(inner, 14));

    const Tunnel gre{ends_of(TunnelKind::gre)};
    Octets of_v6 = inner_frame<IpVersion::v6>(gre.octets());
    gre.put(of_v6.data(), of_v6.size());
    CHECK(static_cast<unsigned>(of_v6[23]) == 47);
    CHECK(hex(std::span{of_v6}.subspan(34, 5)) == "000086dd60");
    for (const bool v6 : {false, true}) {
        const Tunnel plain{ends_of(TunnelKind::ip, v6)};
        const std::size_t protocol = v6 ? 20 : 23;
        Octets with_v4 = inner_frame<IpVersion::v4>(plain.octets());
        plain.put(with_v4.data(), with_v4.size());
        CHECK(static_cast<unsigned>(with_v4[protocol]) == 4);
        Octets with_v6 = inner_frame<IpVersion::v6>(plain.octets());
        plain.put(with_v6.data(), with_v6.size());
        CHECK(static_cast<unsigned>(with_v6[protocol]) == 41);
    }
}

TEST_CASE("frames of one flow have one source port, and flows have others, so that a hash of outer fields sees them") {
    const Tunnel tunnel{ends_of(TunnelKind::vxlan)};
    std::set<std::uint16_t> ports;
    for (std::uint64_t k = 0; k < 200; ++k) {
        std::set<std::uint16_t> of_flow;
        for (int again = 0; again < 2; ++again) {
            Octets frame = inner_frame<IpVersion::v4>(tunnel.octets(), k);
            tunnel.put(frame.data(), frame.size());
            of_flow.insert(frame::big(frame::load<std::uint16_t>(frame.data() + 34)));
        }
        CHECK(of_flow.size() == 1);
        ports.insert(of_flow.begin(), of_flow.end());
    }
    CHECK(ports.size() > 190);  // of 16,384
    CHECK(*ports.begin() >= 0xC000);
}

template <IpVersion V>
void check_round_trip(const Case& of) {
    const Tunnel tunnel{of.ends};
    CHECK(tunnel.octets() == of.octets);
    Octets frame = arriving<V>(of.ends);
    const Octets came = frame;
    REQUIRE(tunnel.fits(frame.data(), frame.size()));
    tunnel.take(frame.data());
    const Octets inner = inner_frame<V>(0);
    CHECK(hex(std::span{frame}.subspan(tunnel.octets())) == hex(inner));
    tunnel.put_back(frame.data());
    CHECK(hex(frame) == hex(came));
    // A label stack says nothing of the length.
    const std::size_t shorter =
        of.ends.kind == TunnelKind::mpls ? frame::ethernet_octets + of.octets + 20 : frame.size();
    for (std::size_t octets = 0; octets < shorter; ++octets) CHECK_FALSE(tunnel.fits(frame.data(), octets));
}

TEST_CASE("what is in the tunnel is seen as if it had come alone, and can be put back") {
    for (const auto& of : all_cases()) {
        CAPTURE(of.octets);
        check_round_trip<IpVersion::v4>(of);
        check_round_trip<IpVersion::v6>(of);
    }
}

/// Outer octets of which the DUT may choose some bits, and the bits of these.
struct Free {
    std::size_t first;
    std::size_t last;
    unsigned bits = 0xFF;
};

/// Outer IPv4 has a checksum, so its octets are compared where that was made right again.
void mend(Octets& frame) {
    if (frame::big(frame::load<std::uint16_t>(frame.data() + 12)) != frame::ethertype_ipv4) return;
    frame::store(frame.data() + 24, std::uint16_t{0});
    frame::store(frame.data() + 24, frame::ip_checksum(frame::sum_short(frame.data() + 14, 20)));
}

void check_bits(const TunnelEnds& ends, std::size_t octets, const std::vector<Free>& free) {
    const Octets good = arriving<IpVersion::v4>(ends);
    for (std::size_t at = 12; at < octets; ++at) {
        for (unsigned bit = 0; bit < 8; ++bit) {
            CAPTURE(at);
            CAPTURE(bit);
            Octets frame = good;
            frame[at] ^= std::byte{static_cast<std::uint8_t>(1U << bit)};
            if (at < 24 || at > 25) mend(frame);
            const bool is_free = std::ranges::any_of(
                free, [&](const Free& f) { return f.first <= at && at <= f.last && (f.bits >> bit & 1U) != 0; });
            CHECK(fits(ends, frame) == is_free);
        }
    }
}

TEST_CASE("a frame with any other bit than those that the DUT chooses is not in the tunnel") {
    const std::vector<Free> of_ipv4{{15, 15}, {18, 19}, {20, 20, 0xC0}, {22, 22}};
    const auto with = [](std::vector<Free> all, const std::vector<Free>& more) {
        all.insert(all.end(), more.begin(), more.end());
        return all;
    };
    // UDP source port; reserved parts of VXLAN's header.
    check_bits(ends_of(TunnelKind::vxlan), 50, with(of_ipv4, {{34, 35}, {42, 42, 0xF7}, {43, 45}, {49, 49}}));
    check_bits(ends_of(TunnelKind::gre), 38, of_ipv4);
    check_bits(ends_of(TunnelKind::ip), 34, of_ipv4);
    // Traffic class and TTL of each entry.
    check_bits(ends_of(TunnelKind::mpls), 22, {{16, 16, 0x0E}, {17, 17}, {20, 20, 0x0E}, {21, 21}});
    const std::vector<Free> of_ipv6{{14, 14, 0x0F}, {15, 17}, {21, 21}};
    check_bits(ends_of(TunnelKind::gre, true), 58, of_ipv6);
    check_bits(ends_of(TunnelKind::ip, true), 54, of_ipv6);
}

TEST_CASE("a checksum of VXLAN's UDP header may be missing, and must be right if there is one") {
    for (const bool v6 : {false, true}) {
        const auto ends = ends_of(TunnelKind::vxlan, v6);
        const std::size_t udp = v6 ? 54 : 34;
        Octets frame = arriving<IpVersion::v4>(ends);
        frame::store(frame.data() + udp + 6, std::uint16_t{0});
        CHECK(fits(ends, frame));
        const std::size_t source = v6 ? 22 : 26;
        const auto right = frame::udp_checksum(frame::sum_short(frame.data() + source, frame.size() - source) +
                                               frame::pseudo_header_sum(17, frame.size() - udp));
        frame::store(frame.data() + udp + 6, right);
        CHECK(fits(ends, frame));
        frame::store(frame.data() + udp + 6, static_cast<std::uint16_t>(right ^ 1U));
        CHECK_FALSE(fits(ends, frame));
    }
}

/// A direction whose frames the DUT has put into a tunnel, through both loops.
template <IpVersion V>
void check_tunnelled(const TunnelEnds& sent, const TunnelEnds& expected, bool arrives) {
    const auto tags = tags_of({100});
    check_loops<V>({tags, sent_into(sent, left_mac, right_mac)}, {tags, Tunnel{expected}}, arrives);
}

TEST_CASE("frames in the tunnel of their side arrive; those of another VNI, label or end, or of none, are foreign") {
    for (const auto& of : all_cases()) {
        CAPTURE(of.octets);
        check_tunnelled<IpVersion::v4>(of.ends, of.ends, true);
        check_tunnelled<IpVersion::v6>(of.ends, of.ends, true);
        check_tunnelled<IpVersion::v4>({}, of.ends, false);
    }
    auto other = ends_of(TunnelKind::vxlan);
    other.vni ^= 1U;
    check_tunnelled<IpVersion::v4>(other, ends_of(TunnelKind::vxlan), false);
    auto label = ends_of(TunnelKind::mpls);
    label.arriving_labels = {100, 17};
    check_tunnelled<IpVersion::v6>(label, ends_of(TunnelKind::mpls), false);
    auto end = ends_of(TunnelKind::gre, true);
    end.remote = ip("2001:db8::3");
    check_tunnelled<IpVersion::v6>(end, ends_of(TunnelKind::gre, true), false);
}

TEST_CASE("a question on the link is answered there, and one in a VXLAN tunnel inside it") {
    for (const bool v6 : {false, true}) {
        const auto ends = ends_of(TunnelKind::vxlan, v6);
        MemoryPort port;
        MemoryPort wire;
        port.connect(wire);
        wire.connect(port);
        constexpr plan::MacAddress inner_own{2, 0, 0, 0, 1, 2};
        constexpr plan::MacAddress inner_dut{2, 0, 0, 0, 1, 3};
        neighbor::Responder inside{inner_own, ip("10.0.1.2"), ip("10.0.1.1")};
        neighbor::Responder outside{own, ends.local, ends.remote};
        const frame::Envelope envelope{frame::VlanTags{}, Tunnel{ends}};
        run::Receiver<MemoryPort, neighbor::Responder> receiver{port, 0, inside, envelope, nullptr, nullptr, &outside};
        HandClock clock{start};
        const auto ask = [&](const Tunnel& around, const neighbor::Party& asker, const plan::IpAddress& target) {
            port.inject(question(frame::Envelope{frame::VlanTags{}, around}, asker, target));
            receiver.turn(clock.now(), clock);
            MemoryPort::Frame* answer = nullptr;
            return wire.receive(0, &answer, 1) == 1 ? answer : nullptr;
        };
        auto* const on_link = ask({}, {.mac = dut, .ip = ends.remote}, ends.local);
        REQUIRE(on_link != nullptr);
        CHECK(hex(std::span{on_link->octets}.first(12)) == "020000000003020000000002");
        CHECK(outside.answers() == 1);
        CHECK(outside.dut_mac() == dut);
        CHECK_FALSE(inside.dut_mac());

        const Tunnel back = sent_into(ends, dut, own);
        const neighbor::Party asker{.mac = inner_dut, .ip = ip("10.0.1.1")};
        auto* const in_tunnel = ask(back, asker, ip("10.0.1.2"));
        REQUIRE(in_tunnel != nullptr);
        CHECK(inside.answers() == 1);
        CHECK(inside.dut_mac() == inner_dut);
        CHECK(Tunnel{turned(ends)}.fits(in_tunnel->octets.data(), in_tunnel->length));
        CHECK(hex(std::span{in_tunnel->octets}.first(12)) == "020000000003020000000002");
        CHECK(hex(std::span{in_tunnel->octets}.subspan(envelope.octets(), 14)) == "0200000001030200000001020806");
        // Neither answers for the other.
        CHECK(ask({}, asker, ip("10.0.1.2")) == nullptr);
        CHECK(outside.answers() + inside.answers() == 2);
    }
}

}  // namespace tunnel_test
