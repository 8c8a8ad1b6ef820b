// SPDX-License-Identifier: Apache-2.0
// Station 3.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <cmath>

#include "pace/schedule.hpp"
#include "run/rate_limit.hpp"

namespace pace_test {

using namespace evenhand;

TEST_CASE("frame k is due at k periods, without drift over a day") {
    const bool right = rc::check("due", [] {
        const double ticks_per_second = *rc::gen::inRange(1'000'000'000, 2'000'000'000) * 2.0 + 0.25;
        const double rate = *rc::gen::inRange(1, 2'000'000'000) / 10.0;
        const auto k = *rc::gen::inRange<std::uint64_t>(0, static_cast<std::uint64_t>(rate * 86400) + 1);
        const pace::EvenSchedule schedule{1000, ticks_per_second, rate};
        const long double exact = 1000 + static_cast<long double>(k) * static_cast<long double>(ticks_per_second) /
                                             static_cast<long double>(rate);
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
        for (const std::uint64_t i : {0U, 1U, 1000U, 1'000'000'000U})
            CHECK(std::abs(static_cast<std::int64_t>(part.due(i) - whole.due(stream + 3 * i))) <= 2);
    }
}

TEST_CASE("the schedule is the same wherever the counter stands, also where it begins anew") {
    const pace::EvenSchedule plain{0, 2.6e9, 14'880'952.0};
    for (const unsigned bit : {48U, 56U, 63U, 64U}) {
        for (const pace::Ticks before :
             {pace::Ticks{0}, pace::Ticks{1}, pace::Ticks{1'000'000}, pace::Ticks{2'600'000'000}}) {
            const pace::Ticks start = (bit == 64 ? 0 : pace::Ticks{1} << bit) - before;
            const pace::EvenSchedule there{start, 2.6e9, 14'880'952.0};
            CHECK(there.due_count(start - 1) == 0);
            for (const std::uint64_t k : {0U, 1U, 2U, 5'000U, 5'724U, 14'880'952U, 1'000'000'000U}) {
                REQUIRE(there.due(k) - start == plain.due(k));
                REQUIRE(there.stream(1, 3).due(k) - start == plain.stream(1, 3).due(k));
                for (const pace::Ticks after : {0U, 1U, 100U})
                    REQUIRE(there.due_count(start + plain.due(k) + after) == plain.due_count(plain.due(k) + after));
            }
        }
    }
}

TEST_CASE("a slow counter spaces more frames than it has ticks: 100 Gbit/s by Arm's 25 MHz") {
    constexpr double ticks_per_second = 25e6;
    for (const double rate : {12.5e6, 25e6, 25e6 + 1, 30e6, 50e6, 148'809'523.0, 32 * ticks_per_second}) {
        CAPTURE(rate);
        const pace::EvenSchedule schedule{1000, ticks_per_second, rate};
        for (std::uint64_t streams : {1U, 3U}) {
            std::uint64_t due_at_first = 0;
            for (std::uint64_t s = 0; s < streams; ++s)
                due_at_first += schedule.stream(s, streams).due_count(1000 + 25'000'000);
            CHECK(due_at_first == schedule.due_count(1000 + 25'000'000));
        }
        for (pace::Ticks now : {pace::Ticks{1000}, pace::Ticks{1001}, pace::Ticks{1777},
                                pace::Ticks{1000 + 60 * std::uint64_t{25'000'000}}}) {
            const auto count = schedule.due_count(now);
            CHECK(static_cast<std::int64_t>(schedule.due(count - 1) - now) <= 0);
            CHECK(static_cast<std::int64_t>(schedule.due(count) - now) > 0);
            const long double exact = static_cast<long double>(now - 1000) * static_cast<long double>(rate) /
                                      static_cast<long double>(ticks_per_second);
            CHECK(static_cast<long double>(count) >= exact);
            CHECK(static_cast<long double>(count) <=
                  exact + static_cast<long double>(rate / ticks_per_second) + 1.001L);
        }
    }
}

TEST_CASE("at any rate, as many frames are due as have their time behind them, to the frame") {
    CHECK(rc::check([] {
        const double ticks_per_second = *rc::gen::element(25e6, 54e6, 1e9, 2.596e9);
        const double rate = *rc::gen::inRange(1, 800'000'000);
        const auto streams = *rc::gen::inRange<std::uint64_t>(1, 9);
        const auto start = *rc::gen::arbitrary<pace::Ticks>();
        const auto schedule = pace::EvenSchedule{start, ticks_per_second, rate}.stream(
            *rc::gen::inRange<std::uint64_t>(0, streams), streams);
        const pace::Ticks now = schedule.start() + *rc::gen::inRange<pace::Ticks>(0, std::uint64_t{1} << 40U);
        const auto count = schedule.due_count(now);
        RC_ASSERT(static_cast<std::int64_t>(now - schedule.due(count - 1)) >= 0);
        RC_ASSERT(static_cast<std::int64_t>(now - schedule.due(count)) < 0);
    }));
}

TEST_CASE("bursts begin at their interval, and their frames follow at the rate within") {  // R2544-17
    const auto schedule = pace::Schedule::bursts(1000, 1e9, 1e6, 16, 1e-3);
    CHECK(schedule.due_count(999) == 0);
    for (const std::uint64_t burst : {0U, 1U, 7U, 1'000'000U}) {
        const pace::Ticks begin = 1000 + burst * 1'000'000;
        for (const std::uint64_t i : {0U, 1U, 15U})
            CHECK(std::abs(static_cast<std::int64_t>(schedule.due(burst * 16 + i) - begin - i * 1000)) <= 1);
        CHECK(schedule.due_count(begin + 7'002) == burst * 16 + 8);
        CHECK(schedule.due_count(begin + 15'002) == burst * 16 + 16);
        CHECK(schedule.due_count(begin + 999'000) == burst * 16 + 16);  // silence
        CHECK(schedule.due_count(begin + 1'000'002) == burst * 16 + 17);
    }
}

TEST_CASE("the load changes without a pause") {  // R2544-29
    const auto schedule = pace::Schedule::two_loads(1000, 1e9, 1e6, 60, 5e5);
    for (const std::uint64_t k : {0U, 1U, 59U, 60U})
        CHECK(std::abs(static_cast<std::int64_t>(schedule.due(k) - 1000 - k * 1000)) <= 1);
    for (const std::uint64_t k : {61U, 62U, 1'000'000U})
        CHECK(std::abs(static_cast<std::int64_t>(schedule.due(k) - 61'000 - (k - 60) * 2000)) <= 1);
    CHECK(schedule.due_count(999) == 0);
    CHECK(schedule.due_count(61'002) == 61);
    CHECK(schedule.due_count(62'002) == 61);
    CHECK(schedule.due_count(63'002) == 62);
}

TEST_CASE(
    "of any shape and stream, as many frames are due as have their time behind them, and the streams are the whole") {
    CHECK(rc::check([] {
        const double ticks_per_second = *rc::gen::element(25e6, 1e9, 2.596e9);
        const double rate = *rc::gen::inRange(1, 100'000'000);
        const auto start = *rc::gen::arbitrary<pace::Ticks>();
        const auto frames = *rc::gen::inRange<std::uint64_t>(1, 5000);
        const double stretch = *rc::gen::inRange(100, 400) / 100.0;
        const auto whole = *rc::gen::arbitrary<bool>()
                               ? pace::Schedule::bursts(start, ticks_per_second, rate, frames,
                                                        static_cast<double>(frames) / rate * stretch)
                               : pace::Schedule::two_loads(start, ticks_per_second, rate, frames, rate / stretch);
        const auto streams = *rc::gen::inRange<std::uint64_t>(1, 5);
        const pace::Ticks now = start + *rc::gen::inRange<pace::Ticks>(0, std::uint64_t{1} << 36U);
        std::uint64_t sum = 0;
        for (std::uint64_t s = 0; s < streams; ++s) {
            const auto part = whole.stream(s, streams);
            const auto count = part.due_count(now);
            if (count != 0) RC_ASSERT(static_cast<std::int64_t>(now - part.due(count - 1)) >= 0);
            RC_ASSERT(static_cast<std::int64_t>(now - part.due(count)) < 0);
            RC_ASSERT(part.due(3) == whole.due(s + 3 * streams));
            sum += count;
        }
        RC_ASSERT(sum == whole.due_count(now));
    }));
}

TEST_CASE("an even schedule is the same in a Schedule") {
    const pace::EvenSchedule even{12'345, 2.596e9, 14'880'952.0};
    const pace::Schedule same{even};
    for (const std::uint64_t k : {0U, 1U, 1000U, 4'000'000'000U}) {
        CHECK(same.due(k) == even.due(k));
        CHECK(same.due_count(even.due(k)) == even.due_count(even.due(k)));
        CHECK(same.stream(2, 3).due(k) == even.stream(2, 3).due(k));
    }
}

TEST_CASE("a rate is limited by the line, and by a clock that cannot tell its frames apart") {
    constexpr double arm = 25e6;
    constexpr double usual = 2.6e9;
    const auto limit = run::rate_limit(100e9, 64, arm);
    CHECK(limit.is_of_line);
    CHECK(limit.fps == 148'809'523);  // R2544-16
    CHECK(run::rate_limit(10e9, 64, usual).fps == 14'880'952);
    CHECK(run::rate_limit(10e9, 1518, usual).fps == 812'743);
    const auto fast = run::rate_limit(1e12, 64, arm);
    CHECK_FALSE(fast.is_of_line);
    CHECK(fast.fps == 32 * arm);
    CHECK_FALSE(run::rate_limit(std::nullopt, 64, usual).is_of_line);
    CHECK(run::rate_limit(std::nullopt, 64, usual).fps == 32 * usual);
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
