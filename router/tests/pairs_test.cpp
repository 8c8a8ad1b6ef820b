// SPDX-License-Identifier: Apache-2.0
// Forward: several pairs of ports, each with tables of its own, and elements that work for all of them.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "bench.hpp"
#include "nat_bench.hpp"
#include "octets.hpp"
#include "plans.hpp"

namespace pairs_test {

using namespace evenhand;
using namespace evenhand::router;
using namespace evenhand::tests::forwarding;
using frame::IpVersion;

namespace {

constexpr std::size_t pairs = most_interfaces / 2;

Bench several_pairs(std::optional<ElementModel> model = {}) {
    return Bench{{}, std::move(model), {}, 100 * second, {}, pairs};
}

template <IpVersion V>
plan::AddressPlan plan_of() {
    return V == IpVersion::v4 ? tests::gateway_v4() : tests::gateway_v6();
}

}  // namespace

TEST_CASE_TEMPLATE("a frame leaves by the pair that it came by, whose routes and addresses are those of all", Version,
                   std::integral_constant<IpVersion, IpVersion::v4>, std::integral_constant<IpVersion, IpVersion::v6>) {
    Bench bench = several_pairs();
    bench.introduce();
    const auto there = test_frames<Version::value>(plan_of<Version::value>(), plan::Direction::forward, 100);
    const auto back = test_frames<Version::value>(plan_of<Version::value>(), plan::Direction::reverse, 100);
    for (unsigned pair = 0; pair < pairs; ++pair) {
        for (unsigned i = 0; i < 10 * (pair + 1); ++i) {
            bench.send(2 * pair, there[i]);
            bench.send(2 * pair + 1, back[i]);
        }
    }
    bench.run(20 * us);
    for (unsigned pair = 0; pair < pairs; ++pair) {
        const std::size_t expected = 10UL * (pair + 1);
        CHECK(bench.take_test_frames(2 * pair).size() == expected);
        CHECK(bench.take_test_frames(2 * pair + 1).size() == expected);
        CHECK(bench.counters().interfaces[2UL * pair].received_frames == expected + 2);
        CHECK(bench.neighbors(pair).size() == 4);
    }
}

TEST_CASE("a frame that waits for its next hop is held by its own pair") {
    Bench bench = several_pairs();
    const auto sent = test_frames<IpVersion::v4>(tests::gateway_v4(), plan::Direction::forward, 1);
    bench.send(2, sent[0]);
    bench.turn();
    for (const unsigned port : {1U, 3U}) {
        bench.send(port, Bench::question(false, right_tester, "10.0.1.2", "10.0.1.1"));
        bench.run(2000 * us);
        CHECK(bench.take_test_frames(3).size() == (port == 3 ? 1 : 0));
    }
    CHECK(bench.take_test_frames(1).empty());
    CHECK(bench.neighbors(0).size() == 1);
    CHECK(bench.neighbors(2).size() == 0);
}

TEST_CASE("elements are those of all pairs: what one pair needs, another lacks") {
    constexpr double rate_fps = 1e5;
    constexpr Ticks spacing = 8 * us;  // of a pair: 1.25 times the rate
    constexpr std::size_t frames = 2000;
    const auto sent = test_frames<IpVersion::v4>(tests::gateway_v4(), plan::Direction::forward, frames);
    for (const unsigned busy : {1U, 2U}) {
        CAPTURE(busy);
        Bench bench = several_pairs(model_of(1, rate_fps, 16));
        bench.introduce();
        for (std::size_t i = 0; i < frames; ++i) {
            for (unsigned pair = 0; pair < busy; ++pair) bench.send(2 * pair, sent[i]);
            bench.run(spacing);
        }
        bench.run(1000 * us);
        std::size_t came = 0;
        for (unsigned pair = 0; pair < busy; ++pair) {
            const auto of_pair = bench.take_test_frames(2 * pair + 1).size();
            // The queue is full all the time, and takes from both in turn or as it happens.
            CHECK(of_pair > 0);
            came += of_pair;
        }
        // As many as the element serves in this time, and those that then wait.
        const auto served = static_cast<std::size_t>(static_cast<double>(frames * spacing) / second * rate_fps);
        CHECK(came >= served + 16);
        CHECK(came <= served + 18);
        const auto& interfaces = bench.counters().interfaces;
        CHECK(interfaces[0].element_dropped_frames + interfaces[2].element_dropped_frames == busy * frames - came);
    }
}

TEST_CASE("pairs are networks of their own: the same connection on each is another one, and its answers stay there") {
    for (const Kind& kind : kinds) {
        CAPTURE(kind.name);
        for (const bool reuses : {true, false}) {
            CAPTURE(reuses);
            NatOptions options = kind.options();
            options.reuse_ports = reuses;
            NatBench bench{options, {}, pairs};
            // A host of each pair, all with one port, peer and address of the pool; and one that all pairs have.
            for (unsigned pair = 0; pair < pairs; ++pair) {
                CHECK(bench.port_of(kind.out(pair, 4000), pair) == 4000);
                CHECK(bench.port_of(kind.out(9, 5000), pair) == 5000);
            }
            CHECK(bench.port_of(kind.out(8, 4000), 2) == 4001);
            CHECK(bench.nat_counters().entries == 2 * pairs + 1);
            for (unsigned pair = 0; pair < pairs; ++pair) {
                CHECK(bench.receiver_of(kind.back(4000), pair) ==
                      std::pair{kind.host_address(pair), std::uint16_t{4000}});
                CHECK(bench.receiver_of(kind.back(5000), pair).second == 5000);
                CHECK((bench.receiver_of(kind.back(4001), pair).second == 4000) == (pair == 2));
                for (unsigned port = 0; port < 2 * pairs; ++port)
                    CHECK(NatBench::udp_alone(bench.take(port)).empty());  // it left by no other
            }
            CHECK(bench.nat_counters().unknown_frames == pairs - 1);
            CHECK(bench.nat_counters().created == 2 * pairs + 1);
        }
    }
}

TEST_CASE("the table of connections is that of all pairs, and so are its defects") {
    for (const Kind& kind : kinds) {
        CAPTURE(kind.name);
        NatOptions options = kind.options();
        options.capacity = 4;
        options.same_tuple_every = 2;
        NatBench bench{options, {}, 2};
        CHECK(bench.port_of(kind.out(0, 4000), 0) == 4000);
        // The second is due, but the other with its peer is in another network.
        CHECK(bench.port_of(kind.out(1, 4001), 1) == 4001);
        CHECK(bench.nat_counters().same_tuple_frames == 0);
        CHECK(bench.port_of(kind.out(2, 4002), 0) == 4000);
        CHECK(bench.nat_counters().same_tuple_frames == 1);
        CHECK(bench.port_of(kind.out(3, 4003), 1) == 4001);
        CHECK(bench.nat_counters().same_tuple_frames == 2);
        for (const unsigned pair : {0U, 1U}) CHECK(bench.outgoing(kind.out(4, 4004).from_left(), pair).empty());
        CHECK(bench.nat_counters().refused_full == 2);
        CHECK(bench.forwarder().flush() == 4);
        CHECK(bench.port_of(kind.out(4, 4004), 1) == 4004);
    }
}

}  // namespace pairs_test
