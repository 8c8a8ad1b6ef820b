// SPDX-License-Identifier: Apache-2.0
// Stations 4 and 5: both sides on one port. Each frame is counted by its own side, and no side answers for the other.
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "envelope_rig.hpp"
#include "results.hpp"

namespace one_armed_test {

using namespace evenhand;
using namespace evenhand::tests;
using frame::TunnelKind;
using plan::Side;

namespace {

constexpr std::uint64_t frames = 100;
constexpr plan::MacAddress own_mac{2, 0, 0, 0, 0, 9};

/// What the frames of a side are in.
struct Around {
    Vlans vlans;
    frame::TunnelEnds tunnel{};

    Around(Vlans of) : vlans{std::move(of)} {}  // NOLINT(google-explicit-constructor)
    Around(Vlans of, frame::TunnelEnds ends) : vlans{std::move(of)}, tunnel{std::move(ends)} {}

    [[nodiscard]] frame::Envelope expected() const { return {tags_of(vlans), frame::Tunnel{tunnel}}; }
    /// What the DUT puts around its frames.
    [[nodiscard]] frame::Envelope sent() const { return {tags_of(vlans), sent_into(tunnel, dut_mac, own_mac)}; }
    [[nodiscard]] bool has_ends() const { return frame::Tunnel{tunnel}.has_ends(); }
};

/// A port that both sides are on, and the wire's other end.
template <IpVersion V>
struct OneArm {
    OneArm(const Around& left, const Around& right, const plan::PerDirection<bool>& is_counted = {true, true})
        : around{left, right} {
        port.connect(wire);
        wire.connect(port);
        for (const auto side : plan::both_sides) {
            const auto& s = plan.side(side);
            responders.push_back(std::make_unique<neighbor::Responder>(own_mac, s.gateway.value(), s.dut_address));
            auto* link = around[side].tunnel.kind == TunnelKind::none ? nullptr : responders.back().get();
            const auto& ends = around[side].tunnel;
            if (around[side].has_ends()) {
                link_responders[side] = std::make_unique<neighbor::Responder>(own_mac, ends.local, ends.remote);
                link = link_responders[side].get();
            }
            receivers.emplace_back(port, 0U, *responders.back(), around[side].expected(), nullptr, nullptr, link);
        }
        receivers[0].share_with(receivers[1], Direction::forward);
        for (const auto direction : plan::both_directions) {
            const auto side = plan::receiving_side(direction);
            if (!is_counted[direction]) continue;
            receivers[static_cast<std::size_t>(side)].arm({.trial = trial,
                                                           .direction = direction,
                                                           .frames = tests::expected(plan, size, direction, own_mac),
                                                           .start = start,
                                                           .clock_skew = us,
                                                           .residual_end = start + second,
                                                           .ring_lasts = 50 * us,
                                                           .burst_lasts = run::receive_burst * us},
                                                          map[direction], *tally[direction], clock.now());
        }
    }

    /// What comes from the DUT: test frames of this direction with these tags, as they were sent, which is as they
    /// arrive but for the MACs.
    void bring(Direction direction, const frame::Envelope& with) {
        const auto shape =
            frame::make_template(plan, size, {.direction = direction, .stream = 0, .trial = trial}, dut_mac, own_mac);
        frame::TaggedSource source{frame::TestFrameSource{shape, plan::FlowDraw{plan, direction, 1}, {}}, with};
        for (std::uint64_t i = 0; i < frames; ++i) {
            MemoryPort::Frame f;
            frame::write_pattern(V, std::span{f.octets}.subspan(with.octets()).first(size - frame::fcs_octets));
            f.length = source.frame_octets(0);
            std::byte* at = f.octets.data();
            source.write_next(std::span{&at, 1}, clock.now());
            port.inject(f);
        }
    }
    void bring(Direction direction) { bring(direction, around[plan::receiving_side(direction)].sent()); }
    void ask(Side about, const frame::Envelope& with) {
        const auto& s = plan.side(about);
        port.inject(question(with, {.mac = dut_mac, .ip = s.dut_address}, *s.gateway));
    }
    /// Asks for the tester's end of the tunnel.
    void ask_end(Side about) {
        const auto& of = around[about];
        port.inject(question(of.expected().outside(), {.mac = dut_mac, .ip = of.tunnel.remote}, of.tunnel.local));
    }
    void receive() {
        while (!port.arrived().empty()) (void)receivers[0].turn(clock.now(), clock);
    }
    [[nodiscard]] const neighbor::Responder& responder(Side side) const {
        return *responders[static_cast<std::size_t>(side)];
    }
    /// Answers in both tunnels and on both links.
    [[nodiscard]] std::uint64_t answers() const {
        std::uint64_t sum = 0;
        for (const auto side : plan::both_sides)
            sum += responder(side).answers() + (link_responders[side] ? link_responders[side]->answers() : 0);
        return sum;
    }

    plan::AddressPlan plan = V == IpVersion::v4 ? tests::gateway_v4() : tests::gateway_v6();
    std::size_t size = frame::Layout<V>::smallest_frame_size;
    plan::PerSide<Around> around;
    MemoryPort port;
    MemoryPort wire;
    std::vector<std::unique_ptr<neighbor::Responder>> responders;
    plan::PerSide<std::unique_ptr<neighbor::Responder>> link_responders;
    std::vector<run::Receiver<MemoryPort, neighbor::Responder>> receivers = reserved();
    plan::PerDirection<tally::SequenceMap> map{tally::SequenceMap{frames, false}, tally::SequenceMap{frames, false}};
    plan::PerDirection<std::unique_ptr<tally::ReceiverTally>> tally{std::make_unique<tally::ReceiverTally>(),
                                                                    std::make_unique<tally::ReceiverTally>()};
    HandClock clock{start};

   private:
    static std::vector<run::Receiver<MemoryPort, neighbor::Responder>> reserved() {
        std::vector<run::Receiver<MemoryPort, neighbor::Responder>> receivers;
        receivers.reserve(2);
        return receivers;
    }
};

struct Arms {
    Around left;
    Around right;
};
const std::vector<Arms> arms_in_vlans{{Vlans{10}, Vlans{20}},           {Vlans{}, Vlans{20}}, {Vlans{10}, Vlans{}},
                                      {Vlans{200, 10}, Vlans{200, 20}}, {Vlans{}, Vlans{}},   {Vlans{10}, Vlans{10}}};

frame::TunnelEnds with_vni(std::uint32_t vni) {
    auto ends = ends_of(TunnelKind::vxlan);
    ends.vni = vni;
    return ends;
}
frame::TunnelEnds at_other_ends(TunnelKind kind) {
    auto ends = ends_of(kind);
    ends.local = ip("203.0.113.2");
    ends.remote = ip("203.0.113.1");
    return ends;
}
frame::TunnelEnds arriving_with(std::uint32_t label) {
    auto ends = ends_of(TunnelKind::mpls);
    ends.labels = ends.arriving_labels = {100, label};
    return ends;
}
/// Tunnels of which the DUT is told apart on the link, too.
std::vector<Arms> arms_in_tunnels() {
    const Vlans none;
    return {{{none, ends_of(TunnelKind::vxlan)}, none},
            {none, {none, ends_of(TunnelKind::vxlan, true)}},
            {{none, ends_of(TunnelKind::gre)}, none},
            {none, {none, ends_of(TunnelKind::ip, true)}},
            {{none, ends_of(TunnelKind::mpls)}, none},
            {none, {none, ends_of(TunnelKind::mpls)}},
            {{none, arriving_with(16)}, {none, arriving_with(17)}},
            {{none, ends_of(TunnelKind::vxlan, true)}, {none, ends_of(TunnelKind::gre)}},
            {{none, ends_of(TunnelKind::ip)}, {none, at_other_ends(TunnelKind::ip)}},
            {{{10}, ends_of(TunnelKind::gre)}, {{20}, ends_of(TunnelKind::gre)}},
            {{none, ends_of(TunnelKind::vxlan)}, {{20}, ends_of(TunnelKind::vxlan)}},
            {{none, ends_of(TunnelKind::vxlan)}, Vlans{20}},
            {{{10}, ends_of(TunnelKind::mpls)}, none}};
}

template <IpVersion V>
void check_each_side_has_its_own(const Arms& arms) {
    OneArm<V> arm{arms.left, arms.right};
    arm.bring(Direction::forward);
    arm.bring(Direction::reverse);
    arm.receive();
    for (const auto direction : plan::both_directions) {
        CHECK(arm.tally[direction]->received_frames == frames);
        CHECK(damage_of(*arm.tally[direction]) == Damage{});
    }
    CHECK(arm.receivers[0].taken_frames() == frames);
    CHECK(arm.receivers[1].taken_frames() == frames);
    CHECK_FALSE(arm.receivers[0].is_fed());
    CHECK(arm.receivers[1].is_fed());
}

template <IpVersion V>
void check_each_side_answers(const Arms& arms) {
    OneArm<V> arm{arms.left, arms.right};
    // Inside a tunnel only if there is Ethernet in it.
    const auto asked_in = [&](Side side) {
        const auto sent = arm.around[side].sent();
        return sent.tunnel().has_ethernet() ? sent : sent.outside();
    };
    const auto is_asked = [&](Side side) {
        const frame::Tunnel of = arm.around[side].expected().tunnel();
        return !of.has_ends() || of.has_ethernet();
    };
    std::uint64_t answers = 0;
    for (const auto side : {Side::right, Side::left}) {
        if (is_asked(side)) {
            arm.ask(side, asked_in(side));
            arm.receive();
            CHECK(arm.responder(side).answers() == 1);
            CHECK(arm.responder(side).dut_mac() == dut_mac);
            CHECK(arm.answers() == ++answers);
            MemoryPort::Frame* answer = nullptr;
            REQUIRE(arm.wire.receive(0, &answer, 1) == 1);
            const auto& expected = arm.around[side].expected();
            const frame::Envelope of_answer{expected.tags(), frame::Tunnel{turned(arm.around[side].tunnel)}};
            const auto& around = expected.tunnel().has_ethernet() ? of_answer : expected.outside();
            CHECK(around.fits(answer->octets.data(), answer->length));
        }
        if (!arm.around[side].has_ends()) continue;
        arm.ask_end(side);
        arm.receive();
        CHECK(arm.link_responders[side]->answers() == 1);
        CHECK(arm.link_responders[side]->dut_mac() == dut_mac);
        CHECK(arm.answers() == ++answers);
        MemoryPort::Frame* answer = nullptr;
        REQUIRE(arm.wire.receive(0, &answer, 1) == 1);
        CHECK(arm.around[side].expected().outside().fits(answer->octets.data(), answer->length));
    }
}

}  // namespace

TEST_CASE("one port, two sides: each receives the frames of its VLAN, its tunnel, or its network") {
    auto all_arms = arms_in_tunnels();
    all_arms.insert(all_arms.end(), arms_in_vlans.begin(), arms_in_vlans.end());
    all_arms.push_back({{Vlans{}, with_vni(100)}, {Vlans{}, with_vni(200)}});  // between the same ends
    for (const auto& arms : all_arms) {
        CAPTURE(arms.left.expected().octets());
        CAPTURE(arms.right.expected().octets());
        check_each_side_has_its_own<IpVersion::v4>(arms);
        check_each_side_has_its_own<IpVersion::v6>(arms);
    }
}

TEST_CASE("one port, two sides: each answers for its own addresses, in its tunnel and on its link") {
    auto all_arms = arms_in_tunnels();
    all_arms.insert(all_arms.end(), arms_in_vlans.begin(), arms_in_vlans.end());
    for (const auto& arms : all_arms) {
        CAPTURE(arms.left.expected().octets());
        CAPTURE(arms.right.expected().octets());
        check_each_side_answers<IpVersion::v4>(arms);
        check_each_side_answers<IpVersion::v6>(arms);
    }
}

TEST_CASE("one port, two sides: what comes back in the VLAN that it was sent in counts for nobody") {
    OneArm<IpVersion::v4> arm{Vlans{10}, Vlans{20}};
    arm.bring(Direction::forward, arm.around[Side::left].sent());
    arm.receive();
    CHECK(arm.tally[Direction::forward]->received_frames == 0);
    CHECK(damage_of(*arm.tally[Direction::forward]) == Damage{});
    CHECK(arm.tally[Direction::reverse]->returned_frames == frames);
}

TEST_CASE("one port, two sides: frames of a third VLAN are foreign, once, to a side that counts") {
    const frame::VlanTags third{Vlans{30}};
    for (const auto& counted : {plan::PerDirection<bool>{true, true}, {true, false}, {false, true}}) {
        OneArm<IpVersion::v6> arm{Vlans{10}, Vlans{20}, counted};
        arm.bring(Direction::forward, third);
        arm.receive();
        CHECK(arm.tally[Direction::forward]->foreign_frames + arm.tally[Direction::reverse]->foreign_frames == frames);
        for (const auto direction : plan::both_directions)
            CHECK((counted[direction] || arm.tally[direction]->foreign_frames == 0));
    }
}

TEST_CASE("one port, two sides: frames of another tunnel are foreign to the side on whose link they are") {
    const Around left{{10}, with_vni(100)};
    const Around right{{20}, with_vni(200)};
    OneArm<IpVersion::v6> arm{left, right};
    arm.bring(Direction::forward, Around{{20}, with_vni(100)}.sent());
    arm.bring(Direction::forward, Around{Vlans{20}}.sent());
    arm.receive();
    CHECK(arm.tally[Direction::forward]->received_frames == 0);
    CHECK(damage_of(*arm.tally[Direction::forward]) == Damage{.foreign = 2 * frames});
    CHECK(damage_of(*arm.tally[Direction::reverse]) == Damage{});
}

TEST_CASE("one port, two sides: its counters are judged against both directions") {
    constexpr std::uint64_t many = 100'000;
    auto result = lossless(many);
    CHECK((tally::judge(result), result.verdict == tally::Verdict::pass));
    result = lossless(many);
    result.is_one_armed = true;
    tally::judge(result);
    CHECK(codes_of(result) == Codes{"transmit_not_drained", "transmit_not_drained"});
    result = lossless(many);
    result.is_one_armed = true;
    for (auto& port : result.ports) port.after.transmitted_frames = port.after.received_frames = 2 * many;
    tally::judge(result);
    CHECK(result.verdict == tally::Verdict::pass);
}

TEST_CASE("one port, two sides: what it missed explains as many losses of both directions, once") {
    constexpr std::uint64_t many = 100'000;
    for (const std::uint64_t missed : {15U, 16U}) {
        auto result = lossless(many);
        result.is_one_armed = true;
        for (auto& d : result.directions) d.received_frames -= 8;
        for (auto& port : result.ports) {
            port.after.transmitted_frames = 2 * many;
            port.after.received_frames = 2 * many - 16;
            port.after.missed_frames = missed;
        }
        tally::judge(result);
        CHECK(result.verdict == (missed == 16 ? tally::Verdict::invalid : tally::Verdict::fail));
    }
}

}  // namespace one_armed_test
