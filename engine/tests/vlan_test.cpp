// SPDX-License-Identifier: Apache-2.0
#include "frame/vlan.hpp"

#include <doctest/doctest.h>

#include <span>
#include <string>
#include <vector>

#include "envelope_rig.hpp"

namespace vlan_test {

using namespace evenhand;
using namespace evenhand::tests;

TEST_CASE("tags stand behind the MACs: one of 802.1Q, or an outer one of 802.1ad (R5180-09)") {
    auto frame = octets_of(std::string{"0000000000000000"} + "010101010101020202020202" + "0800aabb");
    auto one = std::vector<std::byte>(frame.begin() + 4, frame.end());
    tags_of({100}).put(one.data());
    CHECK(hex(one) ==
          "010101010101020202020202"
          "81000064"
          "0800aabb");
    tags_of({4094, 1}).put(frame.data());
    CHECK(hex(frame) ==
          "010101010101020202020202"
          "88a80ffe"
          "81000001"
          "0800aabb");
    auto plain = octets_of("0101010101010202020202020800aabb");
    const auto before = plain;
    tags_of({}).put(plain.data());
    CHECK(plain == before);
    CHECK(tags_of({}).take(plain.data(), plain.size()));
    CHECK(plain == before);
}

TEST_CASE("what has the tags is seen without them, of whatever priority; all else stays as it is") {
    const auto tags = tags_of({200, 100});
    const std::string macs = "010101010101020202020202";
    for (const char* const inner : {"81000064", "8100e064", "81001064"}) {
        auto frame = octets_of(macs + "88a8" + "70c8" + inner + "0800aabb");
        REQUIRE(tags.take(frame.data(), frame.size()));
        CHECK(hex(std::span{frame}.subspan(8)) == macs + "0800aabb");
    }
    for (const char* const other : {"88a800c8"
                                    "81000065"
                                    "0800",
                                    "88a800c9"
                                    "81000064"
                                    "0800",
                                    "810000c8"
                                    "81000064"
                                    "0800",
                                    "88a800c8"
                                    "88a80064"
                                    "0800",
                                    "81000064"
                                    "08000000"
                                    "0000",
                                    "08000000"
                                    "00000000"
                                    "0000",
                                    "88a800c8"
                                    "81000064",
                                    "88a8", ""}) {
        auto frame = octets_of(macs + other);
        const auto before = frame;
        CAPTURE(other);
        CHECK_FALSE(tags.take(frame.data(), frame.size()));
        CHECK(frame == before);
    }
}

TEST_CASE("the innermost tag has the VLAN of a frame's flow, which is read again where all else is this side's") {
    const std::string macs = "010101010101020202020202";
    for (const bool is_alone : {true, false}) {
        const auto tags = is_alone ? tags_of({100}) : tags_of({200, 100});
        auto frame = octets_of((is_alone ? "00000000" : "0000000000000000") + macs + "0800aabb");
        tags.put(frame.data(), {.priority = 7, .vlan = 0xABC});
        CHECK(hex(frame) == macs + (is_alone ? "" : "88a8e0c8") + "8100eabc" + "0800aabb");
        CHECK(tags.innermost_vlan(frame.data(), frame.size()) == 0xABC);
        CHECK(tags.innermost_vlan(frame.data(), tags.octets() + 13) == 0);
        CHECK(tags_of({}).innermost_vlan(frame.data(), frame.size()) == 0);
        CHECK(tags_of({201, 100}).innermost_vlan(frame.data(), frame.size()) == 0);
        const auto before = frame;
        CHECK_FALSE(tags.take(frame.data(), frame.size()));
        CHECK(frame == before);
        tags.take_innermost(frame.data());
        CHECK(hex(std::span{frame}.subspan(tags.octets())) == macs + "0800aabb");
        auto of_side = octets_of((is_alone ? "00000000" : "0000000000000000") + macs + "0800aabb");
        tags.put(of_side.data(), {.priority = 1});
        CHECK(tags.take(of_side.data(), of_side.size()));
    }
}

TEST_CASE("frames with the tags of their side arrive; with others they are foreign") {
    for (const auto& sent : {Vlans{}, {100}, {200, 100}}) {
        for (const auto& expected : {Vlans{}, {100}, {101}, {200, 100}}) {
            CAPTURE(sent.size());
            CAPTURE(expected.size());
            check_loops<IpVersion::v4>(tags_of(sent), tags_of(expected), sent == expected);
            check_loops<IpVersion::v6>(tags_of(sent), tags_of(expected), sent == expected);
        }
    }
}

TEST_CASE("a question with the tags is answered with them, and one without is not answered") {
    for (const bool has_tags : {true, false}) {
        Rig4 rig;
        const auto tags = tags_of({200, 100});
        run::Receiver<MemoryPort, neighbor::Responder> receiver{rig.right, 0, rig.responder, tags};
        const auto asked = question(has_tags ? tags : tags_of({}), {.mac = dut_mac, .ip = rig.plan.right.dut_address},
                                    *rig.plan.right.gateway);
        rig.right.inject(asked);
        receiver.turn(rig.clock.now(), rig.clock);
        CHECK(rig.responder.answers() == (has_tags ? 1 : 0));
        MemoryPort::Frame* answer = nullptr;
        REQUIRE(rig.left.receive(0, &answer, 1) == (has_tags ? 1 : 0));
        if (!has_tags) continue;
        CHECK(hex(std::span{answer->octets}.subspan(12, 10)) ==
              "88a800c8"
              "81000064"
              "0806");
        CHECK(answer->length == asked.length);
    }
}

}  // namespace vlan_test
