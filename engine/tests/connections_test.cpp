// SPDX-License-Identifier: Apache-2.0
// Stations 2 and 5: frames of connections, through a DUT that translates them with state (RFC 9693).
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "chi_square.hpp"
#include "fault.hpp"
#include "frame/connections.hpp"
#include "frame/traffic.hpp"
#include "octets.hpp"
#include "plans.hpp"
#include "rig.hpp"
#include "run/connections.hpp"

namespace connections_test {

using namespace evenhand;
using namespace evenhand::tests;
using frame::big;
using frame::ConnectionExpectation;
using frame::IpVersion;
using frame::LinkEnd;
using frame::load;
using frame::StateTable;
using frame::store;
using frame::TesterShare;
using plan::ConnectionUse;
using plan::Direction;

namespace {

constexpr std::uint64_t seed = 7;

plan::AddressPlan nat44(std::uint32_t hosts = 100) {
    auto p = gateway_v4(hosts);
    p.name = "nat44";
    p.left.hosts.base = ip("10.16.0.0");
    p.right.peers =
        plan::HostRange{.base = ip("198.18.0.0"), .offset = 2, .host = {.first = 1, .count = 50}};  // fewer than hosts
    p.source_ports = {.first = 10000, .count = 40000};
    p.destination_ports = {.first = 1, .count = 100};
    p.has_state = true;
    return p;
}

plan::AddressPlan nat66(std::uint32_t hosts = 100) {
    auto p = gateway_v6(hosts);
    p.name = "nat66";
    p.right.peers = plan::HostRange{.base = ip("2001:2:0:4000::"), .offset = 14, .host = {.first = 1, .count = 50}};
    p.source_ports = {.first = 10000, .count = 40000};
    p.destination_ports = {.first = 1, .count = 100};
    p.has_state = true;
    return p;
}

/// A tester of both sides and a device between them, in memory; all frames have one IP version.
struct World {
    explicit World(plan::AddressPlan of, std::uint64_t connections = 3000, const TesterShare& own = {})
        : plan{std::move(of)},
          table{plan::FourTuples{plan, connections, plan::TupleOrder::pseudorandom, seed}, own},
          version{plan.version()},
          size{frame::smallest_frame_size(version)} {}

    [[nodiscard]] plan::ConnectionDraw draw(ConnectionUse use, Direction direction) const {
        return {use, direction, table.connections(), seed};
    }
    [[nodiscard]] Octets sent(Direction direction, ConnectionUse use, std::uint64_t k,
                              std::uint64_t streams = 1) const {
        Octets octets(size - frame::fcs_octets);
        frame::write_pattern(version, octets);
        const auto stream = static_cast<std::uint8_t>(k % streams);
        const auto shape = frame::make_template(plan, size, {.direction = direction, .stream = stream, .trial = trial},
                                                left_mac, dut_mac);
        std::byte* const at = octets.data();
        frame::ConnectionSource{shape,
                                frame::ConnectionFlows{table, draw(use, direction), direction, LinkEnd::sent},
                                {.first = k, .stride = streams}}
            .write_next({&at, 1}, 1234);
        return octets;
    }
    [[nodiscard]] ConnectionExpectation expectation(Direction direction, ConnectionUse use, bool learns,
                                                    std::uint64_t streams = 1) {
        const auto arrives = frame::traffic_of(plan, direction, size).arrives;
        return {frame::TestFrameExpectation{arrives, std::nullopt, dut_mac},
                arrives,
                table,
                draw(use, direction),
                direction,
                learns,
                streams};
    }

    [[nodiscard]] std::size_t source_at() const { return version == IpVersion::v4 ? 26 : 22; }
    [[nodiscard]] std::size_t destination_at() const { return version == IpVersion::v4 ? 30 : 38; }
    [[nodiscard]] std::size_t ports_at() const { return version == IpVersion::v4 ? 34 : 54; }
    [[nodiscard]] std::size_t address_octets() const { return plan::address_octets(version); }

    /// One address and one port are others, and the checksums right.
    void rewrite(Octets& frame, bool is_source, const plan::IpAddress& address, std::uint16_t port) const {
        std::memcpy(frame.data() + (is_source ? source_at() : destination_at()), address.octets.data(),
                    address_octets());
        store(frame.data() + ports_at() + (is_source ? 0 : 2), big(port));
        std::byte* const udp_checksum = frame.data() + ports_at() + 6;
        store(udp_checksum, std::uint16_t{0});
        store(udp_checksum,
              frame::udp_checksum(frame::sum_octets(frame.data() + source_at(), frame.size() - source_at()) +
                                  frame::pseudo_header_sum(frame::protocol_udp, frame.size() - ports_at())));
        if (version == IpVersion::v4) {
            store(frame.data() + 24, std::uint16_t{0});
            store(frame.data() + 24, frame::ip_checksum(frame::sum_octets(frame.data() + 14, 20)));
        }
    }

    plan::AddressPlan plan;
    StateTable table;
    IpVersion version;
    std::size_t size;
};

/// A device that gives connection after connection the next port of the next address of its pool.
struct Nat {
    explicit Nat(const World& of) : world{of} {}

    const World& world;
    std::map<std::vector<std::byte>, StateTable::Entry> outside;
    std::map<std::pair<std::uint16_t, std::uint16_t>, std::vector<std::byte>> inside;

    [[nodiscard]] std::vector<std::byte> key_of(const Octets& frame) const {
        std::vector<std::byte> key(frame.begin() + static_cast<std::ptrdiff_t>(world.source_at()),
                                   frame.begin() + static_cast<std::ptrdiff_t>(world.ports_at() + 4));
        return key;
    }
    Octets out(Octets frame) {
        const auto key = key_of(frame);
        const auto next = static_cast<std::uint32_t>(outside.size());
        const auto [at, is_new] =
            outside.try_emplace(key, StateTable::Entry{.host = static_cast<std::uint16_t>(1 + next % 50),
                                                       .port = static_cast<std::uint16_t>(2000 + next / 50)});
        inside[{at->second.host, at->second.port}] = key;
        world.rewrite(frame, true, world.plan.right.peers->address(at->second.host), at->second.port);
        return frame;
    }
    Octets in(Octets frame) const {
        const auto number =
            big(load<std::uint16_t>(frame.data() + world.destination_at() + world.plan.right.peers->offset));
        const auto port = big(load<std::uint16_t>(frame.data() + world.ports_at() + 2));
        const auto& key = inside.at({number, port});
        plan::IpAddress address{.version = world.version};
        std::memcpy(address.octets.data(), key.data(), world.address_octets());
        const auto ports = 2 * world.address_octets();
        world.rewrite(frame, false, address, big(load<std::uint16_t>(key.data() + ports)));
        return frame;
    }
};

void establish(World& world, Nat& nat) {
    const auto expected = world.expectation(Direction::forward, ConnectionUse::each_once, true);
    for (std::uint64_t k = 0; k < world.table.connections(); ++k) {
        const auto frame = nat.out(world.sent(Direction::forward, ConnectionUse::each_once, k));
        REQUIRE(expected.holds(0, frame.data(), world.version));
        expected.learn(frame.data(), k);
    }
}

}  // namespace

TEST_CASE("bursts of connections are checked at once as their frames are one after the other (R9693-02)") {
    std::mt19937_64 random{20261129};
    for (const bool is_whole : {true, false}) {
        for (const auto& plan : {nat44(), nat66()}) {
            // One of two testers has every other frame; the first connections of the table are its own.
            World world{plan, 3000, is_whole ? TesterShare{} : TesterShare{1, 1, 2}};
            Nat nat{world};
            const std::uint64_t stride = is_whole ? 1 : 2;
            const auto number = [&](std::uint64_t place) { return is_whole ? place : place * stride + 1; };
            const auto known = [](frame::BurstChecks& check, const std::vector<Octets>& frames) {
                std::vector<const std::byte*> at(frames.size());
                std::ranges::transform(frames, at.begin(), [](const Octets& one) { return one.data(); });
                frame::FoundBurst found;
                check.find(at.data(), static_cast<unsigned>(at.size()), found);
                return found.known;
            };
            const auto agree = [&](frame::BurstChecks& check, const ConnectionExpectation& expected,
                                   const std::vector<Octets>& whole) {
                REQUIRE(known(check, whole) == frame::first_bits(static_cast<unsigned>(whole.size())));
                for (unsigned round = 0; round < 50; ++round) {
                    auto frames = whole;
                    std::uint64_t untouched = 0;
                    for (unsigned i = 0; i < frames.size(); ++i) {
                        switch (random() % 4) {
                            case 0: frames[i][random() % 60] ^= static_cast<std::byte>(1U << random() % 8); break;
                            case 1:  // with right checksums: another address or port
                                world.rewrite(
                                    frames[i], random() % 2 == 0,
                                    world.plan.right.peers->address(static_cast<std::uint32_t>(random() % 60)),
                                    static_cast<std::uint16_t>(random() % 3000));
                                break;
                            default: untouched |= std::uint64_t{1} << i;
                        }
                    }
                    const auto found = known(check, frames);
                    REQUIRE((found & untouched) == untouched);
                    for (unsigned i = 0; i < frames.size(); ++i) {
                        if ((found >> i & 1U) != 0) REQUIRE(expected.holds(0, frames[i].data(), world.version));
                    }
                }
            };
            const std::uint64_t streams = stride;
            const auto id = [](Direction direction) {
                return frame::StreamIdentity{.direction = direction, .trial = trial};
            };
            // New connections: any source of the pool is right, and none else.
            const auto opening = world.expectation(Direction::forward, ConnectionUse::each_once, true, streams);
            auto of_opening = opening.burst_checks(id(Direction::forward));
            if (!of_opening) return;  // this CPU cannot
            const std::uint64_t connections = world.table.connections();
            for (std::uint64_t begin = 0; begin < connections; begin += 64) {
                const auto n = std::min<std::uint64_t>(64, connections - begin);
                std::vector<Octets> frames;
                frames.reserve(n);
                for (std::uint64_t i = 0; i < n; ++i)
                    frames.push_back(
                        nat.out(world.sent(Direction::forward, ConnectionUse::each_once, number(begin + i), streams)));
                if (begin == 0) agree(of_opening, opening, frames);
                REQUIRE(known(of_opening, frames) == frame::first_bits(static_cast<unsigned>(n)));
                // Half of them are recorded: the others are not known.
                for (std::uint64_t i = 0; i < n; i += 2) opening.learn(frames[i].data(), number(begin + i));
            }
            for (const auto direction : {Direction::forward, Direction::reverse}) {
                for (const auto use : {ConnectionUse::each_once, ConnectionUse::drawn}) {
                    const auto expected = world.expectation(direction, use, false, streams);
                    auto check = expected.burst_checks(id(direction));
                    std::vector<Octets> frames;
                    std::vector<Octets> of_unknown;
                    for (std::uint64_t k = 128; frames.size() < 64; ++k) {
                        const auto sent = world.sent(direction, use, number(k), streams);
                        const bool is_forward = direction == Direction::forward;
                        Octets came;
                        if (is_forward) {
                            came = nat.out(sent);
                        } else if (load<std::uint16_t>(sent.data() + world.ports_at() + 2) != 0) {
                            came = nat.in(sent);
                        } else {
                            continue;  // its initiator's address is not known
                        }
                        const bool holds = expected.holds(0, came.data(), world.version);
                        REQUIRE((holds || is_forward));
                        (holds ? frames : of_unknown).push_back(came);
                    }
                    agree(check, expected, frames);
                    if (of_unknown.size() > 64) of_unknown.resize(64);
                    if (of_unknown.empty()) continue;
                    REQUIRE(known(check, of_unknown) == 0);
                    // Not even those that have, as the table's empty entries, neither a number nor a port.
                    for (auto& one : of_unknown) world.rewrite(one, true, world.plan.right.peers->address(0), 0);
                    REQUIRE(known(check, of_unknown) == 0);
                }
            }
        }
    }
}

TEST_CASE("a plan with state needs a pool, gateways, and hosts of one network") {
    const auto refuses = [](const plan::AddressPlan& p, const char* where) {
        try {
            plan::check_plan(p);
        } catch (const Fault& fault) {
            return fault.code == FaultCode::bad_plan && fault.where == where;
        }
        return false;
    };
    for (const auto& good : {nat44(), nat66()}) {
        plan::check_plan(good);
        auto p = good;
        p.right.peers.reset();
        CHECK(refuses(p, "plan.right.peers"));
        p = good;
        p.fixed_source = true;
        CHECK(refuses(p, "plan.stateful"));
        p = good;
        p.left.gateway.reset();
        CHECK(refuses(p, "plan.stateful"));
        p = good;
        p.right.peers->base = p.right.hosts.base;
        p.right.peers->offset = p.right.hosts.offset;
        CHECK(refuses(p, "plan"));  // overlaps the hosts
    }
}

TEST_CASE("ports of both directions are those of a connection, and any where the DUT chooses") {
    const auto p = nat44();
    const auto forward = frame::traffic_of(p, Direction::forward, 64);
    const auto reverse = frame::traffic_of(p, Direction::reverse, 64);
    CHECK(forward.sent.source_ports == p.source_ports);
    CHECK(forward.arrives.source_ports == plan::any_port);
    CHECK(forward.arrives.destination_ports == p.destination_ports);
    CHECK(reverse.sent.source_ports == p.destination_ports);
    CHECK(reverse.sent.destination_ports == plan::any_port);
    CHECK(reverse.arrives.destination_ports == p.source_ports);
    CHECK(forward.arrives.sources.base == p.right.peers->base);
    CHECK(reverse.sent.destinations.base == p.right.peers->base);
}

TEST_CASE("connections are learnt, answered and used in both directions (R9693-01, R9693-02, R9693-12)") {
    for (const auto& of : {nat44(), nat66()}) {
        World world{of};
        Nat nat{world};
        CHECK(world.table.recorded() == 0);
        establish(world, nat);
        CHECK(nat.outside.size() == world.table.connections());  // no four tuple came twice
        CHECK(world.table.recorded() == 0);                      // looking at all is for after the trial
        world.table.count_recorded();
        CHECK(world.table.recorded() == world.table.connections());
        CHECK(world.table.shared_tuples() == 0);

        const auto validated = world.expectation(Direction::reverse, ConnectionUse::each_once, false);
        for (std::uint64_t k = 0; k < world.table.connections(); ++k) {
            const auto answer = nat.in(world.sent(Direction::reverse, ConnectionUse::each_once, k));
            REQUIRE(validated.holds(0, answer.data(), world.version));
        }
        for (const std::uint64_t streams : {1U, 3U}) {
            const auto there = world.expectation(Direction::forward, ConnectionUse::drawn, false, streams);
            const auto back = world.expectation(Direction::reverse, ConnectionUse::drawn, false, streams);
            for (std::uint64_t k = 0; k < 500; ++k) {
                const auto forward = nat.out(world.sent(Direction::forward, ConnectionUse::drawn, k, streams));
                REQUIRE(there.holds(0, forward.data(), world.version));
                const auto reverse = nat.in(world.sent(Direction::reverse, ConnectionUse::drawn, k, streams));
                REQUIRE(back.holds(0, reverse.data(), world.version));
            }
        }
        CHECK(nat.outside.size() == world.table.connections());  // none was opened by their use
    }
}

TEST_CASE("which connections the frames of one direction use says nothing of the other's") {
    constexpr std::uint32_t connections = 3000;
    constexpr std::size_t blocks = 200;
    plan::ConnectionDraw forward{ConnectionUse::drawn, Direction::forward, connections, seed};
    plan::ConnectionDraw reverse{ConnectionUse::drawn, Direction::reverse, connections, seed};
    plan::FourTuples::Numbers there;
    plan::FourTuples::Numbers back;
    std::size_t alike = 0;
    for (std::size_t block = 0; block < blocks; ++block) {
        forward.numbers(block * there.size(), 1, there);
        reverse.numbers(block * back.size(), 1, back);
        for (std::size_t j = 0; j < there.size(); ++j) alike += there[j] == back[j];
    }
    CHECK(alike < 15);  // of 6,400 about 2 by chance
}

TEST_CASE("a frame that is translated otherwise than its connection was does not count (R9693-02)") {
    for (const auto& of : {nat44(), nat66()}) {
        World world{of, 200};
        Nat nat{world};
        establish(world, nat);
        const auto used = world.expectation(Direction::forward, ConnectionUse::drawn, false);
        const auto learning = world.expectation(Direction::forward, ConnectionUse::each_once, true);
        auto frame = nat.out(world.sent(Direction::forward, ConnectionUse::drawn, 5));
        const auto its_port = big(load<std::uint16_t>(frame.data() + world.ports_at()));
        plan::IpAddress its_address{.version = world.version};
        std::memcpy(its_address.octets.data(), frame.data() + world.source_at(), world.address_octets());
        CHECK(used.holds(0, frame.data(), world.version));

        world.rewrite(frame, true, its_address, static_cast<std::uint16_t>(its_port + 1));
        CHECK_FALSE(used.holds(0, frame.data(), world.version));
        CHECK(used.fault_of(0, frame.data(), world.version) == frame::TranslationFault::address_or_port);
        const auto other = its_address == world.plan.right.peers->address(1) ? 2U : 1U;
        world.rewrite(frame, true, world.plan.right.peers->address(other), its_port);
        CHECK_FALSE(used.holds(0, frame.data(), world.version));
        // Not from an address of the pool: not even learnt.
        auto opening = world.sent(Direction::forward, ConnectionUse::each_once, 9);
        world.rewrite(opening, true, world.plan.right.peers->address(51), 3000);
        CHECK_FALSE(learning.holds(0, opening.data(), world.version));
        CHECK(learning.fault_of(0, opening.data(), world.version) == frame::TranslationFault::address_or_port);
        tally::ReceiverTally seen;
        seen.note(frame::TranslationFault::address_or_port, opening.data(), world.version, 9);
        CHECK(seen.first_mistranslated.source == world.plan.right.peers->address(51));
        CHECK(seen.first_mistranslated.source_port == 3000);
        CHECK(seen.first_mistranslated.sequence == 9);
        CHECK(seen.mistranslated_frames[static_cast<std::size_t>(frame::TranslationFault::address_or_port)] == 1);
        seen.note(frame::TranslationFault::address_or_port, frame.data(), world.version, 5);
        CHECK(seen.first_mistranslated.sequence == 9);  // the first that came
        // To another server than the one that the initiator addressed.
        auto astray = nat.out(world.sent(Direction::forward, ConnectionUse::each_once, 9));
        const auto server =
            big(load<std::uint16_t>(astray.data() + world.destination_at() + world.plan.right.hosts.offset));
        world.rewrite(astray, false, world.plan.right.hosts.address(server == 1 ? 2 : 1),
                      big(load<std::uint16_t>(astray.data() + world.ports_at() + 2)));
        CHECK_FALSE(learning.holds(0, astray.data(), world.version));
    }
}

TEST_CASE("connections that are given one translated tuple are counted, however they are spread (R9693-02)") {
    auto p = nat44(1);
    p.destination_ports = {.first = 7, .count = 1};
    World world{p, 20000};
    for (std::uint64_t k = 0; k < 20000; ++k)
        world.table.record(
            k, {.host = static_cast<std::uint16_t>(1 + k % 3), .port = static_cast<std::uint16_t>(1000 + k)});
    CHECK(world.table.shared_tuples() == 0);
    for (const std::uint64_t k : {5U, 1000U, 19999U}) world.table.record(k, world.table.entry(4));
    CHECK(world.table.shared_tuples() == 3);
    world.table.record(4, {});
    world.table.count_recorded();
    CHECK(world.table.recorded() == 19999);
    CHECK(world.table.shared_tuples() == 2);
}

TEST_CASE("the same address and port serves connections to different servers") {
    // For a tester that is alone, and for two testers: to the servers of its own connections.
    for (const auto& own : {TesterShare{}, TesterShare{0, 1, 2}, TesterShare{1, 1, 2}}) {
        World world{nat44(100), 5000, own};
        for (std::uint64_t place = 0; place < world.table.connections(); ++place)
            world.table.record(place, {.host = 1, .port = 4000});
        std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> servers;
        std::uint64_t shared = 0;
        for (std::uint32_t k = 0; k < 5000; ++k) {
            if (!own.has(k)) continue;
            const auto flow = world.table.tuples().flow(k);
            shared += static_cast<std::uint64_t>(servers[{flow.destination, flow.destination_port}]++ != 0);
        }
        CHECK(world.table.shared_tuples() == shared);
    }
}

TEST_CASE("a state table that does not fit the memory is refused with both numbers") {
    run::check_memory(100'000'000, 400'000'000);
    try {
        run::check_memory(100'000'001, 400'000'000);
        CHECK(false);
    } catch (const Fault& fault) {
        CHECK(fault.code == FaultCode::no_memory);
        CHECK(fault.what_text == "a state table of 100000001 connections takes 400 MB, but 400 MB are available");
        CHECK(fault.next == "Use at most 100000000, or end other programs.");
    }
}

namespace {

/// The share of one of three testers, which have four streams.
constexpr std::array testers{TesterShare{0, 1, 4}, TesterShare{1, 2, 4}, TesterShare{3, 1, 4}};

/// The number of each connection, by its four tuple as the initiator sends it.
std::map<std::vector<std::uint32_t>, std::uint64_t> numbers_of(const plan::FourTuples& tuples) {
    std::map<std::vector<std::uint32_t>, std::uint64_t> found;
    for (std::uint32_t k = 0; k < tuples.connections(); ++k) {
        const auto flow = tuples.flow(k);
        found[{flow.source, flow.destination, flow.source_port, flow.destination_port}] = k;
    }
    return found;
}

/// The connections of that many blocks of frames of a tester's first stream.
std::vector<std::uint64_t> drawn_connections(const World& world, std::uint64_t blocks) {
    const auto numbers = numbers_of(world.table.tuples());
    const auto share = world.table.own().stream(0);
    frame::ConnectionFlows flows{world.table, world.draw(ConnectionUse::drawn, Direction::forward), Direction::forward,
                                 LinkEnd::sent};
    std::vector<std::uint64_t> found;
    for (std::uint64_t b = 0; b < blocks; ++b) {
        plan::FlowBlock block;
        flows.draw_block(share.sequence(b * plan::FlowBlock::size), share.stride, block);
        for (std::size_t j = 0; j < plan::FlowBlock::size; ++j)
            found.push_back(
                numbers.at({block.source(j), block.destination(j), block.source_port(j), block.destination_port(j)}));
    }
    return found;
}

}  // namespace

TEST_CASE("of several testers each has the connections of its own frames, as one opens all (R9693-01, R9693-12)") {
    constexpr std::uint64_t connections = 3001;
    for (const auto& of : {nat44(), nat66()}) {
        const World alone{of, connections};
        std::set<std::vector<std::byte>> opened;
        std::uint64_t of_all = 0;
        for (const auto& own : testers) {
            World world{of, connections, own};
            Nat nat{world};  // its own port pair's
            const auto learning = world.expectation(Direction::forward, ConnectionUse::each_once, true, own.stride());
            for (std::uint64_t k = 0; k < connections; ++k) {
                if (!own.has(k)) continue;
                const auto frame = world.sent(Direction::forward, ConnectionUse::each_once, k, own.stride());
                REQUIRE(frame == alone.sent(Direction::forward, ConnectionUse::each_once, k, own.stride()));
                opened.insert(nat.key_of(frame));
                const auto arrives = nat.out(frame);
                REQUIRE(learning.holds(0, arrives.data(), world.version));
                learning.learn(arrives.data(), k);
            }
            world.table.count_recorded();
            CHECK(world.table.recorded() == own.count(connections));
            CHECK(world.table.connections() == own.count(connections));
            CHECK(nat.outside.size() == own.count(connections));
            of_all += world.table.connections();
            const auto validated = world.expectation(Direction::reverse, ConnectionUse::each_once, false, own.stride());
            const auto there = world.expectation(Direction::forward, ConnectionUse::drawn, false, own.stride());
            const auto back = world.expectation(Direction::reverse, ConnectionUse::drawn, false, own.stride());
            for (std::uint64_t k = 0; k < connections; ++k) {
                if (!own.has(k)) continue;
                const auto answer = nat.in(world.sent(Direction::reverse, ConnectionUse::each_once, k, own.stride()));
                REQUIRE(validated.holds(0, answer.data(), world.version));
                const auto forward = nat.out(world.sent(Direction::forward, ConnectionUse::drawn, k, own.stride()));
                REQUIRE(there.holds(0, forward.data(), world.version));
                const auto reverse = nat.in(world.sent(Direction::reverse, ConnectionUse::drawn, k, own.stride()));
                REQUIRE(back.holds(0, reverse.data(), world.version));
            }
            CHECK(nat.outside.size() == own.count(connections));  // none of another tester's was used
        }
        CHECK(of_all == connections);
        CHECK(opened.size() == connections);
    }
}

TEST_CASE("frames of one of several testers are of all its connections, and not as another's are (R9693-12)") {
    constexpr std::uint64_t connections = 2000;
    constexpr std::uint64_t blocks = 2000;
    std::vector<std::vector<std::uint64_t>> drawn;
    for (const auto& own : testers) {
        const World world{nat44(), connections, own};
        drawn.push_back(drawn_connections(world, blocks));
        std::vector<std::uint64_t> counts(world.table.connections());
        for (const auto number : drawn.back()) {
            REQUIRE(own.has(number));
            ++counts.at(own.place(number));
        }
        CHECK(is_even(counts, drawn.back().size()));
    }
    // Tester 0 and tester 2 have as many connections: 500 each.
    std::size_t alike = 0;
    for (std::size_t i = 0; i < drawn[0].size(); ++i)
        alike += static_cast<std::size_t>(testers[0].place(drawn[0][i]) == testers[2].place(drawn[2][i]));
    CHECK(alike < 2 * drawn[0].size() / 500);
}

TEST_CASE("a tuple that two testers' connections have is no shared one: it came to different ports (R9693-02)") {
    auto p = nat44(1);
    p.destination_ports = {.first = 7, .count = 1};
    for (const auto& own : {TesterShare{0, 1, 2}, TesterShare{1, 1, 2}}) {
        World world{p, 2001, own};
        for (std::uint64_t place = 0; place < world.table.connections(); ++place)
            world.table.record(place, {.host = 1, .port = static_cast<std::uint16_t>(1000 + place)});
        CHECK(world.table.shared_tuples() == 0);
        world.table.record(world.table.connections() - 1, world.table.entry(3));
        CHECK(world.table.shared_tuples() == 1);
    }
}

TEST_CASE("what is said of memory is of all testers' connections") {
    CHECK_NOTHROW(run::check_memory(100, 400, 0.25));
    try {
        run::check_memory(101, 400, 0.25);
        CHECK(false);
    } catch (const Fault& fault) {
        CHECK(fault.next == "Use at most 400, or end other programs.");
    }
}

}  // namespace connections_test
