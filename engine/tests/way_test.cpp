// SPDX-License-Identifier: Apache-2.0
// Before the first trial: what comes in while the tester looks for its DUT, and what it says of cables and set-up.
#include <doctest/doctest.h>

#include <array>
#include <string>

#include "frame/reader.hpp"
#include "frame/vlan.hpp"
#include "neighbor/messages.hpp"
#include "neighbor/sightings.hpp"
#include "octets.hpp"
#include "plans.hpp"
#include "run/way.hpp"

namespace way_test {

using namespace evenhand;
using namespace evenhand::run;
using neighbor::Seen;
using neighbor::Sightings;
using neighbor::Tags;
using plan::Direction;
using plan::Side;
using tests::ip;
using tests::Octets;

namespace {

constexpr plan::MacAddress own{2, 0, 0, 0, 0, 0x11};
constexpr plan::MacAddress dut{2, 0, 0, 0, 0, 0x22};
constexpr std::uint32_t plain = 0x8100'0000;
constexpr std::uint32_t service = 0x88A8'0000;

Octets question(bool v6, const plan::MacAddress& mac, const char* from, const char* about) {
    Octets octets(neighbor::solicitation_octets);
    const neighbor::Party self{.mac = mac, .ip = ip(from)};
    octets.resize(v6 ? neighbor::write_neighbor_solicitation(octets, self, ip(about))
                     : neighbor::write_arp_request(octets, self, ip(about)));
    return octets;
}

Octets tagged(const Octets& frame, std::initializer_list<std::uint32_t> tags) {
    Octets octets{frame.begin(), frame.begin() + 12};
    for (const auto tag : tags) {
        for (int shift = 24; shift >= 0; shift -= 8) octets.push_back(static_cast<std::byte>(tag >> shift & 0xFFU));
    }
    octets.insert(octets.end(), frame.begin() + 12, frame.end());
    return octets;
}

/// Both plans' DUT has answered, and 2 frames of each direction were sent in vain.
struct Case {
    plan::AddressPlan plan;
    WayFacts facts;

    explicit Case(bool v6) : plan{v6 ? tests::gateway_v6() : tests::gateway_v4()} {
        facts.plans = {&plan};
        facts.is_resolved = {true, true};
        facts.directions = {Tried{.sent = 2, .came = 0}, Tried{.sent = 2, .came = 0}};
    }
    Seen& left() { return facts.seen[Side::left]; }
    Seen& right() { return facts.seen[Side::right]; }
    [[nodiscard]] Hint only() const {
        const auto hints = hints_of(facts);
        REQUIRE(hints.size() == 1);
        CHECK_FALSE(hints[0].next.empty());
        return hints[0];
    }
};

}  // namespace

TEST_CASE("what comes in is noted from the beginning to the end, with the tags of the side, and nothing of our own") {
    for (const bool v6 : {false, true}) {
        const char* const gateway = v6 ? "2001:2:0:9000::2" : "10.0.1.2";
        const char* const address = v6 ? "2001:2:0:9000::1" : "10.0.1.1";
        for (const Tags& tags : {Tags{}, Tags{plain | 100U}, Tags{service | 200U, plain | 100U}}) {
            std::vector<std::uint16_t> vlans;
            for (const auto tag : tags) vlans.push_back(static_cast<std::uint16_t>(tag & 0xFFFU));
            Sightings sightings{own, frame::VlanTags{vlans}};
            const auto with_tags = [&](const Octets& frame) {
                return tags.empty()       ? frame
                       : tags.size() == 1 ? tagged(frame, {tags[0] | 0x6000U})  // of whatever priority
                                          : tagged(frame, {tags[0], tags[1]});
            };
            CHECK_FALSE(sightings.notes());
            sightings.begin();
            CHECK(sightings.notes());
            sightings.note(with_tags(question(v6, own, gateway, address)));
            sightings.note(with_tags(question(v6, dut, address, gateway)));
            sightings.note(with_tags(question(v6, dut, address, gateway)));
            const Seen seen = sightings.seen();
            CHECK(seen.asked == std::vector{ip(gateway)});
            CHECK(seen.told == std::vector{ip(address)});
            CHECK_FALSE(seen.other_tags);
            sightings.note(tagged(question(v6, dut, address, gateway), {plain | 300U}));
            CHECK(sightings.seen().other_tags == Tags{plain | 300U});
            sightings.note(tagged(question(v6, dut, address, gateway), {plain | 200U, plain | 100U}));
            CHECK(sightings.seen().other_tags == Tags{plain | 200U, plain | 100U});
            for (std::size_t octets = 0; octets < 30; ++octets) sightings.note(Octets(octets, std::byte{0x81}));
            sightings.begin();
            CHECK(sightings.seen().asked.empty());
            sightings.end();
            CHECK_FALSE(sightings.notes());
        }
    }
}

TEST_CASE("a DUT that asks on each side for the other side's gateway has its cables swapped") {
    for (const bool v6 : {false, true}) {
        Case one{v6};
        one.left().asked = {one.plan.right.gateway.value()};
        one.right().asked = {one.plan.left.gateway.value()};
        const Hint hint = one.only();
        CHECK(std::string{hint.code} == "sides_swapped");
        CHECK(hint.what.find(plan::to_string(*one.plan.right.gateway)) != std::string::npos);
        // On one side alone it is a gateway on the wrong side.
        one.right().asked.clear();
        CHECK(std::string{one.only().code} == "other_side");
        // If frames get through, it is as it should be.
        one.facts.directions = {Tried{.sent = 2, .came = 1}, Tried{.sent = 2, .came = 2}};
        CHECK(hints_of(one.facts).empty());
    }
}

TEST_CASE("a DUT that answers on a side for the address of the other alone is swapped") {
    for (const bool v6 : {false, true}) {
        Case one{v6};
        one.facts.is_resolved = {false, false};
        one.facts.directions = {};
        CHECK(hints_of(one.facts).empty());
        one.left().told = {one.plan.right.dut_address};
        one.right().told = {one.plan.left.dut_address};
        CHECK(std::string{one.only().code} == "sides_swapped");
        // One that answers for both everywhere says nothing.
        one.left().told.push_back(one.plan.left.dut_address);
        one.right().told.push_back(one.plan.right.dut_address);
        CHECK(hints_of(one.facts).empty());
    }
}

TEST_CASE("frames that come back where they were sent are of a swapped DUT that knows its neighbours already") {
    Case one{false};
    one.left().test_frames = {2, 0};
    one.right().test_frames = {0, 2};
    CHECK(std::string{one.only().code} == "sides_swapped");
}

TEST_CASE("tags that this side does not have are named, and those that were changed on the way are told apart") {
    Case one{true};
    one.facts.is_resolved = {true, false};
    one.facts.directions = {};
    one.right().other_tags = Tags{plain | 300U};
    Hint hint = one.only();
    CHECK(std::string{hint.code} == "other_vlan");
    CHECK(hint.what ==
          "frames come in on the right side with VLAN 300 (0x8100), and the testbed has no VLAN tag there");
    one.facts.tags[Side::right] = {plain | 100U};
    one.right().other_tags = Tags{};
    CHECK(one.only().what ==
          "frames come in on the right side with no VLAN tag, and the testbed has VLAN 100 (0x8100) there");
    one.facts.tags[Side::right] = {service | 200U, plain | 100U};
    one.right().other_tags = Tags{plain | 200U, plain | 100U};
    hint = one.only();
    CHECK(hint.what.find("changes the outer tag") != std::string::npos);
    CHECK(hint.next.find("tx-vlan-stag-hw-insert off") != std::string::npos);
    // On a side where all is well they are others' business.
    one.facts.is_resolved = {true, true};
    CHECK(hints_of(one.facts).empty());
}

TEST_CASE("a DUT that answers on both sides and lets nothing through does not forward, and its complaints are told") {
    for (const bool v6 : {false, true}) {
        Case one{v6};
        one.facts.directions[Direction::reverse] = Tried{.sent = 2, .came = 2};
        Hint hint = one.only();
        CHECK(std::string{hint.code} == "not_forwarded");
        CHECK(hint.what == "of 2 frames sent to the DUT on the left side, none came out on the right side");
        one.left().icmp = neighbor::IcmpError{v6 ? plan::IpVersion::v6 : plan::IpVersion::v4, 3, 0};
        one.right().asked = {ip(v6 ? "2001:2:0:9000::9" : "10.0.1.9")};
        hint = one.only();
        CHECK(hint.what.find("not an address of the tester") != std::string::npos);
        CHECK(hint.what.find(v6 ? "ICMPv6 type 3, code 0" : "ICMP type 3, code 0") != std::string::npos);
        one.facts.directions = {};
        CHECK(hints_of(one.facts).empty());
    }
}

}  // namespace way_test
