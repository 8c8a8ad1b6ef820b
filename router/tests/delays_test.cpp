// SPDX-License-Identifier: Apache-2.0
// Forward: delays and stalls, which are lower bounds however busy the host is.
#include <doctest/doctest.h>

#include "bench.hpp"
#include "config/config.hpp"
#include "config/delays.hpp"
#include "forward/forwarder.hpp"
#include "frame/reader.hpp"
#include "octets.hpp"
#include "plans.hpp"

namespace delays_test {

using namespace evenhand;
using namespace evenhand::tests::forwarding;

namespace {

/// Frames that came out until `end`, and when, looked at each microsecond.
std::vector<Ticks> departures(Bench& bench, unsigned port, Ticks end) {
    std::vector<Ticks> left;
    for (; bench.now < end; bench.now += us) {
        bench.turn();
        left.insert(left.end(), bench.take_test_frames(port).size(), bench.now);
    }
    return left;
}

}  // namespace

TEST_CASE("the extra delay is kept to the turn") {
    Bench bench{std::nullopt, {}, 250 * us};
    bench.introduce();
    bench.send(0, test_frames<IpVersion::v4>(tests::gateway_v4(1), plan::Direction::forward, 1)[0]);
    bench.turn();
    bench.run(249 * us);
    CHECK(bench.take_test_frames(1).empty());
    bench.run(3 * us);
    CHECK(bench.take_test_frames(1).size() == 1);
    CHECK(bench.counters().model.overdue_frames == 0);  // what was to wait is not late
}

TEST_CASE("every n-th frame takes longer by as much as was said, and no other") {
    Bench bench{{.extra_delay = 250 * us, .longer_delay = 500 * us, .longer_every = 3}};
    bench.introduce();
    for (const auto& f : test_frames<IpVersion::v4>(tests::gateway_v4(1), plan::Direction::forward, 9))
        bench.send(0, f);
    bench.turn();
    bench.run(249 * us);
    CHECK(bench.take_test_frames(1).empty());
    bench.run(3 * us);
    CHECK(bench.take_test_frames(1).size() == 6);
    bench.run(497 * us);
    CHECK(bench.take_test_frames(1).empty());
    bench.run(3 * us);
    const auto longer = bench.take_test_frames(1);
    REQUIRE(longer.size() == 3);
    for (std::size_t i = 0; i < 3; ++i) CHECK(number_of(longer[i]) == 3 * i + 2);
    CHECK(bench.counters().model.overdue_frames == 0);
}

TEST_CASE("in a stall nothing leaves, so many frames as were said wait for its end, and the others are lost") {
    Bench bench{{.stalls = {.every = second / 10, .length = 20'000 * us, .queue_frames = 5}}};
    bench.introduce();
    const auto frames = test_frames<IpVersion::v6>(tests::gateway_v6(1), plan::Direction::forward, 200);
    std::vector<Ticks> came;  // since the router began, when a frame came out
    const Ticks began = bench.now;
    for (std::size_t i = 0; i < 205; ++i) {  // one each millisecond
        if (i < frames.size()) bench.send(0, frames[i]);
        for (int j = 0; j < 10; ++j) {
            bench.run(100 * us);
            for (std::size_t n = bench.take_test_frames(1).size(); n != 0; --n) came.push_back(bench.now - began);
        }
    }
    CHECK(bench.counters().interfaces[0].stalled_frames == 2 * 15);
    CHECK(came.size() == 200 - 2 * 15);
    for (const Ticks at : came) CHECK((at % (second / 10) <= 80'100 * us || at % (second / 10) >= 99'900 * us));
}

TEST_CASE("no frame leaves before its delay has passed since the look that found it, with elements or without") {
    constexpr Ticks delay = 3700 * us;
    for (const bool has_elements : {false, true}) {
        CAPTURE(has_elements);
        Bench bench{has_elements ? std::optional{model_of(1, 1000, 64)} : std::nullopt, {}, delay};
        const Ticks service = has_elements ? 1000 * us : 0;
        bench.introduce();
        const auto frames = test_frames<IpVersion::v6>(tests::gateway_v6(1), plan::Direction::forward, 20);
        bench.run(100 * us);
        // The router is away for 5 ms, and all of them come at the end.
        bench.now += 5000 * us;
        const Ticks came = bench.now;
        for (const auto& f : frames) bench.send(0, f);
        const auto left = departures(bench, 1, came + 30'000 * us);
        REQUIRE(left.size() == frames.size());
        CHECK(left.front() >= came + delay + service);
        CHECK(left.front() <= came + delay + service + us);
        CHECK(std::ranges::is_sorted(left));
        // By the model they came all along, so most of them are late, and that is told.
        CHECK(bench.counters().model.overdue_frames > (has_elements ? 2 : 15));
        CHECK(bench.counters().model.longest_overdue > 900 * us);
    }
}

TEST_CASE("frames that come while the CPU is away between the clock and the ports are found when it is back") {
    constexpr Ticks delay = 1000 * us;
    for (const bool has_elements : {false, true}) {
        CAPTURE(has_elements);
        Bench bench{has_elements ? std::optional{model_of(1, 1e6, 8)} : std::nullopt, {}, delay};
        bench.introduce();
        bench.run(100 * us);
        const auto frames = test_frames<IpVersion::v4>(tests::gateway_v4(1), plan::Direction::forward, 2000);
        int looks = 0;
        bench.forwarder().turn([&] {
            if (++looks == 1) {
                for (const auto& f : frames) bench.send(0, f);
                return bench.now;
            }
            return bench.now + 4000 * us;
        });
        CHECK(looks == (has_elements ? 3 : 2));
        bench.now += 4000 * us;
        const Ticks came = bench.now;
        const auto left = departures(bench, 1, came + 2000 * us);
        REQUIRE(left.size() == frames.size());  // half of what the element serves in 4 ms
        CHECK(left.front() >= came + delay);
        CHECK(bench.counters().model.longest_gap >= 3900 * us);
    }
}

TEST_CASE("a frame that came before a stall and is due in it waits for its end, as many as were said") {
    constexpr Ticks every = second / 10;
    for (const unsigned in : {0U, 1U}) {
        Bench bench{{.extra_delay = 30'000 * us, .stalls = {.every = every, .length = 20'000 * us, .queue_frames = 5}}};
        const Ticks began = bench.now;
        bench.introduce();
        const auto direction = in == 0 ? plan::Direction::forward : plan::Direction::reverse;
        const auto frames = test_frames<IpVersion::v6>(tests::gateway_v6(1), direction, 100);
        std::vector<Ticks> left;
        for (const auto& f : frames) {  // one each millisecond
            bench.send(in, f);
            for (const Ticks at : departures(bench, 1 - in, bench.now + 1000 * us)) left.push_back(at - began);
        }
        for (const Ticks at : departures(bench, 1 - in, bench.now + 40'000 * us)) left.push_back(at - began);
        CHECK(bench.counters().interfaces[in].stalled_frames == 15);
        CHECK(left.size() == frames.size() - 15);
        for (const Ticks at : left) CHECK((at % every < 80'000 * us || at % every >= every - us));
        CHECK(std::ranges::count_if(left, [](Ticks at) { return at >= every - us && at <= every; }) >= 5);
    }
}

TEST_CASE("what a busy router finds late does not leave in a stall that has begun meanwhile") {
    constexpr Ticks every = second / 10;
    Bench bench{{.stalls = {.every = every, .length = 20'000 * us, .queue_frames = 64}}};
    const Ticks began = bench.now;
    bench.introduce();
    bench.run(70'000 * us - (bench.now - began), 10 * us);
    for (const auto& f : test_frames<IpVersion::v4>(tests::gateway_v4(1), plan::Direction::forward, 10))
        bench.send(0, f);
    bench.now = began + 85'000 * us;
    CHECK(departures(bench, 1, began + every).empty());
    CHECK(departures(bench, 1, began + every + 2 * us).size() == 10);
}

TEST_CASE("what was due before a stall and is looked at in it waits for its end, also if others come just then") {
    constexpr Ticks every = second / 10;
    Bench bench{{.extra_delay = 10'000 * us, .stalls = {.every = every, .length = 20'000 * us, .queue_frames = 64}}};
    const Ticks began = bench.now;
    bench.introduce();
    bench.run(65'000 * us - (bench.now - began), 10 * us);
    const auto frames = test_frames<IpVersion::v6>(tests::gateway_v6(1), plan::Direction::forward, 10);
    for (std::size_t i = 0; i < 5; ++i) bench.send(0, frames[i]);
    bench.turn();  // due at 75 ms, but nobody looks then
    for (std::size_t i = 5; i < 10; ++i) bench.send(0, frames[i]);
    bench.now = began + 85'000 * us;
    CHECK(departures(bench, 1, began + every).empty());
    CHECK(departures(bench, 1, began + every + 2 * us).size() == 10);
}

TEST_CASE("there is room for what the delays hold at the load that is stated, and no frame that should wait is lost") {
    using namespace evenhand::router;
    RouterConfig config;
    config.ports.resize(4);
    CHECK(room_of(config).of_port == largest_ring);
    CHECK(room_of(config).in_total == 4 * largest_ring);
    config.extra_delay_us = 1e6;
    CHECK(room_of(config).of_port == largest_ring + 100'000);
    CHECK(room_of(config).in_total == 4 * (largest_ring + 100'000));
    config.longer_delay = {.every = 4, .us = 2e6};
    CHECK(room_of(config).of_port == largest_ring + 150'000);
    config.delayed_load_fps = 1000;
    CHECK(room_of(config).of_port == largest_ring + 1500);
    config.stall.queue_frames = 100;
    CHECK(room_of(config).of_port == largest_ring + 1600);
    CHECK(room_of(config).in_total == 4 * (largest_ring + 1600));
    // The default is the load that the elements serve, whichever port it came to, unless a lower one is stated.
    config.model.emplace(
        ModelConfig{.spread = {.hash = HashType::addresses, .is_symmetric = false, .key = {}, .table = {}},
                    .elements = {.count = 10, .rate_fps = 2000, .queue_frames = 98}});
    CHECK(room_of(config).in_total == 4 * (largest_ring + 1600) + 1000);
    config.delayed_load_fps.reset();
    CHECK(room_of(config).of_port == largest_ring + 1000 + 30'000 + 100);
    CHECK(room_of(config).in_total == 4 * (largest_ring + 100) + 1000 + 30'000);
}

}  // namespace delays_test
