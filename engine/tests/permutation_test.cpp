// SPDX-License-Identifier: Apache-2.0
// Station 1: the keyed bijection that gives each connection its four tuple (R9693-05).
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include "chi_square.hpp"
#include "plan/four_tuples.hpp"
#include "plan/permutation.hpp"
#include "plans.hpp"
#include "slow.hpp"

namespace permutation_test {

using namespace evenhand;
using namespace evenhand::tests;
using plan::RectanglePermutation;
using Numbers = RectanglePermutation::Numbers;

namespace {

using Counts = std::array<std::uint32_t, plan::drawn_fields>;

plan::DrawBounds sides_of(const Counts& counts) {
    constexpr Counts firsts{1, 0, 1000, 60000};
    plan::DrawBounds sides;
    for (std::size_t i = 0; i < counts.size(); ++i) sides.set(i, firsts[i], counts[i]);
    return sides;
}

Numbers numbers_from(std::uint64_t first, std::uint64_t points) {
    Numbers numbers;
    for (std::size_t j = 0; j < numbers.size(); ++j)
        numbers[j] = static_cast<std::uint32_t>(std::min(first + j, points - 1));
    return numbers;
}

/// Which point it is, counted from 0; nothing if it lies outside.
std::optional<std::uint64_t> place_of(const plan::DrawLanes& points, std::size_t lane, const plan::DrawBounds& sides) {
    std::uint64_t place = 0;
    for (std::size_t i = plan::drawn_fields; i-- > 0;) {
        const std::uint32_t value = points.field[i][lane] - sides.first[i];
        if (value >= sides.count[i]) return std::nullopt;
        place = place * sides.count[i] + value;
    }
    return place;
}

}  // namespace

TEST_CASE("every point of a rectangle is given once, whatever its sides (R9693-05)") {
    for (const Counts& counts : std::vector<Counts>{{1, 1, 1, 1},
                                                    {1, 1, 2, 1},
                                                    {1, 1, 3, 1},
                                                    {2, 2, 2, 2},
                                                    {1, 1, 997, 1},
                                                    {10, 10, 10, 10},
                                                    {64, 1, 64, 1},
                                                    {65, 3, 7, 64},
                                                    {1, 65534, 1, 1},
                                                    {1, 1, 40000, 63},
                                                    {1, 1, 40000, 100}}) {
        const auto sides = sides_of(counts);
        const auto size = RectanglePermutation::points(sides).value();
        for (const std::uint64_t seed : {1U, 2U}) {
            const RectanglePermutation permutation{sides, seed};
            std::vector<bool> seen(size);
            std::uint64_t wrong = 0;
            for (std::uint64_t first = 0; first < size; first += plan::DrawLanes::size) {
                plan::DrawLanes points;
                permutation.apply(numbers_from(first, size), points);
                for (std::size_t j = 0; j < plan::DrawLanes::size && first + j < size; ++j) {
                    const auto place = place_of(points, j, sides);
                    wrong += static_cast<std::uint64_t>(!place || seen[*place]);
                    if (place) seen[*place] = true;
                }
            }
            CHECK(wrong == 0);
        }
    }
}

TEST_CASE("no point is given twice of rectangles that are too large to be filled (R9693-05)") {
    constexpr std::uint64_t numbers = tests::is_slow ? 500'000 : 2'000'000;
    for (const Counts& counts :
         std::vector<Counts>{{65534, 65534, 40000, 100}, {65534, 65534, 1, 1}, {256, 256, 64512, 49151}}) {
        const auto sides = sides_of(counts);
        const RectanglePermutation permutation{sides, 3};
        std::vector<std::uint64_t> places;
        places.reserve(numbers);
        for (std::uint64_t first = 0; first < numbers; first += plan::DrawLanes::size) {
            plan::DrawLanes points;
            permutation.apply(numbers_from(first, numbers), points);
            for (std::size_t j = 0; j < plan::DrawLanes::size; ++j)
                places.push_back(place_of(points, j, sides).value());
        }
        std::ranges::sort(places);
        CHECK(std::ranges::adjacent_find(places) == places.end());
    }
}

TEST_CASE("all vector units say the same") {
    const bool holds = rc::check([] {
        Counts counts{};
        for (auto& count : counts) count = *rc::gen::inRange<std::uint32_t>(1, 65536);
        for (auto& count : counts) count = *rc::gen::elementOf(std::vector<std::uint32_t>{1, 2, 100, count});
        const auto sides = sides_of(counts);
        const auto size = RectanglePermutation::points(sides);
        RC_PRE(size.has_value());
        const RectanglePermutation permutation{sides, *rc::gen::arbitrary<std::uint64_t>()};
        const auto most = std::min(*size, plan::most_connections);
        const auto first = *rc::gen::inRange<std::uint64_t>(0, most);
        const auto numbers = numbers_from(first, most);
        plan::DrawLanes plain;
        const bool is_walked = RectanglePermutation::variant("plain")(permutation, numbers, plain);
        for (const char* const name : {"avx2", "avx512"}) {
            const auto variant = RectanglePermutation::variant(name);
            if (variant == nullptr) continue;
            plan::DrawLanes wide;
            RC_ASSERT(variant(permutation, numbers, wide) == is_walked);
            if (!is_walked) RC_ASSERT(wide.field == plain.field);
        }
    });
    CHECK(holds);
}

TEST_CASE("consecutive connections have tuples that look independent, and another seed gives others") {
    constexpr std::size_t bins = 32;
    constexpr std::uint64_t numbers = tests::is_slow ? 500'000 : 3'000'000;
    for (const Counts& counts :
         std::vector<Counts>{{65534, 65534, 40000, 100}, {1, 1, 40000, 100}, {64, 64, 1, 65000}}) {
        const auto sides = sides_of(counts);
        const RectanglePermutation permutation{sides, 5};
        const RectanglePermutation other{sides, 6};
        std::array<std::array<std::vector<std::uint64_t>, plan::drawn_fields>, plan::drawn_fields> serial;
        for (auto& row : serial) row.fill(std::vector<std::uint64_t>(bins * bins));
        std::array<std::size_t, plan::drawn_fields> before{};
        std::uint64_t alike = 0;
        for (std::uint64_t first = 0; first < numbers; first += plan::DrawLanes::size) {
            plan::DrawLanes points;
            plan::DrawLanes others;
            permutation.apply(numbers_from(first, numbers), points);
            other.apply(numbers_from(first, numbers), others);
            for (std::size_t j = 0; j < plan::DrawLanes::size; ++j) {
                alike += static_cast<std::uint64_t>(place_of(points, j, sides) == place_of(others, j, sides));
                std::array<std::size_t, plan::drawn_fields> now{};
                for (std::size_t i = 0; i < now.size(); ++i)
                    now[i] = std::uint64_t{points.field[i][j] - sides.first[i]} * bins / counts[i];
                if (first + j != 0) {
                    for (std::size_t a = 0; a < now.size(); ++a) {
                        for (std::size_t b = 0; b < now.size(); ++b) ++serial[a][b][before[a] * bins + now[b]];
                    }
                }
                before = now;
            }
        }
        CHECK(alike < 10);
        for (std::size_t a = 0; a < counts.size(); ++a) {
            for (std::size_t b = 0; b < counts.size(); ++b) {
                if (counts[a] < bins || counts[b] < bins) continue;
                INFO("field ", a, " and the next frame's field ", b);
                // Bins of a side that they do not divide have different widths: expected from the margins.
                std::vector<double> of_row(bins);
                std::vector<double> of_column(bins);
                for (std::size_t i = 0; i < bins * bins; ++i) {
                    of_row[i / bins] += static_cast<double>(serial[a][b][i]);
                    of_column[i % bins] += static_cast<double>(serial[a][b][i]);
                }
                double chi_square = 0;
                for (std::size_t i = 0; i < bins * bins; ++i) {
                    const double expected = of_row[i / bins] * of_column[i % bins] / static_cast<double>(numbers - 1);
                    const double difference = static_cast<double>(serial[a][b][i]) - expected;
                    chi_square += difference * difference / expected;
                }
                constexpr double degrees = (bins - 1) * (bins - 1);
                CHECK(std::abs(chi_square - degrees) < 5 * std::sqrt(2 * degrees));
            }
        }
    }
}

TEST_CASE("tuples can be counted up and down for comparison (R9693-05)") {
    auto p = gateway_v4(3);
    p.source_ports = {.first = 1000, .count = 4};
    p.destination_ports = {.first = 7, .count = 2};
    CHECK(plan::FourTuples::count(p) == 3U * 3 * 4 * 2);
    const plan::FourTuples up{p, 10, plan::TupleOrder::increasing, 1};
    const plan::FourTuples down{p, 10, plan::TupleOrder::decreasing, 1};
    CHECK(up.flow(0) == plan::Flow{.source = 1, .destination = 1, .source_port = 1000, .destination_port = 7});
    CHECK(up.flow(1) == plan::Flow{.source = 1, .destination = 1, .source_port = 1001, .destination_port = 7});
    CHECK(up.flow(4) == plan::Flow{.source = 1, .destination = 1, .source_port = 1000, .destination_port = 8});
    CHECK(up.flow(8) == plan::Flow{.source = 2, .destination = 1, .source_port = 1000, .destination_port = 7});
    for (std::uint32_t k = 0; k < 10; ++k) CHECK(down.flow(k) == up.flow(9 - k));
}

TEST_CASE("more tuples than 64 bits count are none") {
    auto p = gateway_v6(65536);
    p.source_ports = {.first = 1, .count = 65535};
    p.destination_ports = {.first = 1, .count = 65535};
    CHECK(plan::FourTuples::count(p).has_value());
    p.source_ports = {.first = 0, .count = 65536};
    p.destination_ports = {.first = 0, .count = 65536};
    CHECK_FALSE(plan::FourTuples::count(p).has_value());
}

TEST_CASE("frames of established connections are of all of them, equally often; each_once of each once") {
    constexpr std::uint64_t connections = 1000;
    constexpr std::uint64_t frames = 320'000;
    std::vector<std::uint64_t> drawn(connections);
    plan::ConnectionDraw draw{plan::ConnectionUse::drawn, plan::Direction::reverse, connections, 9};
    plan::ConnectionDraw once{plan::ConnectionUse::each_once, plan::Direction::forward, connections, 9};
    plan::FourTuples::Numbers numbers;
    for (std::uint64_t first = 0; first < frames; first += numbers.size()) {
        draw.numbers(first, 1, numbers);
        for (const auto number : numbers) ++drawn.at(number);
    }
    CHECK(is_even(drawn, frames));
    once.numbers(990, 2, numbers);
    CHECK(numbers[0] == 990);
    CHECK(numbers[4] == 998);
    CHECK(numbers[5] == 999);  // beyond the last frame: never sent
}

TEST_CASE("which connection a frame is of does not depend on who asks: workers and their number") {
    const bool holds = rc::check([](std::uint64_t seed) {
        const auto connections = *rc::gen::oneOf(rc::gen::inRange<std::uint64_t>(1, 1000),
                                                 rc::gen::inRange<std::uint64_t>(2'000'000'000, 4'000'000'000));
        const auto first = *rc::gen::inRange<std::uint64_t>(0, std::uint64_t{1} << 40U);
        const auto stride = *rc::gen::inRange<std::uint64_t>(1, 20);
        plan::ConnectionDraw draw{plan::ConnectionUse::drawn, plan::Direction::forward, connections, seed};
        plan::FourTuples::Numbers numbers;
        draw.numbers(first, stride, numbers);
        for (std::size_t j = 0; j < numbers.size(); ++j) {
            // Asked for each frame alone, by a stream that has it at its begin.
            plan::ConnectionDraw alone{plan::ConnectionUse::drawn, plan::Direction::forward, connections, seed};
            plan::FourTuples::Numbers of_frame;
            alone.numbers(first + j * stride, 4, of_frame);
            RC_ASSERT(of_frame[0] == numbers[j]);
            RC_ASSERT(numbers[j] < connections);
        }
    });
    CHECK(holds);
}

TEST_CASE("consecutive frames of established connections are of independent ones") {
    constexpr std::uint64_t connections = 3'000'000'000;  // some 30 % of the draws are biased, and drawn anew
    constexpr std::size_t bins = 32;
    constexpr std::uint64_t frames = 3'200'000;
    plan::ConnectionDraw draw{plan::ConnectionUse::drawn, plan::Direction::forward, connections, 11};
    std::array<std::vector<std::uint64_t>, 4> serial;  // a frame and the one 1, 2, 3 or 4 later
    serial.fill(std::vector<std::uint64_t>(bins * bins));
    std::vector<std::size_t> before;
    plan::FourTuples::Numbers numbers;
    for (std::uint64_t first = 0; first < frames; first += numbers.size()) {
        draw.numbers(first, 1, numbers);
        for (const auto number : numbers) {
            before.push_back(std::uint64_t{number} * bins / connections);
            for (std::size_t later = 1; later <= serial.size() && later < before.size(); ++later)
                ++serial[later - 1][before[before.size() - 1 - later] * bins + before.back()];
        }
    }
    for (std::size_t later = 1; later <= serial.size(); ++later) CHECK(is_even(serial[later - 1], frames - later));
}

}  // namespace permutation_test
