// SPDX-License-Identifier: Apache-2.0
// Station 1, networks: SEED-30, SEED-31, SEED-32, SEED-33, SEED-35, SEED-43, SEED-82, SEED-83, R2544-13.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <set>
#include <vector>

#include "chi_square.hpp"
#include "fault.hpp"
#include "plan/draw.hpp"
#include "plans.hpp"

namespace network_draw_test {

using namespace evenhand;
using plan::Direction;
using plan::FlowBlock;
using plan::FlowDraw;
using plan::HostIndex;
using plan::Mode;
using tests::is_even;

namespace {

/// Source and destination of a frame.
struct Pair {
    HostIndex source;
    HostIndex destination;
};

/// The addresses of the first `frames` frames, as the sender draws them.
template <class Count>
void draw_pairs(const plan::AddressPlan& p, Direction direction, std::uint64_t seed, std::uint64_t frames,
                Count count) {
    const FlowDraw draw{p, direction, seed};
    const auto& from = p.side(plan::sending_side(direction)).hosts;
    const auto& to = p.side(plan::receiving_side(direction)).hosts;
    FlowBlock block;
    for (std::uint64_t k = 0; k < frames; k += FlowBlock::size) {
        draw.draw_block(k, 1, block);
        for (std::size_t j = 0; j < FlowBlock::size; ++j) {
            count(Pair{from.index(static_cast<std::uint32_t>(block.source(j))),
                       to.index(static_cast<std::uint32_t>(block.destination(j)))});
        }
    }
}

Mode any_mode() { return *rc::gen::element(Mode::pseudorandom, Mode::fixed, Mode::increment, Mode::decrement); }

}  // namespace

TEST_CASE("values, indexes and addresses of networks are those of the drafts") {
    const auto v4 = tests::nets_v4().right.hosts;
    CHECK(v4.value({.network = 255, .host = 253}) == 0xFFFE);
    CHECK(plan::to_string(v4.address(v4.value({3, 9}))) == "198.19.3.10");
    const auto v6 = tests::nets_v6().right.hosts;
    CHECK(plan::to_string(v6.address(v6.value({1, 0}))) == "2001:2:0:8001::2");
    CHECK(plan::to_string(v6.address(v6.value({255, 0xFFFF}))) == "2001:2:0:80ff::ffff:2");
    CHECK(plan::to_string(tests::nets_v6().left.hosts.address(tests::nets_v6().left.hosts.value({255, 1}))) ==
          "2001:2:0:ff::1:2");
    for (const auto& hosts : {v4, v6}) {
        for (const HostIndex i : {HostIndex{0, 0}, {255, 0}, {0, 253}, {255, 253}, {17, 200}}) {
            CHECK(hosts.index(hosts.value(i)) == i);
            CHECK(hosts.contains(hosts.address(hosts.value(i))));
        }
    }
    CHECK_FALSE(v4.contains(tests::ip("198.19.7.0")));
    CHECK_FALSE(v4.contains(tests::ip("198.19.7.255")));
    CHECK_FALSE(v6.contains(tests::ip("2001:2:0:8100::2")));
    CHECK_FALSE(v6.contains(tests::ip("2001:2:0:80ff::1:1")));
    CHECK_FALSE(v6.contains(tests::ip("198.19.0.1")));
}

TEST_CASE("a number is split into network and host without a remainder, for any number of hosts") {
    for (std::uint32_t hosts = 1; hosts <= 65536; hosts += hosts < 300 ? 1 : 251) {
        const auto range = tests::nets_v6(256, hosts).left.hosts;
        const plan::NetworkSplit split{range};
        REQUIRE(split.drawn() == 256 * hosts);
        for (std::uint32_t network = 0; network < 256; ++network) {
            // Where a reciprocal that is a little off would be seen.
            const std::uint64_t first = std::uint64_t{network} * hosts;
            REQUIRE(split.value(first) == range.value({network, 0}));
            REQUIRE(split.value(first + hosts - 1) == range.value({network, hosts - 1}));
        }
    }
}

TEST_CASE("a block holds the flows of its frames with networks too, in every mode") {
    const bool same =
        rc::check("draw_block equals draw", [](std::uint64_t seed, std::uint32_t first, bool reverse, bool v6) {
            const auto networks = *rc::gen::inRange<std::uint32_t>(1, 257);
            auto p = v6 ? tests::nets_v6(networks, *rc::gen::inRange<std::uint32_t>(1, 65537))
                        : tests::nets_v4(networks, *rc::gen::inRange<std::uint32_t>(1, 255));
            p.left.hosts.host.mode = any_mode();
            p.left.hosts.network->mode = any_mode();
            p.right.hosts.network->mode = any_mode();
            const auto stride = *rc::gen::inRange<std::uint64_t>(1, 129);
            const auto direction = reverse ? Direction::reverse : Direction::forward;
            const FlowDraw draw{p, direction, seed};
            FlowBlock block;
            draw.draw_block(first, stride, block);
            for (std::size_t j = 0; j < FlowBlock::size; ++j) {
                const plan::Flow flow{static_cast<std::uint32_t>(block.source(j)),
                                      static_cast<std::uint32_t>(block.destination(j)),
                                      static_cast<std::uint32_t>(block.source_port(j)),
                                      static_cast<std::uint32_t>(block.destination_port(j))};
                RC_ASSERT(flow == draw.draw(first + j * stride));
                RC_ASSERT(p.side(plan::sending_side(direction))
                              .hosts.contains(p.side(plan::sending_side(direction)).hosts.address(flow.source)));
                RC_ASSERT(p.side(plan::receiving_side(direction))
                              .hosts.contains(p.side(plan::receiving_side(direction)).hosts.address(flow.destination)));
            }
        });
    CHECK(same);
}

TEST_CASE("numbers that would be biased are drawn again") {
    // 2^32 mod (241 * 65536) = 225 * 65536: one draw in 291.
    const auto p = tests::nets_v6(241);
    const FlowDraw draw{p, Direction::forward, 1};
    FlowBlock block;
    for (std::uint64_t k = 0; k < 32UL * 1000; k += FlowBlock::size) {
        draw.draw_block(k, 1, block);
        for (std::size_t j = 0; j < FlowBlock::size; ++j) REQUIRE(block.source(j) == draw.draw(k + j).source);
    }
}

TEST_CASE("every network and every host of it occurs equally often (SEED-30)") {
    for (const auto& p :
         {tests::nets_v4(256, 1), tests::nets_v4(256, 253), tests::nets_v4(190, 254), tests::nets_v6(255, 257)}) {
        std::array<std::vector<std::uint64_t>, 2> of_address{std::vector<std::uint64_t>(p.left.hosts.addresses()),
                                                             std::vector<std::uint64_t>(p.right.hosts.addresses())};
        const std::uint64_t frames = 32UL * 65536;
        draw_pairs(p, Direction::forward, 20261121, frames, [&, h = p.left.hosts.host.count](const Pair& pair) {
            ++of_address[0].at(pair.source.network * h + pair.source.host);
            ++of_address[1].at(pair.destination.network * h + pair.destination.host);
        });
        for (const auto& counts : of_address) CHECK(is_even(counts, frames));
    }
}

TEST_CASE("networks of the largest plan are uniform, and so are its hosts") {
    std::vector<std::uint64_t> networks(256);
    std::vector<std::uint64_t> hosts(65536);
    const std::uint64_t frames = 16UL * 65536;
    draw_pairs(tests::nets_v6(), Direction::reverse, 5, frames, [&](const Pair& pair) {
        ++networks.at(pair.source.network);
        ++hosts.at(pair.source.host);
    });
    CHECK(is_even(networks, frames));
    CHECK(is_even(hosts, frames));
}

TEST_CASE("network and host are independent, of each other and of the other side's (SEED-33)") {
    // Every pair of the four numbers, 16 values each: with 16 hosts and networks all values; of more the remainder,
    // which is even too.
    for (const auto& p :
         {tests::nets_v4(16, 16), tests::nets_v6(16, 16), tests::nets_v4(256, 240), tests::nets_v6(256, 65536)}) {
        std::array<std::vector<std::uint64_t>, 6> pairs;
        for (auto& counts : pairs) counts.resize(256);
        const std::uint64_t frames = 1'000'000 / FlowBlock::size * FlowBlock::size;
        draw_pairs(p, Direction::forward, 33, frames, [&](const Pair& pair) {
            const std::array<std::uint32_t, 4> v{pair.source.network % 16, pair.source.host % 16,
                                                 pair.destination.network % 16, pair.destination.host % 16};
            std::size_t which = 0;
            for (std::size_t a = 0; a < v.size(); ++a) {
                for (std::size_t b = a + 1; b < v.size(); ++b) ++pairs[which++][v[a] * 16 + v[b]];
            }
        });
        for (const auto& counts : pairs) CHECK(is_even(counts, frames));
    }
}

TEST_CASE("the independence test would see a network that is tied to its host") {
    std::vector<std::uint64_t> counts(256);
    const std::uint64_t frames = 1'000'000 / FlowBlock::size * FlowBlock::size;
    draw_pairs(tests::gateway_v4(256), Direction::forward, 33, frames,
               [&](const Pair& pair) { ++counts[(pair.source.host >> 4U) * 16 + (pair.source.host >> 4U)]; });
    CHECK_FALSE(is_even(counts, frames));
}

TEST_CASE("increment and decrement visit every address once a round, hosts first") {
    auto p = tests::nets_v6(3, 5);
    for (const auto host_mode : {Mode::increment, Mode::decrement}) {
        for (const auto network_mode : {Mode::increment, Mode::decrement}) {
            p.left.hosts.host.mode = host_mode;
            p.left.hosts.network->mode = network_mode;
            const FlowDraw draw{p, Direction::forward, 1};
            std::set<std::uint32_t> values;
            for (std::uint64_t k = 0; k < 15; ++k) {
                const auto i = p.left.hosts.index(draw.draw(k).source);
                CHECK(i.host == (host_mode == Mode::increment ? k % 5 : 4 - k % 5));
                CHECK(i.network == (network_mode == Mode::increment ? k / 5 : 2 - k / 5));
                values.insert(draw.draw(k).source);
                CHECK(draw.draw(k).source == draw.draw(k + 15).source);
            }
            CHECK(values.size() == 15);
        }
    }
}

TEST_CASE("the source's network alone is fixed, in both directions (SEED-83)") {
    for (auto p : {tests::nets_v4(8, 50), tests::nets_v6(8, 50)}) {
        p.fixed_source_network = true;
        for (const auto direction : {Direction::forward, Direction::reverse}) {
            std::vector<std::uint64_t> hosts(50);
            std::vector<std::uint64_t> networks(8);
            constexpr std::uint64_t frames = 32UL * 3000;
            draw_pairs(p, direction, 2, frames, [&](const Pair& pair) {
                REQUIRE(pair.source.network == 0);
                ++hosts.at(pair.source.host);
                ++networks.at(pair.destination.network);
            });
            CHECK(is_even(hosts, frames));
            CHECK(is_even(networks, frames));
        }
    }
}

TEST_CASE("one network number for both addresses, everything else drawn (SEED-82)") {
    for (auto p : {tests::nets_v4(8, 50), tests::nets_v6(8, 50)}) {
        for (const auto mode : {Mode::pseudorandom, Mode::increment}) {
            p.common_network = true;
            p.left.hosts.network->mode = p.right.hosts.network->mode = mode;
            for (const auto direction : {Direction::forward, Direction::reverse}) {
                std::vector<std::uint64_t> networks(8);
                std::vector<std::uint64_t> pairs(2500);
                std::uint32_t k = 0;
                constexpr std::uint64_t frames = 32UL * 3000;
                draw_pairs(p, direction, 2, frames, [&](const Pair& pair) {
                    REQUIRE(pair.source.network == pair.destination.network);
                    if (mode == Mode::increment) REQUIRE(pair.source.network == k++ % 8);
                    ++networks.at(pair.source.network);
                    ++pairs.at(pair.source.host * 50 + pair.destination.host);
                });
                if (mode == Mode::pseudorandom) CHECK(is_even(networks, frames));
                CHECK(is_even(pairs, frames));
                const FlowDraw draw{p, direction, 2};
                FlowBlock block;
                draw.draw_block(64, 3, block);
                for (std::size_t j = 0; j < FlowBlock::size; ++j)
                    CHECK(draw.draw(64 + 3 * j).destination == block.destination(j));
            }
        }
    }
}

TEST_CASE("choices about networks are refused where there are none, or where they contradict each other") {
    auto flat = tests::gateway_v4();
    flat.common_network = true;
    CHECK_THROWS_AS(plan::check_plan(flat), Fault);
    flat.common_network = false;
    flat.fixed_source_network = true;
    CHECK_THROWS_AS(plan::check_plan(flat), Fault);
    auto nets = tests::nets_v4(8, 50);
    nets.common_network = true;
    CHECK_NOTHROW(plan::check_plan(nets));
    nets.fixed_source = true;
    CHECK_THROWS_AS(plan::check_plan(nets), Fault);
    nets.fixed_source = false;
    nets.right.hosts.network->count = 7;
    CHECK_THROWS_AS(plan::check_plan(nets), Fault);
}

TEST_CASE("modes of networks and hosts are chosen apart (SEED-35)") {
    auto p = tests::nets_v4(8, 50);
    SUBCASE("one source and all destinations, in both directions: RFC 2544 section 12") {
        p.fixed_source = true;
        for (const auto direction : {Direction::forward, Direction::reverse}) {
            std::set<std::pair<std::uint32_t, std::uint32_t>> destinations;
            draw_pairs(p, direction, 2, 32UL * 500, [&](const Pair& pair) {
                CHECK(pair.source == HostIndex{0, 0});
                destinations.emplace(pair.destination.network, pair.destination.host);
            });
            CHECK(destinations.size() == 8 * 50);
        }
        auto whole = tests::gateway_v4();
        whole.fixed_source = true;
        CHECK(FlowDraw{whole, Direction::forward, 1}.draw(77).source == 1);
        CHECK(FlowDraw{whole, Direction::forward, 1}.draw(77).destination ==
              FlowDraw{tests::gateway_v4(), Direction::forward, 1}.draw(77).destination);
    }
    SUBCASE("a fixed network with all its hosts") {
        p.left.hosts.network->mode = Mode::fixed;
        std::vector<std::uint64_t> hosts(50);
        constexpr std::uint64_t frames = 32UL * 3000;
        draw_pairs(p, Direction::forward, 2, frames, [&](const Pair& pair) {
            REQUIRE(pair.source.network == 0);
            ++hosts.at(pair.source.host);
        });
        CHECK(is_even(hosts, frames));
    }
    SUBCASE("networks in turn, hosts pseudorandom and even") {
        p.left.hosts.network->mode = Mode::increment;
        std::vector<std::uint64_t> hosts(50);
        std::uint32_t k = 0;
        constexpr std::uint64_t frames = 32UL * 3000;
        draw_pairs(p, Direction::forward, 2, frames, [&](const Pair& pair) {
            REQUIRE(pair.source.network == k++ % 8);
            ++hosts.at(pair.source.host);
        });
        CHECK(is_even(hosts, frames));
    }
    SUBCASE("one host, networks pseudorandom and even") {
        p.right.hosts.host.mode = Mode::fixed;
        std::vector<std::uint64_t> networks(8);
        constexpr std::uint64_t frames = 32UL * 3000;
        draw_pairs(p, Direction::forward, 2, frames, [&](const Pair& pair) {
            REQUIRE(pair.destination.host == 0);
            ++networks.at(pair.destination.network);
        });
        CHECK(is_even(networks, frames));
    }
}

}  // namespace network_draw_test
