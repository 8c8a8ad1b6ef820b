// SPDX-License-Identifier: Apache-2.0
// Forward: when frames came, of which only is known at which look they were found.
#include <doctest/doctest.h>

#include <array>
#include <cstddef>

#include "forward/arrival_times.hpp"

namespace arrival_times_test {

using namespace evenhand::router;

namespace {

constexpr Ticks us = 1000;  // a tick is 1 ns
constexpr Ticks ms = 1000 * us;
constexpr Ticks second = 1000 * ms;
constexpr unsigned full = ArrivalTimes::most_of_look;
using Came = FramesByPort;

/// Looks every 100 us up to `until`, each of which finds so many frames.
void look_until(ArrivalTimes& times, Ticks until, const Came& came) {
    for (Ticks now = times.last_look() + 100 * us; now <= until; now += 100 * us)
        (void)times.look(came, times.most(now), now);
}

}  // namespace

TEST_CASE("frames of a look came evenly since the look before, the last of them just now") {
    ArrivalTimes times{second, true};
    (void)times.look({0, 0}, full, 10 * us);
    const auto span = times.look({4, 1}, full, 18 * us);
    CHECK(span.from == 10 * us);
    CHECK(span.until == 18 * us);
    const double spacing = span.spacing(4);
    CHECK(span.arrival(0, spacing) == 12 * us);
    CHECK(span.arrival(3, spacing) == 18 * us);
    CHECK(span.arrival(0, span.spacing(1)) == 18 * us);
    CHECK(span.spacing(0) == 0);
    CHECK(times.last_look() == 18 * us);
}

TEST_CASE("after more than a millisecond a look may take as much as a ring holds") {
    ArrivalTimes times{second, true};
    (void)times.look({0, 0}, full, ms);
    CHECK(times.most(2 * ms) == full);
    CHECK(times.most(2 * ms + 1) == ArrivalTimes::most_after_absence);
    // Where nothing depends on when frames came, there is no reason to take so many.
    ArrivalTimes careless{second, false};
    (void)careless.look({0, 0}, full, ms);
    CHECK(careless.most(second) == full);
}

TEST_CASE("what is found after an absence came all along, however much it is") {
    ArrivalTimes times{second, true};
    look_until(times, 20 * ms, {50, 50});
    const Ticks now = 23 * ms;
    const auto most = times.most(now);
    REQUIRE(most == ArrivalTimes::most_after_absence);
    const auto span = times.look({1500, 3000}, most, now);
    CHECK(span.from == 20 * ms);
    CHECK(span.until == 23 * ms);
    CHECK(span.arrival(749, span.spacing(1500)) == 21'500 * us);
    CHECK(span.arrival(1499, span.spacing(3000)) == 21'500 * us);
}

TEST_CASE("a look that left frames behind reaches as far as its own frames do at the rate of late") {
    ArrivalTimes times{second, true};
    look_until(times, 20 * ms, {50, 10});  // a frame each 2 us, and one each 10 us
    const auto span = times.look({full, 0}, full, 22 * ms);
    CHECK(span.from == 20 * ms);
    CHECK(span.until == 20 * ms + 2 * us * full);
    // What was left behind came later: the next look begins where this one ended.
    const auto next = times.look({full, 0}, full, 22 * ms + 10 * us);
    CHECK(next.from == span.until);
    CHECK(next.until == 20 * ms + 2 * us * 2 * full);
    // But nothing comes later than now.
    (void)times.look({full, 0}, full, 22 * ms + 20 * us);
    CHECK(times.look({full, 0}, full, 22 * ms + 30 * us).until == 22 * ms + 30 * us);
}

TEST_CASE("of two ports with frames left behind, the one that reaches less far decides") {
    ArrivalTimes times{second, true};
    look_until(times, 20 * ms, {50, 10});
    CHECK(times.look({full, full}, full, 30 * ms).until == 20 * ms + 2 * us * full);
}

TEST_CASE("before a rate is known, a look that left frames behind reaches to now") {
    ArrivalTimes times{second, true};
    CHECK(times.look({full, 0}, full, 500 * us).until == 500 * us);
}

TEST_CASE("a rate is taken over ten milliseconds whose ends left nothing behind") {
    ArrivalTimes times{second, true};
    look_until(times, 20 * ms, {50, 0});  // a frame each 2 us
    // 5 ms of ten times as many are too short to be a rate, and end with a look that left frames behind.
    look_until(times, 25 * ms, {200, 0});
    CHECK(times.look({full, 0}, full, 40 * ms).until == 25 * ms + 2 * us * full);
    // When nothing is left, the span ends, and all its frames count: 50 looks of 200, one of 256 and one of 44.
    (void)times.look({44, 0}, full, 45 * ms);
    const double spacing = 25.0 * ms / (50 * 200 + full + 44);
    const auto span = times.look({full, 0}, full, 50 * ms);
    CHECK(span.from == 45 * ms);
    CHECK(span.until == 45 * ms + static_cast<Ticks>(full * spacing));
}

TEST_CASE("a router that is away because it took so many does not take so many again and again") {
    ArrivalTimes times{second, true};
    Ticks now = 0;
    for (int look = 0; look < 4; ++look) {
        now += 2 * ms;
        const auto most = times.most(now);
        CHECK(most == ArrivalTimes::most_after_absence);
        (void)times.look({5000, 0}, most, now);
    }
    now += 2 * ms;
    CHECK(times.most(now) == full);
    (void)times.look({full, 0}, full, now);  // it may have left some
    CHECK(times.most(now + 2 * ms) == full);
    (void)times.look({full - 1, 0}, full, now + ms);  // it left none
    CHECK(times.most(now + 4 * ms) == ArrivalTimes::most_after_absence);
}

}  // namespace arrival_times_test
