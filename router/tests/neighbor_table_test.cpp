// SPDX-License-Identifier: Apache-2.0
// Neighbour table: SEED-19 and the state machine of RFC 4861, 7.3, with time driven by hand. One tick is one
// millisecond here.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "fault.hpp"
#include "plans.hpp"
#include "tables/neighbor_table.hpp"

namespace neighbor_table_test {

using namespace evenhand;
using plan::IpAddress;
using plan::IpVersion;
using plan::MacAddress;
using router::Evidence;
using router::HoldResult;
using router::NeighborQuestion;
using router::NeighborState;
using router::NeighborTable;
using router::Ticks;
using tests::ip;

namespace {

constexpr double ticks_per_second = 1000;
constexpr MacAddress mac_a{2, 0, 0, 0, 0, 0xa};
constexpr MacAddress mac_b{2, 0, 0, 0, 0, 0xb};
const std::array<IpAddress, 2> gateways{ip("10.0.0.2"), ip("2001:2:0:1000::2")};

/// The n-th host of a direct network.
IpAddress host(IpVersion version, unsigned n) {
    auto address = ip(version == IpVersion::v4 ? "198.18.0.0" : "2001:2::2");
    const std::size_t at = version == IpVersion::v4 ? 2 : 12;
    address.octets[at] = static_cast<std::uint8_t>(n >> 8U);
    address.octets[at + 1] = static_cast<std::uint8_t>(n);
    return address;
}

struct Sent {
    void* frame;
    unsigned interface;
    MacAddress mac;

    friend bool operator==(const Sent&, const Sent&) = default;
};

/// A table, and the worker around it.
struct Rig {
    explicit Rig(NeighborTable::Options options = {}) : table{options, ticks_per_second} {}

    std::vector<NeighborQuestion> turn(Ticks now) {
        std::vector<NeighborQuestion> questions;
        table.turn(now, [&](const NeighborQuestion& question) { questions.push_back(question); });
        table.take_ready(
            [&](void* frame, unsigned interface, const MacAddress& mac) { sent.push_back({frame, interface, mac}); },
            [&](void* frame) { dropped.push_back(frame); });
        return questions;
    }
    HoldResult hold(const IpAddress& next_hop, void* frame, Ticks now) { return table.hold(0, next_hop, frame, now); }
    void answer(const IpAddress& neighbor, const MacAddress& mac, Ticks now) {
        table.learn(0, neighbor, mac, now, router::answer_evidence);
    }
    /// As found by a frame.
    MacAddress find(const IpAddress& next_hop, Ticks now) {
        const auto* const mac = table.find(0, next_hop, now);
        return mac == nullptr ? MacAddress{} : *mac;
    }
    NeighborState state(const IpAddress& neighbor) const { return table.state(0, neighbor).value(); }
    void resolve(const IpAddress& neighbor, const MacAddress& mac, Ticks now) {
        REQUIRE(hold(neighbor, &now, now) == HoldResult::held);
        (void)turn(now);
        answer(neighbor, mac, now);
        (void)turn(now);
        REQUIRE(state(neighbor) == NeighborState::reachable);
    }

    NeighborTable table;
    std::vector<Sent> sent;
    std::vector<void*> dropped;
};

std::array<int, 100> frames{};  // stand for frames by their addresses

}  // namespace

TEST_CASE("the first frame to a neighbour asks once, waits, and leaves with the answer") {
    for (const auto& gateway : gateways) {
        CAPTURE(plan::to_string(gateway));
        Rig rig;
        CHECK(rig.table.find(0, gateway, 5) == nullptr);
        CHECK(rig.hold(gateway, &frames[0], 5) == HoldResult::held);
        CHECK(rig.hold(gateway, &frames[1], 6) == HoldResult::held);
        CHECK(rig.state(gateway) == NeighborState::incomplete);
        const auto questions = rig.turn(7);
        REQUIRE(questions.size() == 1);
        CHECK(questions[0].target == gateway);
        CHECK(questions[0].interface == 0);
        CHECK_FALSE(questions[0].to);
        CHECK(rig.turn(8).empty());
        CHECK(rig.sent.empty());
        rig.answer(gateway, mac_a, 9);
        CHECK(rig.turn(9).empty());
        CHECK(rig.sent == std::vector<Sent>{{&frames[0], 0, mac_a}, {&frames[1], 0, mac_a}});
        CHECK(rig.dropped.empty());
        CHECK(rig.find(gateway, 10) == mac_a);
        CHECK(rig.table.counters().resolved.value() == 1);
        CHECK(rig.table.counters().questions.value() == 1);
    }
}

TEST_CASE("neighbours of two interfaces are strangers, and so are addresses of two families") {
    Rig rig;
    rig.resolve(ip("10.0.0.2"), mac_a, 0);
    CHECK(rig.table.find(1, ip("10.0.0.2"), 1) == nullptr);
    CHECK(rig.table.find(0, ip("a00:2::"), 1) == nullptr);  // the same octets as 10.0.0.2
    rig.table.learn(1, ip("10.0.0.2"), mac_b, 1, router::asker_evidence);
    CHECK(rig.find(ip("10.0.0.2"), 2) == mac_a);
    CHECK(*rig.table.find(1, ip("10.0.0.2"), 2) == mac_b);
    CHECK(rig.table.size() == 2);
}

TEST_CASE("an unanswered question is repeated every second, three times in all, and then the frames are given up") {
    for (const auto& gateway : gateways) {
        Rig rig;
        CHECK(rig.hold(gateway, &frames[0], 0) == HoldResult::held);
        CHECK(rig.turn(0).size() == 1);
        CHECK(rig.turn(999).empty());
        CHECK(rig.turn(1000).size() == 1);
        CHECK(rig.turn(1999).empty());
        CHECK(rig.turn(2000).size() == 1);
        CHECK(rig.turn(2999).empty());
        CHECK(rig.dropped.empty());
        CHECK(rig.turn(3000).empty());
        CHECK(rig.dropped == std::vector<void*>{&frames[0]});
        CHECK(rig.sent.empty());
        CHECK(rig.table.size() == 0);
        CHECK(rig.table.counters().failed.value() == 1);
        CHECK(rig.table.counters().dropped_frames.value() == 1);
        // The next frame starts anew.
        CHECK(rig.hold(gateway, &frames[1], 3001) == HoldResult::held);
        CHECK(rig.turn(3001).size() == 1);
    }
}

TEST_CASE("an answer to the last question is in time") {
    Rig rig;
    CHECK(rig.hold(gateways[0], &frames[0], 0) == HoldResult::held);
    for (const Ticks now : {0U, 1000U, 2000U}) (void)rig.turn(now);
    rig.answer(gateways[0], mac_a, 2999);
    CHECK(rig.turn(3000).empty());
    CHECK(rig.sent.size() == 1);
    CHECK(rig.find(gateways[0], 3001) == mac_a);
}

TEST_CASE("a neighbour in use is probed by unicast after 30 s, and frames go on meanwhile") {
    for (const auto& gateway : gateways) {
        Rig rig;
        rig.resolve(gateway, mac_a, 0);
        CHECK(rig.turn(29'999).empty());
        CHECK(rig.find(gateway, 29'999) == mac_a);
        CHECK(rig.state(gateway) == NeighborState::reachable);
        CHECK(rig.turn(30'000).empty());
        CHECK(rig.state(gateway) == NeighborState::stale);
        CHECK(rig.turn(31'000).empty());  // nobody uses it: nobody asks
        CHECK(rig.find(gateway, 31'001) == mac_a);
        CHECK(rig.state(gateway) == NeighborState::probe);
        const auto probes = rig.turn(31'002);
        REQUIRE(probes.size() == 1);
        CHECK(probes[0].to == mac_a);
        CHECK(probes[0].target == gateway);
        CHECK(rig.find(gateway, 31'003) == mac_a);
        CHECK(rig.turn(31'003).empty());
        rig.answer(gateway, mac_a, 31'010);
        CHECK(rig.state(gateway) == NeighborState::reachable);
        CHECK(rig.turn(61'009).empty());
        CHECK(rig.find(gateway, 61'009) == mac_a);
        CHECK(rig.state(gateway) == NeighborState::reachable);
        CHECK(rig.table.counters().probes.value() == 1);
        CHECK(rig.table.counters().resolved.value() == 1);
    }
}

TEST_CASE("a use after 30 s is noticed even where aging has not come yet") {
    Rig rig;
    rig.resolve(gateways[0], mac_a, 0);
    CHECK(rig.find(gateways[0], 30'000) == mac_a);
    CHECK(rig.turn(30'000).size() == 1);
}

TEST_CASE("a neighbour that answers no probe is forgotten after three of them, and asked for anew") {
    for (const auto& gateway : gateways) {
        Rig rig;
        rig.resolve(gateway, mac_a, 0);
        CHECK(rig.find(gateway, 40'000) == mac_a);
        for (const Ticks now : {40'000U, 41'000U, 42'000U}) {
            REQUIRE(rig.turn(now).size() == 1);
            CHECK(rig.find(gateway, now) == mac_a);
        }
        CHECK(rig.turn(43'000).empty());
        CHECK(rig.table.size() == 0);
        CHECK(rig.table.find(0, gateway, 43'001) == nullptr);
        CHECK(rig.hold(gateway, &frames[0], 43'001) == HoldResult::held);
        const auto questions = rig.turn(43'001);
        REQUIRE(questions.size() == 1);
        CHECK_FALSE(questions[0].to);
    }
}

TEST_CASE("a stale neighbour that nobody uses goes after 60 s") {
    Rig rig;
    rig.resolve(gateways[1], mac_a, 0);
    (void)rig.turn(30'000);
    (void)rig.turn(89'999);
    CHECK(rig.table.size() == 1);
    (void)rig.turn(90'000);
    CHECK(rig.table.size() == 0);
    CHECK(rig.table.counters().expired.value() == 1);
    CHECK(rig.table.counters().failed.value() == 0);
}

TEST_CASE("who asks is known and stale, who gossips is not made known") {
    Rig rig;
    rig.table.learn(0, gateways[0], mac_a, 0, router::gossip_evidence);
    rig.answer(gateways[0], mac_a, 0);  // an answer to nothing (RFC 4861, 7.2.5)
    CHECK(rig.table.size() == 0);
    rig.table.learn(0, gateways[0], mac_a, 0, router::asker_evidence);
    CHECK(rig.state(gateways[0]) == NeighborState::stale);
    CHECK(rig.find(gateways[0], 1) == mac_a);
    CHECK(rig.turn(1).size() == 1);
    // Gossip does let waiting frames go.
    CHECK(rig.hold(gateways[1], &frames[0], 2) == HoldResult::held);
    rig.table.learn(0, gateways[1], mac_b, 3, router::gossip_evidence);
    (void)rig.turn(3);
    CHECK(rig.sent == std::vector<Sent>{{&frames[0], 0, mac_b}});
    CHECK(rig.state(gateways[1]) == NeighborState::stale);
}

TEST_CASE("another MAC is taken as RFC 4861, 7.2.5 says") {
    struct Case {
        Evidence evidence;
        MacAddress mac;
        MacAddress known_after;
        NeighborState after;
    };
    const Evidence weak{.solicited = true, .overrides = false};
    const std::vector<Case> cases{{router::answer_evidence, mac_a, mac_a, NeighborState::reachable},
                                  {router::answer_evidence, mac_b, mac_b, NeighborState::reachable},
                                  {router::gossip_evidence, mac_a, mac_a, NeighborState::reachable},
                                  {router::gossip_evidence, mac_b, mac_b, NeighborState::stale},
                                  {router::asker_evidence, mac_a, mac_a, NeighborState::reachable},
                                  {router::asker_evidence, mac_b, mac_b, NeighborState::stale},
                                  {weak, mac_a, mac_a, NeighborState::reachable},
                                  {weak, mac_b, mac_a, NeighborState::stale}};
    for (std::size_t i = 0; i < cases.size(); ++i) {
        CAPTURE(i);
        Rig rig;
        rig.resolve(gateways[0], mac_a, 0);
        rig.table.learn(0, gateways[0], cases[i].mac, 1, cases[i].evidence);
        CHECK(rig.state(gateways[0]) == cases[i].after);
        CHECK(rig.find(gateways[0], 1) == cases[i].known_after);
    }
    // A stale one is not changed by a weak claim either, and stays stale.
    Rig rig;
    rig.table.learn(0, gateways[0], mac_a, 0, router::asker_evidence);
    rig.table.learn(0, gateways[0], mac_b, 0, weak);
    CHECK(rig.state(gateways[0]) == NeighborState::stale);
    CHECK(rig.find(gateways[0], 0) == mac_a);
}

TEST_CASE("a probe can be answered without a MAC, a first question cannot") {
    Rig rig;
    CHECK(rig.hold(gateways[1], &frames[0], 0) == HoldResult::held);
    rig.table.confirm(0, gateways[1], 0);
    rig.table.confirm(0, gateways[0], 0);
    CHECK(rig.state(gateways[1]) == NeighborState::incomplete);
    CHECK(rig.table.size() == 1);
    rig.answer(gateways[1], mac_a, 0);
    CHECK(rig.find(gateways[1], 30'000) == mac_a);
    CHECK(rig.turn(30'000).size() == 1);
    rig.table.confirm(0, gateways[1], 30'001);
    CHECK(rig.state(gateways[1]) == NeighborState::reachable);
    CHECK(rig.turn(31'000).empty());
}

TEST_CASE("a configured neighbour is never asked, changed or forgotten") {
    Rig rig;
    CHECK(rig.hold(gateways[0], &frames[0], 0) == HoldResult::held);
    rig.table.fix(0, gateways[0], mac_a);
    CHECK(rig.turn(0).empty());
    CHECK(rig.sent == std::vector<Sent>{{&frames[0], 0, mac_a}});
    rig.answer(gateways[0], mac_b, 1);
    rig.table.confirm(0, gateways[0], 1);
    CHECK(rig.turn(1'000'000'000).empty());
    CHECK(rig.find(gateways[0], 1'000'000'000) == mac_a);
    CHECK(rig.state(gateways[0]) == NeighborState::fixed);
}

TEST_CASE("the queue of a neighbour has a bound, and so have all queues together") {
    Rig rig{{.queue_frames = 3, .all_queues_frames = 5}};
    for (std::size_t i = 0; i < 3; ++i) CHECK(rig.hold(gateways[0], &frames[i], 0) == HoldResult::held);
    CHECK(rig.hold(gateways[0], &frames[3], 0) == HoldResult::too_many_waiting);
    for (std::size_t i = 4; i < 6; ++i) CHECK(rig.hold(gateways[1], &frames[i], 0) == HoldResult::held);
    CHECK(rig.hold(gateways[1], &frames[6], 0) == HoldResult::too_many_waiting);
    CHECK(rig.hold(ip("10.0.0.3"), &frames[7], 0) == HoldResult::too_many_waiting);
    CHECK(rig.turn(0).size() == 3);  // a neighbour whose frame had no room is asked for all the same
    CHECK(rig.table.counters().held_frames.value() == 5);
    CHECK(rig.table.counters().refused_frames.value() == 3);
    rig.answer(gateways[0], mac_a, 1);
    (void)rig.turn(1);
    CHECK(rig.sent == std::vector<Sent>{{&frames[0], 0, mac_a}, {&frames[1], 0, mac_a}, {&frames[2], 0, mac_a}});
    // Their places are free again.
    for (std::size_t i = 8; i < 11; ++i) CHECK(rig.hold(ip("10.0.0.3"), &frames[i], 1) == HoldResult::held);
    rig.table.give_up_all();
    (void)rig.turn(2);
    CHECK(std::set<void*>(rig.dropped.begin(), rig.dropped.end()) ==
          std::set<void*>{&frames[4], &frames[5], &frames[8], &frames[9], &frames[10]});
    CHECK(rig.dropped.size() == 5);
}

TEST_CASE("a full table refuses new neighbours until one is stale, and gives up the one that is stale longest") {
    for (const IpVersion version : {IpVersion::v4, IpVersion::v6}) {
        Rig rig{{.limit = 3}};
        for (unsigned i = 1; i <= 3; ++i) rig.resolve(host(version, i), mac_a, i);
        CHECK(rig.hold(host(version, 4), &frames[0], 10) == HoldResult::table_full);
        rig.table.learn(0, host(version, 4), mac_b, 10, router::asker_evidence);
        CHECK(rig.table.size() == 3);
        CHECK_THROWS_AS(rig.table.fix(0, host(version, 4), mac_b), Fault);
        CHECK(rig.table.counters().refused_frames.value() == 1);
        (void)rig.turn(30'003);
        CHECK(rig.find(host(version, 1), 30'004) == mac_a);  // used: this one is wanted
        CHECK(rig.hold(host(version, 4), &frames[0], 30'005) == HoldResult::held);
        CHECK(rig.table.size() == 3);
        CHECK_FALSE(rig.table.state(0, host(version, 2)));
        CHECK(rig.state(host(version, 1)) == NeighborState::probe);
        CHECK(rig.state(host(version, 3)) == NeighborState::stale);
        CHECK(rig.table.counters().evicted.value() == 1);
    }
}

TEST_CASE("65,536 neighbours become known and stale with bounded work in each turn, and none is lost") {
    constexpr unsigned count = 65'536;
    for (const IpVersion version : {IpVersion::v4, IpVersion::v6}) {
        Rig rig{{.all_queues_frames = count, .questions_per_turn = 32, .expiries_per_turn = 64}};
        for (unsigned i = 0; i < count; ++i) REQUIRE(rig.hold(host(version, i), &frames[0], 0) == HoldResult::held);
        std::set<std::array<std::uint8_t, 16>> asked;
        for (unsigned turns = 0; turns < count / 32; ++turns) {
            const auto questions = rig.turn(1);
            REQUIRE(questions.size() == 32);
            for (const auto& question : questions) asked.insert(question.target.octets);
        }
        CHECK(asked.size() == count);
        CHECK(rig.turn(1).empty());
        for (unsigned i = 0; i < count; ++i)
            rig.answer(host(version, i),
                       MacAddress{2, 0, 0, 0, static_cast<std::uint8_t>(i >> 8U), static_cast<std::uint8_t>(i)}, 2);
        (void)rig.turn(2);
        CHECK(rig.sent.size() == count);
        CHECK(rig.table.size() == count);

        // All are stale at once. A turn takes 64 of them, and an hour later there is still no more than that to a turn.
        const auto stale = [&] {
            unsigned n = 0;
            for (unsigned i = 0; i < count; ++i) n += rig.state(host(version, i)) == NeighborState::stale ? 1 : 0;
            return n;
        };
        CHECK(rig.turn(40'000).empty());
        CHECK(stale() == 64);
        for (unsigned turns = 1; turns < count / 64; ++turns) (void)rig.turn(40'000);
        CHECK(stale() == count);

        // All are used at once: each is probed once, 32 to a turn, and good meanwhile.
        for (unsigned i = 0; i < count; ++i)
            REQUIRE(rig.find(host(version, i), 40'001)[5] == static_cast<std::uint8_t>(i));
        unsigned probes = 0;
        for (unsigned turns = 0; turns < count / 32; ++turns) {
            const auto questions = rig.turn(40'002);
            REQUIRE(questions.size() == 32);
            probes +=
                static_cast<unsigned>(std::ranges::count_if(questions, [](const auto& q) { return q.to.has_value(); }));
        }
        CHECK(probes == count);
        CHECK(rig.turn(40'002).empty());

        // Nobody answers: retries come before they are given up, and giving up is bounded as well.
        std::size_t turns = 0;
        for (Ticks now = 41'002; rig.table.size() != 0; now += 1) {
            const std::size_t before = rig.table.size();
            REQUIRE(rig.turn(now).size() <= 32);
            REQUIRE(before - rig.table.size() <= 64);
            REQUIRE(++turns < 20'000);
        }
        CHECK(rig.table.counters().failed.value() == count);
        CHECK(rig.table.counters().probes.value() == 3 * count);
    }
}

TEST_CASE("in a gateway plan two entries are all, whatever the number of hosts (SEED-19)") {
    Rig rig;
    for (unsigned i = 0; i < 10'000; ++i) {
        for (const unsigned interface : {0U, 1U}) {
            const auto gateway = ip(interface == 0 ? "10.0.0.2" : "10.0.1.2");
            if (rig.table.find(interface, gateway, i) != nullptr) continue;
            (void)rig.table.hold(interface, gateway, &frames[0], i);
            for (const auto& question : rig.turn(i))
                rig.table.learn(question.interface, question.target, mac_a, i, router::answer_evidence);
        }
    }
    CHECK(rig.table.size() == 2);
    CHECK(rig.table.counters().questions.value() == 2);
}

TEST_CASE("any order of calls leaves what a plain map would hold, and no frame is lost or given twice") {
    // A small table that is often full, so that entries are removed in the midst of others all the time.
    const bool same = rc::check("against a map", [] {
        const auto steps =
            *rc::gen::container<std::vector<std::uint32_t>>(1000, rc::gen::inRange<std::uint32_t>(0, 0x7FFFFFFF));
        Rig rig{{.limit = 8,
                 .reachable_s = 0.04,
                 .retry_s = 0.01,
                 .stale_s = 0.02,
                 .tries = 2,
                 .queue_frames = 3,
                 .all_queues_frames = 9}};
        std::map<unsigned, MacAddress> told;
        std::vector<int> held(steps.size());
        std::size_t taken = 0;
        Ticks now = 0;
        for (std::size_t i = 0; i < steps.size(); ++i) {
            const unsigned who = steps[i] % 12;
            const auto address = host(who % 2 == 0 ? IpVersion::v4 : IpVersion::v6, who);
            const MacAddress mac{2, 0, 0, 0, 1, static_cast<std::uint8_t>(steps[i] >> 20U)};
            switch ((steps[i] >> 8U) % 5) {
                case 0: taken += rig.hold(address, &held[i], now) == HoldResult::held ? 1 : 0; break;
                case 1:
                    rig.answer(address, mac, now);
                    if (rig.table.state(0, address)) told[who] = mac;
                    break;
                case 2:
                    rig.table.learn(0, address, mac, now, router::asker_evidence);
                    if (rig.table.state(0, address)) told[who] = mac;
                    break;
                case 3:
                    if (const auto found = rig.find(address, now); found != MacAddress{})
                        RC_ASSERT(found == told.at(who));
                    break;
                default: now += (steps[i] >> 16U) % 16; (void)rig.turn(now);
            }
            std::size_t known = 0;
            for (unsigned k = 0; k < 12; ++k)
                known += rig.table.state(0, host(k % 2 == 0 ? IpVersion::v4 : IpVersion::v6, k)) ? 1U : 0U;
            RC_ASSERT(known == rig.table.size());
            RC_ASSERT(known <= 8U);
        }
        rig.table.give_up_all();
        (void)rig.turn(now);
        std::set<void*> back(rig.dropped.begin(), rig.dropped.end());
        for (const auto& sent : rig.sent) back.insert(sent.frame);
        RC_ASSERT(back.size() == taken);
        RC_ASSERT(rig.dropped.size() + rig.sent.size() == taken);
    });
    CHECK(same);
}

TEST_CASE("an option that cannot work is refused by name") {
    const auto refused = [](NeighborTable::Options options) {
        try {
            const NeighborTable table{options, ticks_per_second};
        } catch (const Fault& fault) {
            return std::string{fault.what()};
        }
        return std::string{};
    };
    CHECK(refused({.limit = 0}) == "limit is 0");
    CHECK(refused({.reachable_s = 0}) == "reachable_s is 0");
    CHECK(refused({.retry_s = -1}) == "retry_s is -1");
    CHECK(refused({.tries = 0}) == "tries is 0");
    CHECK(refused({.queue_frames = 0}) == "queue_frames is 0");
    CHECK(refused({.questions_per_turn = 0}) == "questions_per_turn is 0");
}

}  // namespace neighbor_table_test
