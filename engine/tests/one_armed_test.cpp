// SPDX-License-Identifier: Apache-2.0
// Stations 4 and 5: both sides on one port. Each frame is counted by its own side, and no side answers for the other.
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "frame/vlan.hpp"
#include "results.hpp"
#include "rig.hpp"

namespace one_armed_test {

using namespace evenhand;
using namespace evenhand::tests;
using plan::Side;

namespace {

using Vlans = std::vector<std::uint16_t>;
constexpr std::uint64_t frames = 100;
constexpr plan::MacAddress own_mac{2, 0, 0, 0, 0, 9};

/// A port that both sides are on, and the wire's other end.
template <IpVersion V>
struct OneArm {
    OneArm(const Vlans& left, const Vlans& right, const plan::PerDirection<bool>& is_counted = {true, true})
        : tags{frame::VlanTags{left}, frame::VlanTags{right}} {
        port.connect(wire);
        wire.connect(port);
        for (const auto side : plan::both_sides) {
            const auto& s = plan.side(side);
            responders.push_back(std::make_unique<neighbor::Responder>(own_mac, s.gateway.value(), s.dut_address));
            receivers.emplace_back(port, 0U, *responders.back(), tags[side]);
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
    void bring(Direction direction, const frame::VlanTags& with) {
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
    void ask(Side about, const frame::VlanTags& with) {
        MemoryPort::Frame f;
        const auto room = std::span{f.octets}.subspan(with.octets());
        const auto& s = plan.side(about);
        const neighbor::Party dut{.mac = dut_mac, .ip = s.dut_address};
        f.length = with.octets() + (V == IpVersion::v4 ? neighbor::write_arp_request(room, dut, *s.gateway)
                                                       : neighbor::write_neighbor_solicitation(room, dut, *s.gateway));
        with.put(f.octets.data());
        port.inject(f);
    }
    void receive() {
        while (!port.arrived().empty()) (void)receivers[0].turn(clock.now(), clock);
    }
    [[nodiscard]] const neighbor::Responder& responder(Side side) const {
        return *responders[static_cast<std::size_t>(side)];
    }

    plan::AddressPlan plan = V == IpVersion::v4 ? tests::gateway_v4() : tests::gateway_v6();
    std::size_t size = frame::Layout<V>::smallest_frame_size;
    plan::PerSide<frame::VlanTags> tags;
    MemoryPort port;
    MemoryPort wire;
    std::vector<std::unique_ptr<neighbor::Responder>> responders;
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
    Vlans left;
    Vlans right;
};
const std::vector<Arms> all_arms{{{10}, {20}}, {{}, {20}}, {{10}, {}}, {{200, 10}, {200, 20}}, {{}, {}}, {{10}, {10}}};

template <IpVersion V>
void check_each_side_has_its_own(const Arms& arms) {
    OneArm<V> arm{arms.left, arms.right};
    arm.bring(Direction::forward, arm.tags[Side::right]);
    arm.bring(Direction::reverse, arm.tags[Side::left]);
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
    arm.ask(Side::right, arm.tags[Side::right]);
    arm.receive();
    CHECK(arm.responder(Side::left).answers() == 0);
    CHECK(arm.responder(Side::right).answers() == 1);
    CHECK(arm.responder(Side::right).dut_mac() == dut_mac);
    CHECK_FALSE(arm.responder(Side::left).dut_mac().has_value());
    MemoryPort::Frame* answer = nullptr;
    REQUIRE(arm.wire.receive(0, &answer, 1) == 1);
    CHECK(arm.tags[Side::right].fits(answer->octets.data(), answer->length));
    arm.ask(Side::left, arm.tags[Side::left]);
    arm.receive();
    CHECK(arm.responder(Side::left).answers() == 1);
    CHECK(arm.responder(Side::right).answers() == 1);
}

}  // namespace

TEST_CASE("one port, two sides: each receives the frames of its VLAN, or of its network") {
    for (const auto& arms : all_arms) {
        CAPTURE(arms.left.size());
        CAPTURE(arms.right.size());
        check_each_side_has_its_own<IpVersion::v4>(arms);
        check_each_side_has_its_own<IpVersion::v6>(arms);
    }
}

TEST_CASE("one port, two sides: each answers for its own addresses, with its tags") {
    for (const auto& arms : all_arms) {
        CAPTURE(arms.left.size());
        CAPTURE(arms.right.size());
        check_each_side_answers<IpVersion::v4>(arms);
        check_each_side_answers<IpVersion::v6>(arms);
    }
}

TEST_CASE("one port, two sides: what comes back in the VLAN that it was sent in counts for nobody") {
    OneArm<IpVersion::v4> arm{{10}, {20}};
    arm.bring(Direction::forward, arm.tags[Side::left]);
    arm.receive();
    CHECK(arm.tally[Direction::forward]->received_frames == 0);
    CHECK(damage_of(*arm.tally[Direction::forward]) == Damage{});
    CHECK(arm.tally[Direction::reverse]->returned_frames == frames);
}

TEST_CASE("one port, two sides: frames of a third VLAN are foreign, once, to a side that counts") {
    const frame::VlanTags third{Vlans{30}};
    for (const auto& counted : {plan::PerDirection<bool>{true, true}, {true, false}, {false, true}}) {
        OneArm<IpVersion::v6> arm{{10}, {20}, counted};
        arm.bring(Direction::forward, third);
        arm.receive();
        CHECK(arm.tally[Direction::forward]->foreign_frames + arm.tally[Direction::reverse]->foreign_frames == frames);
        for (const auto direction : plan::both_directions)
            CHECK((counted[direction] || arm.tally[direction]->foreign_frames == 0));
    }
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
