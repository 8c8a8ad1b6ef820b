// SPDX-License-Identifier: Apache-2.0
// Station 3.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <cmath>

#include "pace/schedule.hpp"

namespace pace_test {

using namespace evenhand;

TEST_CASE("frame k is due at k periods, without drift over a day") {
    const bool right = rc::check("due", [] {
        const double ticks_per_second = *rc::gen::inRange(1'000'000'000, 2'000'000'000) * 2.0 + 0.25;
        const double rate = *rc::gen::inRange(1, 2'000'000'000) / 10.0;
        const auto k = *rc::gen::inRange<std::uint64_t>(0, static_cast<std::uint64_t>(rate * 86400) + 1);
        const pace::EvenSchedule schedule{1000, ticks_per_second, rate};
        const long double exact = 1000 + static_cast<long double>(k) * static_cast<long double>(ticks_per_second) / static_cast<long double>(rate);
        RC_ASSERT(std::abs(static_cast<long double>(schedule.due(k)) - exact) <= 2);
    });
    CHECK(right);
}

TEST_CASE("as many frames are due as have their time behind them") {
    const bool right = rc::check("due_count", [] {
        const double rate = *rc::gen::inRange(1, 200'000'000);
        const pace::EvenSchedule schedule{5'000'000, 2.5e9, rate};
        const auto k = *rc::gen::inRange<std::uint64_t>(0, 10'000'000'000);
        const auto at = schedule.due(k);
        RC_ASSERT(schedule.due_count(at + 2) >= k + 1);
        RC_ASSERT(schedule.due_count(at - 2) <= k + 1);
    });
    CHECK(right);
    const pace::EvenSchedule schedule{5'000'000, 2.5e9, 1e6};
    CHECK(schedule.due_count(4'999'999) == 0);
    CHECK(schedule.due_count(5'000'000) == 1);
    CHECK(schedule.due_count(5'002'499) == 1);
    CHECK(schedule.due_count(5'002'502) == 2);
}

TEST_CASE("60 s at 71.58 Mfps and more do not wrap") {
    const pace::EvenSchedule schedule{0, 2.596e9, 148'809'523};
    const std::uint64_t frames = 60 * std::uint64_t{148'809'523};
    CHECK(std::abs(static_cast<std::int64_t>(schedule.due(frames)) - 60 * std::int64_t{2'596'000'000}) <= 2);
    CHECK(schedule.due_count(schedule.due(frames) + 2) >= frames);
}

TEST_CASE("streams of one direction are evenly interleaved") {
    const pace::EvenSchedule whole{10'000, 2.6e9, 3e6};
    for (std::uint64_t stream = 0; stream < 3; ++stream) {
        const pace::EvenSchedule part{whole.due(stream), 2.6e9, 1e6};
        for (const std::uint64_t i : {0U, 1U, 1000U, 1'000'000'000U}) CHECK(std::abs(static_cast<std::int64_t>(part.due(i) - whole.due(stream + 3 * i))) <= 2);
    }
}

TEST_CASE("the clock goes forward, and its rate is found") {
    const auto earlier = pace::sample_clocks();
    const double rate = pace::calibrate_ticks_per_second(pace::sample_clocks(), 20);
    const auto later = pace::sample_clocks();
    CHECK(later.ticks > earlier.ticks);
    CHECK(later.raw_ns > earlier.raw_ns);
    CHECK(rate > 1e6);
    CHECK(pace::ticks_per_second({.ticks = 0, .raw_ns = 0}, {.ticks = 3000, .raw_ns = 1000}) == doctest::Approx(3e9));
}

}  // namespace pace_test
