// SPDX-License-Identifier: Apache-2.0
// Station 1: SEED-40, SEED-41, SEED-42, SEED-43, SEED-44, R4814-01 .. R4814-04.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <array>
#include <cmath>
#include <set>
#include <vector>

#include "chi_square.hpp"
#include "plan/draw.hpp"
#include "plans.hpp"

namespace draw_test {

using namespace evenhand;
using plan::Direction;
using plan::FlowBlock;
using plan::FlowDraw;
using tests::deviate;
using tests::gateway_v4;
using tests::gateway_v6;

TEST_CASE("philox4x32 gives the known answers of its authors") {
    // Random123 1.14, tests/kat_vectors: counter, key, result.
    CHECK(plan::philox4x32({0, 0, 0, 0}, {0, 0}) ==
          std::array<std::uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
    CHECK(plan::philox4x32({~0U, ~0U, ~0U, ~0U}, {~0U, ~0U}) ==
          std::array<std::uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
    CHECK(plan::philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
          std::array<std::uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("every vector unit draws the same numbers") {
    const bool same = rc::check("plain, avx2 and avx512 agree", [](std::uint64_t first, std::uint16_t stride,
                                                                   std::uint32_t stream, plan::PhiloxKey key) {
        plan::DrawBounds bounds;
        for (std::size_t i = 0; i < plan::drawn_fields; ++i) {
            // Networks and hosts together are 2^24 at most; connections are many, so that some draws are biased.
            const auto count = *rc::gen::oneOf(rc::gen::inRange<std::uint32_t>(1, 65537),
                                               rc::gen::inRange<std::uint32_t>(1, (1U << 24U) + 1),
                                               rc::gen::inRange<std::uint32_t>(100'000'000, 4'000'000'000));
            bounds.set(i, *rc::gen::inRange<std::uint32_t>(0, 65537), count);
        }
        plan::DrawLanes expected{};
        plan::LaneBits expected_bits{};
        const bool biased = plan::draw_variant("plain")(first, stride, stream, key, bounds, expected, expected_bits);
        for (std::size_t i = 0; i < plan::drawn_fields; ++i) {
            for (std::uint64_t j = 0; j < plan::DrawLanes::size; ++j) {
                const std::uint64_t k = first + j * stride;
                const auto words = plan::philox4x32(
                    {static_cast<std::uint32_t>(k), static_cast<std::uint32_t>(k >> 32U), stream, 0}, key);
                const auto low = static_cast<std::uint32_t>(std::uint64_t{words[i]} * bounds.count[i]);
                RC_ASSERT((expected_bits[i] >> j & 1U) == static_cast<std::uint32_t>(low < bounds.threshold[i]));
            }
        }
        for (const char* const name : {"avx2", "avx512"}) {
            const auto variant = plan::draw_variant(name);
            if (variant == nullptr) continue;
            plan::DrawLanes lanes{};
            plan::LaneBits bits{};
            RC_ASSERT(variant(first, stride, stream, key, bounds, lanes, bits) == biased);
            RC_ASSERT(lanes.field == expected.field);
            RC_ASSERT(bits == expected_bits);
        }
    });
    CHECK(same);
}

TEST_CASE("a block holds the flows of its frames, in every mode") {
    const bool same = rc::check("draw_block equals draw", [](std::uint64_t seed, std::uint32_t first, bool reverse) {
        auto p = gateway_v4(*rc::gen::inRange<std::uint32_t>(1, 65535));
        p.left.hosts.host.mode = *rc::gen::element(plan::Mode::pseudorandom, plan::Mode::fixed, plan::Mode::increment,
                                                   plan::Mode::decrement);
        p.source_ports.mode = *rc::gen::element(plan::Mode::pseudorandom, plan::Mode::fixed, plan::Mode::increment,
                                                plan::Mode::decrement);
        const auto stride = *rc::gen::inRange<std::uint64_t>(1, 129);
        const FlowDraw draw{p, reverse ? Direction::reverse : Direction::forward, seed};
        FlowBlock block;
        draw.draw_block(first, stride, block);
        for (std::size_t j = 0; j < FlowBlock::size; ++j) {
            const plan::Flow flow{static_cast<std::uint32_t>(block.source(j)),
                                  static_cast<std::uint32_t>(block.destination(j)),
                                  static_cast<std::uint32_t>(block.source_port(j)),
                                  static_cast<std::uint32_t>(block.destination_port(j))};
            RC_ASSERT(flow == draw.draw(first + j * stride));
        }
    });
    CHECK(same);
}

TEST_CASE("draws that would be biased are drawn again") {
    // 2^32 mod 48145 = 48136 of 2^32 draws are biased for such a destination port: about one in 89,000.
    auto p = gateway_v4();
    p.destination_ports.count = 48'145;
    const FlowDraw draw{p, Direction::forward, 1};
    FlowBlock block;
    for (std::uint64_t k = 0; k < 32UL * 40'000; k += FlowBlock::size) {
        draw.draw_block(k, 1, block);
        for (std::size_t j = 0; j < FlowBlock::size; ++j)
            REQUIRE(block.destination_port(j) == draw.draw(k + j).destination_port);
    }
}

TEST_CASE("a draw that would favour some values is not taken, but the next attempt's (SEED-43)") {
    // Chi-square does not see it: of 48,145 ports 48,136 would be drawn 89,209 times in 2^32, the others 89,208 times.
    constexpr std::size_t field = 3;
    auto p = gateway_v4();
    p.destination_ports.count = 48'145;
    const std::uint64_t count = p.destination_ports.count;
    const std::uint64_t too_many = (std::uint64_t{1} << 32U) % count;
    CHECK(too_many == 48'136);
    const FlowDraw draw{p, Direction::forward, 1};
    std::size_t drawn_again = 0;
    for (std::uint32_t k = 0; k < 2'000'000; ++k) {
        const auto product = [&](std::uint32_t attempt) {
            return std::uint64_t{plan::philox4x32({k, 0, 0, attempt}, {1, 0})[field]} * count;
        };
        const std::uint64_t first = product(0);
        if (static_cast<std::uint32_t>(first) >= too_many) continue;
        const std::uint64_t second = product(1);
        REQUIRE(static_cast<std::uint32_t>(second) >= too_many);
        REQUIRE((second >> 32U) != (first >> 32U));
        CHECK(draw.draw(k).destination_port == static_cast<std::uint32_t>(p.destination_ports.first + (second >> 32U)));
        ++drawn_again;
    }
    CHECK(drawn_again > 5);  // of 22 that are expected
}

TEST_CASE("every field is uniform over its range, for ranges that are no power of two") {
    for (const auto& p : {gateway_v4(253), gateway_v4(65533), gateway_v4(65534), gateway_v6(65536)}) {
        const FlowDraw draw{p, Direction::reverse, 20261121};
        const auto& from = p.right.hosts.host;
        const auto& to = p.left.hosts.host;
        std::array counts{std::vector<std::uint64_t>(from.count), std::vector<std::uint64_t>(to.count),
                          std::vector<std::uint64_t>(p.source_ports.count),
                          std::vector<std::uint64_t>(p.destination_ports.count)};
        constexpr std::uint64_t draws = 32UL * 65536;  // 32 for each of 65,536 values
        FlowBlock block;
        for (std::uint64_t k = 0; k < draws; k += FlowBlock::size) {
            draw.draw_block(k, 1, block);
            for (std::size_t j = 0; j < FlowBlock::size; ++j) {
                ++counts[0].at(block.source(j) - from.first);
                ++counts[1].at(block.destination(j) - to.first);
                ++counts[2].at(block.source_port(j) - p.source_ports.first);
                ++counts[3].at(block.destination_port(j) - p.destination_ports.first);
            }
        }
        for (const auto& c : counts) CHECK(std::abs(deviate(c, draws)) < 5);
    }
}

TEST_CASE("the uniformity test would see a generator of 15 bits") {
    // Two numbers of 15 bits put together: bit 15 is never set, so of 65,536 addresses half never occur.
    std::vector<std::uint64_t> counts(65536);
    std::uint32_t state = 1;
    constexpr std::uint64_t draws = 32UL * 65536;
    for (std::uint64_t k = 0; k < draws; ++k) {
        state = 214013U * state + 2531011U;
        const std::uint32_t high = state >> 16U & 0x7FFFU;
        state = 214013U * state + 2531011U;
        ++counts[((high << 16U) + (state >> 16U & 0x7FFFU)) % counts.size()];
    }
    CHECK(std::abs(deviate(counts, draws)) > 50);
}

TEST_CASE("source and destination are not tied: all pairs of 16 hosts occur equally often") {
    const FlowDraw draw{gateway_v4(16), Direction::forward, 3};
    std::vector<std::uint64_t> pairs(256);
    constexpr std::uint64_t draws = 256UL * 1000;
    for (std::uint64_t k = 0; k < draws; ++k) {
        const auto flow = draw.draw(k);
        ++pairs[(flow.source - 1) * 16 + flow.destination - 1];
    }
    CHECK(std::abs(deviate(pairs, draws)) < 5);
}

TEST_CASE("each value is drawn on its own: no stride from one frame to the next is common (R4814-07)") {
    // A random start and increments would be uniform in each field as well.
    for (const auto& p : {gateway_v4(), gateway_v6(), tests::nets_v4(), tests::nets_v6()}) {
        for (const auto direction : {Direction::forward, Direction::reverse}) {
            const FlowDraw draw{p, direction, 5};
            constexpr std::uint64_t frames = 1024;
            std::array<std::set<std::uint32_t>, 4> strides;
            FlowBlock block;
            std::array<std::uint32_t, 4> last{};
            for (std::uint64_t k = 0; k < frames; k += FlowBlock::size) {
                draw.draw_block(k, 1, block);
                for (std::size_t j = 0; j < FlowBlock::size; ++j) {
                    for (std::size_t field = 0; field < strides.size(); ++field) {
                        const auto value = static_cast<std::uint32_t>(block.lanes.field[field][j]);
                        strides[field].insert(value - last[field]);
                        last[field] = value;
                    }
                }
            }
            // With 2^17 possible strides, about four of 1,024 draws are repeats.
            for (const auto& of_field : strides) CHECK(of_field.size() > frames - 64);
        }
    }
}

TEST_CASE("directions, seeds and streams") {
    const FlowDraw forward{gateway_v4(), Direction::forward, 7};
    SUBCASE("the same seed draws the same flows") {
        CHECK(forward.draw(123456789) == FlowDraw{gateway_v4(), Direction::forward, 7}.draw(123456789));
    }
    SUBCASE("other seeds and the other direction draw others") {
        const FlowDraw reverse{gateway_v4(), Direction::reverse, 7};
        const FlowDraw other{gateway_v4(), Direction::forward, 8};
        const FlowDraw far{gateway_v4(), Direction::forward, 7 + (std::uint64_t{1} << 32U)};
        int same = 0;
        for (std::uint64_t k = 0; k < 1000; ++k) {
            for (const auto* const draw : {&reverse, &other, &far})
                same += static_cast<int>(forward.draw(k) == draw->draw(k));
        }
        CHECK(same == 0);
    }
    SUBCASE("one host is always that host, and a fixed port always that port") {
        auto p = gateway_v6(1);
        p.source_ports = {.first = 49184, .count = 1, .mode = plan::Mode::fixed};
        p.destination_ports = {.first = 7, .count = 1000, .mode = plan::Mode::fixed};
        const FlowDraw draw{p, Direction::forward, 9};
        for (std::uint64_t k = 0; k < 100; ++k) CHECK(draw.draw(k) == plan::Flow{0, 0, 49184, 7});
    }
    SUBCASE("increment and decrement go round") {
        auto p = gateway_v4(3);
        p.left.hosts.host.mode = plan::Mode::increment;
        p.right.hosts.host.mode = plan::Mode::decrement;
        const FlowDraw draw{p, Direction::forward, 9};
        CHECK(draw.draw(0).source == 1);
        CHECK(draw.draw(2).source == 3);
        CHECK(draw.draw(3).source == 1);
        CHECK(draw.draw(0).destination == 3);
        CHECK(draw.draw(3).destination == 3);
    }
}

}  // namespace draw_test
