// SPDX-License-Identifier: Apache-2.0
// Learning: every host is asked for, answered and reached, or named. SEED-20, R2544-25, R2544-35.
#include "run/learning.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "direct_plans.hpp"
#include "rig.hpp"
#include "slow.hpp"

namespace learning_test {

using namespace evenhand;
using namespace evenhand::tests;
using frame::LearningSource;
using plan::HostSet;
using plan::Side;

namespace {

using LearningSender = run::Sender<MemoryPort, LearningSource>;

std::string address_in(const MemoryPort::Frame& f, std::size_t at, IpVersion version) {
    plan::IpAddress address{.version = version};
    std::memcpy(address.octets.data(), f.octets.data() + at, plan::address_octets(version));
    return plan::to_string(address);
}

/// A router in between: it forwards to hosts that it has resolved, asks for the others, and holds a frame for each
/// until the answer.
class ScriptedDut {
   public:
    explicit ScriptedDut(plan::AddressPlan plan) : plan_{std::move(plan)} {}

    void connect(Side side, MemoryPort& port) {
        ports_[side] = &port;
        port.on_the_wire = [this, side](MemoryPort::Frame& f) {
            take(side, f);
            return 0U;
        };
    }

    std::set<std::string> never_asks_for;           // and so never forwards to
    std::map<std::string, int> frames_to_lose;      // destination: so many frames to it are lost
    std::set<plan::MacAddress> macs_learnt;         // of hosts
    std::map<std::string, plan::MacAddress> cache;  // neighbour entries
    unsigned questions = 0;
    bool is_silent = false;

   private:
    static constexpr plan::MacAddress own_mac = dut_mac;

    void take(Side from, MemoryPort::Frame& f) {
        if (is_silent) return;
        const auto octets = std::span<const std::byte>{f.octets}.first(f.length);
        if (frame::look_at(f.octets.data(), f.length).kind == frame::FrameKind::neighbor) {
            if (const auto party = neighbor::read_announcement(octets)) resolve(from, *party);
            return;
        }
        const auto look = frame::look_at(f.octets.data(), f.length);
        REQUIRE(look.kind == frame::FrameKind::test);
        REQUIRE(frame::is_intact(f.octets.data(), f.length, plan_.version()));
        const bool is_v4 = plan_.version() == IpVersion::v4;
        const auto destination = address_in(f, is_v4 ? 30 : 38, plan_.version());
        if (auto lose = frames_to_lose.find(destination); lose != frames_to_lose.end() && lose->second > 0) {
            --lose->second;
            return;
        }
        const Side to = plan::other_side(from);
        if (cache.contains(destination)) {
            port(to).inject(f);
        } else if (!never_asks_for.contains(destination)) {
            held_.emplace(destination, f);
            ask(to, ip(destination.c_str()));
        }
    }

    void ask(Side side, const plan::IpAddress& target) {
        ++questions;
        const neighbor::Party self{.mac = own_mac, .ip = plan_.side(side).dut_address};
        MemoryPort::Frame question;
        question.length = plan_.version() == IpVersion::v4
                              ? neighbor::write_arp_request(question.octets, self, target)
                              : neighbor::write_neighbor_solicitation(question.octets, self, target);
        port(side).inject(question);
    }

    void resolve(Side side, const neighbor::Party& host) {
        const auto address = plan::to_string(host.ip);
        cache[address] = host.mac;
        macs_learnt.insert(host.mac);
        if (auto held = held_.extract(address)) port(side).inject(held.mapped());
    }

    MemoryPort& port(Side side) { return *ports_[side]; }

    plan::AddressPlan plan_;
    plan::PerSide<MemoryPort*> ports_{};
    std::map<std::string, MemoryPort::Frame> held_;
};

/// Both sides of a tester in memory around a scripted DUT, learning in rounds as the workers do.
class LearningRig {
   public:
    explicit LearningRig(const plan::AddressPlan& p, std::optional<std::uint64_t> seed_of_macs = {}) : plan{p}, dut{p} {
        for (const auto side : {Side::left, Side::right}) {
            dut.connect(side, port(side));
            const auto macs = seed_of_macs ? std::optional{plan::HostMacs{*seed_of_macs, side}} : std::nullopt;
            const auto& s = plan.side(side);
            const auto own_mac = side == Side::left ? left_mac : right_mac;
            if (s.gateway) {
                responders.push_back(std::make_unique<neighbor::Responder>(own_mac, *s.gateway, s.dut_address));
            } else {
                responders.push_back(
                    std::make_unique<neighbor::Responder>(own_mac, HostSet{s.hosts}, macs, s.dut_address));
            }
            receivers.emplace_back(port(side), 0, *responders.back());
        }
    }
    LearningRig(const LearningRig&) = delete;
    LearningRig& operator=(const LearningRig&) = delete;

    run::LearningResult learn(unsigned rounds,
                              const std::vector<Direction>& wanted = {Direction::forward, Direction::reverse},
                              std::uint64_t streams = 1) {
        std::vector<run::HostsToReach> directions;
        directions.reserve(wanted.size());
        for (const auto direction : wanted) directions.emplace_back(plan, direction, false);
        return run::learn_in_rounds(directions, rounds, [&](const run::LearningProgress& before) {
            progress.push_back(before);
            run_round(directions, streams);
            return !stop_after_a_round;
        });
    }

    plan::AddressPlan plan;
    ScriptedDut dut;
    MemoryPort left{512};
    MemoryPort right{512};
    std::vector<std::unique_ptr<neighbor::Responder>> responders;
    std::vector<run::Receiver<MemoryPort, neighbor::Responder>> receivers;
    HandClock clock{start};
    std::vector<run::LearningProgress> progress;
    std::vector<std::unique_ptr<tally::ReceiverTally>> tallies;  // one a side of each round
    bool stop_after_a_round = false;
    std::uint64_t sent_frames = 0;

   private:
    MemoryPort& port(Side side) { return side == Side::left ? left : right; }

    void run_round(std::vector<run::HostsToReach>& directions, std::uint64_t streams) {
        std::vector<LearningSender> senders;
        const Ticks finish = clock.time + 1000 * second;
        std::size_t longest = 0;
        for (auto& hosts : directions) {
            const auto from = plan::sending_side(hosts.direction());
            const pace::EvenSchedule whole{clock.time, second, rate_fps};
            for (std::uint64_t s = 0; s < streams; ++s) {
                const frame::StreamShare share{.first = s, .stride = streams};
                senders.emplace_back(port(from), static_cast<unsigned>(s),
                                     hosts.make_source(plan, static_cast<std::uint8_t>(s), share, left_mac, dut_mac),
                                     whole.stream(share.first, share.stride), share.count(hosts.pending().size()),
                                     run::Punctuality{.overdue_after = 100 * us}, finish);
            }
            tallies.push_back(std::make_unique<tally::ReceiverTally>());
            const auto to = static_cast<std::size_t>(plan::receiving_side(hosts.direction()));
            receivers[to].arm(
                {.trial = 0,
                 .direction = hosts.direction(),
                 .frames = expected(plan, frame::smallest_frame_size(plan.version()), hosts.direction(), std::nullopt),
                 .start = clock.time,
                 .clock_skew = us,
                 .residual_end = finish,
                 .ring_lasts = second},
                hosts.map(), *tallies.back(), clock.now());
            longest = std::max(longest, hosts.pending().size());
        }
        for (const Ticks end = clock.time + (longest + 200) * us; clock.time < end; clock.time += 8 * us) {
            for (auto& sender : senders) sender.turn(clock.now());
            for (auto& receiver : receivers) receiver.turn(clock.now(), clock);
        }
        for (auto& receiver : receivers) receiver.disarm();
        for (const auto& sender : senders) sent_frames += sender.tally().offered_frames;
    }
};

std::vector<std::string> texts(const std::vector<plan::IpAddress>& addresses) {
    std::vector<std::string> found;
    found.reserve(addresses.size());
    for (const auto& address : addresses) found.push_back(plan::to_string(address));
    return found;
}

const run::LearningResult::OfSide& right_of(const run::LearningResult& result) {
    return result.sides[Side::right].value();
}
const run::LearningResult::OfSide& left_of(const run::LearningResult& result) {
    return result.sides[Side::left].value();
}

}  // namespace

TEST_CASE("a device that asks for each host is taught all of them in one round (SEED-20, R2544-25)") {
    for (const auto& plan :
         {direct_v4(is_slow ? 5000 : 65533), direct_v6(is_slow ? 5000 : 65536), direct_v4(253), direct_v6(1)}) {
        for (const std::uint64_t streams : {1U, 3U}) {
            CAPTURE(plan.name);
            LearningRig rig{plan};
            const auto result = rig.learn(5, {Direction::forward, Direction::reverse}, streams);
            for (const auto side : {Side::left, Side::right}) {
                const auto& of_side = result.sides[side].value();
                CHECK(of_side.hosts == plan.side(side).hosts.host.count);
                CHECK(of_side.reachable == of_side.hosts);
                CHECK(of_side.rounds == 1);
                CHECK(of_side.unreachable.empty());
                CHECK(rig.responders[static_cast<std::size_t>(side)]->answers() == of_side.hosts);
            }
            CHECK_FALSE(result.stopped);
            CHECK(rig.dut.macs_learnt == std::set{left_mac, right_mac});
            CHECK(rig.sent_frames == 2 * plan.left.hosts.host.count);
            for (const auto& tally : rig.tallies)
                CHECK(damage_of(*tally) == Damage{.neighbor = plan.left.hosts.host.count});
        }
    }
}

TEST_CASE("with pseudorandom MACs the device learns those, and not that of the port (R4814-05, R4814-08)") {
    for (const auto& plan : {direct_v4(300), direct_v6(300)}) {
        LearningRig rig{plan, 11};
        CHECK(right_of(rig.learn(1)).reachable == 300);
        for (const auto side : {Side::left, Side::right}) {
            const HostSet hosts{plan.side(side).hosts};
            for (std::uint32_t host = 0; host < hosts.size(); ++host)
                CHECK(rig.dut.cache.at(plan::to_string(hosts.address(host))) == plan::HostMacs{11, side}.mac(host));
        }
        CHECK(rig.dut.macs_learnt.size() == 600);
    }
}

TEST_CASE("frames that are lost are sent again in the next rounds, to those hosts alone") {
    LearningRig rig{direct_v4(1000)};
    rig.dut.frames_to_lose = {{"198.19.0.2", 1}, {"198.19.0.100", 3}, {"198.19.3.233", 2}};
    const auto result = rig.learn(5);
    CHECK(right_of(result).reachable == 1000);
    CHECK(right_of(result).rounds == 4);
    CHECK(right_of(result).unreachable.empty());
    CHECK(left_of(result).rounds == 1);
    CHECK(rig.sent_frames == 2000 + 3 + 2 + 1);
    REQUIRE(rig.progress.size() == 4);
    CHECK(rig.progress[0].sides[Side::right]->reachable == 0);
    CHECK(rig.progress[1].sides[Side::right]->reachable == 997);
    CHECK(rig.progress[2].sides[Side::right]->reachable == 998);
    CHECK(rig.progress[3].sides[Side::right]->reachable == 999);
    CHECK(rig.progress[3].round == 4);
    // Each round reached some hosts and missed others: it may have been too fast.
    for (unsigned round = 0; round < 4; ++round) CHECK(rig.progress[round].rate_share == 1.0 / (1U << round));
    CHECK(result.rate_share == 0.125);
}

TEST_CASE("hosts that are never resolved are named, in order, and no others") {
    LearningRig rig{direct_v6(2000)};
    rig.dut.never_asks_for = {"2001:2:0:8000::7cf:2", "2001:2:0:8000::2", "2001:2:0:8000::40:2"};
    const auto result = rig.learn(3);
    CHECK(right_of(result).hosts == 2000);
    CHECK(right_of(result).reachable == 1997);
    CHECK(right_of(result).rounds == 3);
    CHECK(texts(right_of(result).unreachable) ==
          std::vector<std::string>{"2001:2:0:8000::2", "2001:2:0:8000::40:2", "2001:2:0:8000::7cf:2"});
    CHECK(left_of(result).unreachable.empty());
    CHECK(result.rate_share == 0.5);  // the second round reached nobody, which half the rate would not mend
}

TEST_CASE("of many unreachable hosts the first hundred are named") {
    LearningRig rig{direct_v4(250)};
    rig.dut.is_silent = true;
    const auto result = rig.learn(2, {Direction::reverse});
    CHECK_FALSE(result.sides[Side::right].has_value());
    CHECK(left_of(result).reachable == 0);
    CHECK(left_of(result).rounds == 2);
    REQUIRE(left_of(result).unreachable.size() == 100);
    CHECK(texts(left_of(result).unreachable).front() == "198.18.0.2");
    CHECK(texts(left_of(result).unreachable).back() == "198.18.0.101");
    CHECK(result.rate_share == 1);
}

TEST_CASE("behind gateways learning shows which hosts the routes lead to, and nobody asks for a host (SEED-18)") {
    LearningRig rig{gateway_v4(500)};
    // A route is missing: 198.19.1.0/24. All else is known to the device already.
    const HostSet hosts{rig.plan.right.hosts};
    for (std::uint32_t host = 0; host < hosts.size(); ++host) {
        const auto address = plan::to_string(hosts.address(host));
        address.starts_with("198.19.1.") ? void(rig.dut.never_asks_for.insert(address))
                                         : void(rig.dut.cache.emplace(address, right_mac));
    }
    const auto result = rig.learn(2, {Direction::forward});
    CHECK(right_of(result).hosts == 500);
    CHECK(right_of(result).reachable == 255);
    CHECK(texts(right_of(result).unreachable).front() == "198.19.1.0");
    CHECK(rig.dut.questions == 0);
    CHECK(rig.responders[1]->answers() == 0);
}

TEST_CASE("learning that is stopped tells what is known by then") {
    LearningRig rig{direct_v4(10)};
    rig.stop_after_a_round = true;
    rig.dut.frames_to_lose = {{"198.19.0.5", 1}};
    const auto result = rig.learn(5);
    CHECK(result.stopped);
    CHECK(right_of(result).reachable == 9);
    CHECK(texts(right_of(result).unreachable) == std::vector<std::string>{"198.19.0.5"});
}

TEST_CASE("a frame of learning that comes during a trial is stale, whatever the trial's number") {
    for (const bool v6 : {false, true}) {
        const auto plan = v6 ? direct_v6(8) : direct_v4(8);
        const std::uint32_t pending[]{0, 7};
        LearningSource source{plan,
                              {.direction = Direction::forward, .stream = 0, .trial = 77},
                              HostSet{plan.left.hosts},
                              HostSet{plan.right.hosts},
                              pending,
                              {},
                              left_mac,
                              dut_mac};
        const auto size = source.frame_octets(0) + frame::fcs_octets;
        CHECK(size == (v6 ? 84 : 64));
        MemoryPort::Frame learning;
        learning.length = source.frame_octets(0);
        std::byte* const at = learning.octets.data();
        source.write_next({&at, 1}, 5);
        CHECK(frame::look_at(at, learning.length).tag.trial == 0);
        const auto stale = [&]<IpVersion V>() {
            Rig<V> rig;
            rig.run_until(start + 10 * us);
            rig.right.inject(learning);
            rig.run();
            CHECK(rig.got().received_frames == 1000);
            CHECK(damage_of(rig.got()) == Damage{.stale = 1});
        };
        v6 ? stale.template operator()<IpVersion::v6>() : stale.template operator()<IpVersion::v4>();
    }
}

TEST_CASE("test frames between trials and learning count nowhere") {
    Rig4 rig;
    rig.run();
    const auto before = rig.got().received_frames;
    rig.receiver.disarm();
    auto again = Rig4{};
    again.left.on_the_wire = [&](MemoryPort::Frame& f) {
        rig.right.inject(f);
        return 0U;
    };
    again.run();
    rig.receive();
    CHECK(rig.got().received_frames == before);
    CHECK(rig.got().duplicated_frames == 0);
}

}  // namespace learning_test
