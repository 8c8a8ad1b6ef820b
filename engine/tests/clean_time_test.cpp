// SPDX-License-Identifier: Apache-2.0
// Clean time: which frames are judged of a trial in which the tester, or its machine, was away now and then.
#include "tally/clean_time.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

#include "run/lapse_log.hpp"
#include "slow.hpp"
#include "tally/steady_loss.hpp"

namespace clean_time_test {

using namespace evenhand;
using tally::CleanTime;
using tally::Lapse;
using tally::LapseKind;
using tally::SliceDelays;

namespace {

constexpr double ticks_per_second = 1e9;
constexpr double capacity_fps = 100'000;
constexpr double on_the_way_s = 30e-6;

/// A device with one queue between a tester and itself, on a host that is away at times.
struct Bench {
    double load = 0.98;  // of the capacity
    double seconds = 4;
    double queue_frames = 500;
    double ring_frames = 256;  // of the tester's receiver
    double lost_share = 0;     // that the device loses at any load
    double late_s = 0;         // up to so much later than due a frame leaves now and then, which is no lapse
    std::vector<Lapse> stalls;

    struct Outcome {
        double clean_s = 0;
        std::uint64_t lost = 0;        // of all frames
        std::uint64_t lost_clean = 0;  // of those that are judged
        std::uint64_t clean_frames = 0;
        double behind_lapses_s = 0;
        std::uint64_t lost_behind_lapses = 0;
        double behind_strain_s = 0;
        std::uint64_t lost_behind_strain = 0;
        bool loses_steadily = false;
        std::vector<tally::LeftOut> left_out;
    };

    [[nodiscard]] double end_of_stall(LapseKind kind, double at_s) const {
        for (const auto& stall : stalls) {
            if (stall.kind == kind && stall.from_s <= at_s && at_s < stall.until_s) return stall.until_s;
        }
        return at_s;
    }

    /// `known_until_s`: of a look while frames are sent.
    [[nodiscard]] Outcome run() const {
        const double load_fps = load * capacity_fps;
        const auto frames = static_cast<std::uint64_t>(load_fps * seconds);
        const auto finer = static_cast<std::size_t>(seconds / 1e-3 / SliceDelays::slices);
        SliceDelays delays{finer};
        delays.begin(frames);
        std::vector<bool> came(frames);
        std::minstd_rand random{7};
        double free_s = 0;
        double ring_since_s = -1;
        double in_ring = 0;
        for (std::uint64_t k = 0; k < frames; ++k) {
            const double due_s = static_cast<double>(k) / load_fps;
            // For 1 in 20 of the time the sender is a little late.
            const double late_until_s = std::floor(due_s / 0.02) * 0.02 + late_s;
            const double sent_s = std::max(late_until_s, end_of_stall(LapseKind::sender_overdue, due_s));
            if ((free_s - sent_s) * capacity_fps > queue_frames) continue;
            if (lost_share > 0 && std::uniform_real_distribution{}(random) < lost_share) continue;
            free_s = end_of_stall(LapseKind::dut_away, std::max(free_s, sent_s)) + 1 / capacity_fps;
            const double arrives_s = free_s + on_the_way_s;
            const double taken_s = end_of_stall(LapseKind::receiver_away, arrives_s);
            if (taken_s > arrives_s) {
                if (ring_since_s != taken_s) ring_since_s = taken_s, in_ring = 0;
                if (++in_ring > ring_frames) continue;
            }
            came[k] = true;
            delays.note(k, static_cast<pace::Ticks>((taken_s - sent_s) * ticks_per_second));
        }
        tally::DelaysByTime by_time{.slice_s = seconds / static_cast<double>(SliceDelays::slices * finer),
                                    .ticks_per_second = ticks_per_second,
                                    .directions = {{&delays}}};
        CleanTime clean{by_time};
        for (auto stall : stalls) {
            if (stall.kind == LapseKind::dut_away) stall.from_s -= 1e-3;  // as a sleeper sees it
            clean.note(stall);
        }
        Outcome outcome;
        const auto parts = clean.look(seconds);
        outcome.left_out.assign(parts.begin(), parts.end());
        outcome.clean_s = tally::seconds_without(clean.left_out(), seconds);
        outcome.behind_lapses_s = tally::seconds_without(clean.lapsed(), seconds);
        outcome.behind_strain_s = tally::seconds_without(clean.strained(), seconds);
        const auto is_in = [](double due_s, const auto& in) {
            return std::ranges::any_of(in,
                                       [&](const auto& part) { return part.from_s <= due_s && due_s < part.until_s; });
        };
        for (std::uint64_t k = 0; k < frames; ++k) {
            const double due_s = static_cast<double>(k) / load_fps;
            const bool is_left_out = is_in(due_s, parts);
            outcome.lost_behind_lapses += static_cast<std::uint64_t>(!came[k] && !is_in(due_s, clean.lapsed()));
            outcome.lost_behind_strain += static_cast<std::uint64_t>(!came[k] && !is_in(due_s, clean.strained()));
            outcome.lost += static_cast<std::uint64_t>(!came[k]);
            outcome.clean_frames += static_cast<std::uint64_t>(!is_left_out);
            outcome.lost_clean += static_cast<std::uint64_t>(!came[k] && !is_left_out);
        }
        tally::SteadyLoss losses{seconds, 0};
        for (std::uint64_t k = 0; k < frames; ++k) {
            const auto window = static_cast<std::size_t>(static_cast<double>(k) / load_fps / losses.window_s());
            if (window < losses.windows()) losses.note(window, 1, static_cast<std::uint64_t>(!came[k]));
        }
        outcome.loses_steadily = losses.is_found(clean.lapsed(), seconds);
        return outcome;
    }
};

/// Stalls of 1 to 60 ms, every 0.2 to 0.8 s, of any kind.
std::vector<Lapse> draw_stalls(unsigned seed, double seconds) {
    std::mt19937 random{seed};
    const auto draw = [&](double from, double to) { return std::uniform_real_distribution{from, to}(random); };
    std::vector<Lapse> stalls;
    for (double at_s = draw(0.1, 0.5); at_s < seconds - 0.4;) {
        const double lasts_s = draw(0.001, 0.06);
        stalls.push_back({static_cast<LapseKind>(std::uniform_int_distribution{0, 2}(random)), at_s, at_s + lasts_s});
        at_s += lasts_s + draw(0.2, 0.8);
    }
    return stalls;
}

}  // namespace

TEST_CASE("a DUT has caught up with delays that are hardly longer than before: 50 us more, or 5 percent") {
    // Frames take 20 us, and behind the lapse so much longer for good.
    const auto until_s = [](double longer_us) {
        constexpr std::uint64_t frames = 40'000;
        constexpr double slice_s = 1e-3;
        constexpr std::size_t finer = 80;  // 4 s
        SliceDelays delays{finer};
        delays.begin(frames);
        for (std::uint64_t k = 0; k < frames; ++k)
            delays.note(k, static_cast<pace::Ticks>(1e3 * (k < frames / 4 ? 20 : 20 + longer_us)));
        tally::DelaysByTime by_time{
            .slice_s = slice_s, .ticks_per_second = ticks_per_second, .directions = {{&delays}}};
        CleanTime clean{by_time};
        clean.note({.kind = LapseKind::sender_overdue, .from_s = 1, .until_s = 1.1});
        const auto parts = clean.look(4);
        REQUIRE(parts.size() == 1);
        return parts[0].until_s;
    };
    CHECK(until_s(45) == doctest::Approx(1.1).epsilon(0.002));
    CHECK(until_s(60) > 1.19);  // as much time as the lapse took
}

namespace {

/// When a DUT has caught up after a lapse, if the frames that are due at a time have this delay, in microseconds.
double caught_up_s(const tally::Lapse& lapse, const std::function<double(double)>& delay_us) {
    constexpr std::uint64_t frames = 40'000;  // of 4 s
    constexpr std::size_t finer = 80;
    SliceDelays delays{finer};
    delays.begin(frames);
    for (std::uint64_t k = 0; k < frames; ++k)
        delays.note(k, static_cast<pace::Ticks>(1e3 * delay_us(static_cast<double>(k) / 1e4)));
    CleanTime clean{{.slice_s = 1e-3, .ticks_per_second = ticks_per_second, .directions = {{&delays}}}};
    clean.note(lapse);
    const auto parts = clean.look(4);
    REQUIRE(parts.size() == 1);
    return parts[0].until_s;
}

/// A queue that a lapse has filled, and that becomes shorter by 20 us in each millisecond.
double draining_us(double since_s) { return std::max(20.0, 1600 - 20e3 * since_s); }

}  // namespace

TEST_CASE("delays that an absence of the DUT's CPU made just before a lapse are not what it has to come back to") {
    for (const double away_s : {0.005, 0.02, 0.04}) {
        CAPTURE(away_s);
        // All frames of the absence arrive at its end.
        const auto until_s =
            caught_up_s({.kind = LapseKind::sender_overdue, .from_s = 1, .until_s = 1.004}, [&](double at_s) {
                if (at_s > 0.99 - away_s && at_s < 0.99) return 1e6 * (0.99 - at_s);
                return at_s < 1.004 ? 20.0 : draining_us(at_s - 1.004);
            });
        CHECK(until_s == doctest::Approx(1.004 + 0.0765).epsilon(0.005));
    }
}

TEST_CASE("an absence of the DUT's CPU after a lapse does not hide that its queue is still long") {
    const Lapse lapse{.kind = LapseKind::sender_overdue, .from_s = 1, .until_s = 1.004};
    const auto until_s = caught_up_s(lapse, [](double at_s) {
        if (at_s > 1.03 && at_s < 1.05) return 1e6 * (1.05 - at_s);
        return at_s < 1.004 ? 20.0 : draining_us(at_s - 1.004);
    });
    CHECK(until_s == doctest::Approx(1.004 + 0.0765).epsilon(0.005));
}

TEST_CASE(
    "a DUT with a lapse at the beginning, whose usual delays nobody knows, has caught up when they no longer fall") {
    const auto until_s = caught_up_s({.kind = LapseKind::sender_overdue, .from_s = 0.001, .until_s = 0.005},
                                     [](double at_s) { return draining_us(at_s - 0.005); });
    CHECK(until_s >= 0.005 + 0.079);
    CHECK(until_s < 0.005 + 0.079 + 0.05);
}

TEST_CASE("without a lapse nothing is left out") {
    const auto outcome = Bench{}.run();
    CHECK(outcome.left_out.empty());
    CHECK(outcome.clean_s == doctest::Approx(4));
    CHECK(outcome.lost_clean == 0);
}

TEST_CASE("below its capacity a device loses nothing that is judged, whatever its queue and the stalls") {
    constexpr unsigned seeds = tests::is_slow ? 2 : 40;
    std::uint64_t spoiled = 0;
    for (const double queue : {16.0, 500.0, 5'000.0}) {
        for (unsigned seed = 0; seed < seeds; ++seed) {
            CAPTURE(queue);
            CAPTURE(seed);
            Bench bench{.load = 0.9, .queue_frames = queue};
            bench.stalls = draw_stalls(seed, bench.seconds);
            const auto outcome = bench.run();
            CHECK(outcome.lost_clean == 0);
            CHECK(outcome.clean_s > 1);
            CHECK(std::ranges::is_sorted(outcome.left_out, {}, &tally::LeftOut::from_s));
            CHECK(std::abs(static_cast<double>(outcome.clean_frames) - outcome.clean_s * 0.9 * capacity_fps) <=
                  static_cast<double>(outcome.left_out.size()) + 1);
            spoiled += outcome.lost;
        }
    }
    CHECK(spoiled > 250 * seeds);  // else the stalls would not have mattered
}

TEST_CASE("beyond its capacity a device loses frames that are judged, and about as large a share as without stalls") {
    for (const double queue : {16.0, 500.0, 5'000.0}) {
        for (unsigned seed = 0; seed < (tests::is_slow ? 2 : 20); ++seed) {
            CAPTURE(queue);
            CAPTURE(seed);
            Bench bench{.load = 1.1, .queue_frames = queue};
            bench.stalls = draw_stalls(seed, bench.seconds);
            const auto outcome = bench.run();
            CHECK(outcome.clean_s > 1);
            const double share = static_cast<double>(outcome.lost_clean) / static_cast<double>(outcome.clean_frames);
            CHECK(share > 0.05);
            CHECK(share < 0.13);  // 0.1 / 1.1 of a queue that is full
        }
    }
}

TEST_CASE("what loses nothing behind lapses loses nothing in a quiet trial of as many seconds") {
    // Nearly as fast as its load comes, a device does not catch up in the whole trial: then this alone can be judged.
    constexpr unsigned seeds = tests::is_slow ? 1 : 10;
    std::size_t passed = 0;
    std::size_t open = 0;
    for (const double load : tests::few({0.9, 0.99, 0.999, 1.001, 1.01, 1.1})) {
        for (const double queue : tests::few({16.0, 500.0, 5'000.0, 50'000.0})) {
            for (unsigned seed = 0; seed < seeds; ++seed) {
                CAPTURE(load);
                CAPTURE(queue);
                CAPTURE(seed);
                Bench bench{.load = load, .queue_frames = queue};
                bench.stalls = draw_stalls(seed, bench.seconds);
                const auto outcome = bench.run();
                CHECK(outcome.behind_lapses_s >= outcome.clean_s);
                CHECK(outcome.lost_behind_lapses >= outcome.lost_clean);
                if (outcome.lost_behind_lapses != 0) continue;
                ++passed;
                open += static_cast<std::size_t>(outcome.clean_s < 0.8 * outcome.behind_lapses_s);
                CHECK(Bench{.load = load, .seconds = outcome.behind_lapses_s, .queue_frames = queue}.run().lost == 0);
            }
        }
    }
    CHECK(passed > (tests::is_slow ? 0 : 6 * seeds));
    CHECK((tests::is_slow || open > seeds / 2));
}

TEST_CASE("what loses nothing behind strain loses nothing in a quiet trial of as many seconds") {
    // Below its limit a device loses frames just behind a lapse, too, if bursts that are no lapse come to a full queue.
    constexpr unsigned seeds = tests::is_slow ? 1 : 10;
    std::size_t passed = 0;
    std::size_t only_so = 0;
    for (const double load : tests::few({0.9, 0.99, 0.995, 0.998, 1.001, 1.003, 1.01, 1.1})) {
        for (const double queue : tests::few({16.0, 250.0, 1'000.0, 5'000.0})) {
            for (unsigned seed = 0; seed < seeds; ++seed) {
                CAPTURE(load);
                CAPTURE(queue);
                CAPTURE(seed);
                Bench bench{.load = load, .queue_frames = queue, .late_s = 0.5e-3};
                bench.stalls = draw_stalls(seed, bench.seconds);
                const auto outcome = bench.run();
                CHECK(outcome.behind_strain_s >= doctest::Approx(outcome.clean_s));
                CHECK(outcome.behind_lapses_s >= outcome.behind_strain_s);
                CHECK(outcome.lost_behind_lapses >= outcome.lost_behind_strain);
                CHECK(outcome.lost_behind_strain >= outcome.lost_clean);
                if (outcome.lost_behind_strain != 0 || outcome.behind_strain_s < 1) continue;
                ++passed;
                only_so += static_cast<std::size_t>(outcome.lost_behind_lapses != 0 && outcome.clean_s < 2);
                CHECK(Bench{.load = load, .seconds = outcome.behind_strain_s, .queue_frames = queue}.run().lost == 0);
            }
        }
    }
    CHECK(passed > (tests::is_slow ? 0 : 6 * seeds));
    CHECK((tests::is_slow || only_so > seeds / 2));
}

TEST_CASE("an overloaded device loses all the time, one with a backlog does not, however often the sender is late") {
    // 4 ms of lateness every 0.2 s: a queue of 40 ms is nearly full for the whole trial, below the capacity, too.
    std::size_t not_clean = 0;
    for (const double load : tests::few({0.96, 0.98, 0.99, 0.995, 0.998, 1.005, 1.01, 1.02})) {
        for (const double queue : {500.0, 4'000.0}) {
            CAPTURE(load);
            CAPTURE(queue);
            Bench bench{.load = load, .seconds = tests::is_slow ? 3.0 : 8.0, .queue_frames = queue};
            for (double at_s = 0.1; at_s < bench.seconds - 0.2; at_s += 0.2)
                bench.stalls.push_back({LapseKind::sender_overdue, at_s, at_s + 0.004});
            bench.stalls.push_back({LapseKind::dut_away, 1.15, 1.25});
            const auto outcome = bench.run();
            CHECK(outcome.loses_steadily == (load > 1));
            not_clean += static_cast<std::size_t>(load > 1 && outcome.clean_s < bench.seconds / 2);
        }
    }
    CHECK(not_clean > 0);
}

TEST_CASE("a queue that is longer than the time between lapses is judged behind them, but not behind the receiver's") {
    // Each frame waits for longer than 0.2 s in a queue of 0.3 s, and a lapse comes every 0.2 s.
    const auto run = [](double load, LapseKind kind) {
        Bench bench{.load = load, .seconds = 8, .queue_frames = 30'000};
        bench.stalls.push_back({LapseKind::dut_away, 0.05, 0.28});  // fills most of it
        for (double at_s = 0.3; at_s < bench.seconds - 0.2; at_s += 0.2)
            bench.stalls.push_back({kind, at_s, at_s + 0.004});
        return bench.run();
    };
    for (const auto kind : {LapseKind::sender_overdue, LapseKind::dut_away}) {
        if (tests::is_slow && kind == LapseKind::dut_away) continue;
        const auto below = run(0.999, kind);
        CHECK(below.behind_lapses_s > 7);
        CHECK(!below.loses_steadily);
        const auto above = run(1.06, kind);
        CHECK(above.clean_s < 2);
        CHECK(above.loses_steadily);
    }
    // What the receiver missed was on its way for so long: nothing is left that it cannot have touched.
    CHECK(!run(1.06, LapseKind::receiver_away).loses_steadily);
}

TEST_CASE("losses all the time are known by a second of them, and only by those that are too many") {
    const std::vector<tally::LeftOut> none;
    tally::SteadyLoss losses{3, 0.01};
    REQUIRE(losses.windows() == 150);
    for (std::size_t window = 0; window < 50; ++window) losses.note(window, 100, window % 10 == 9 ? 1 : 2);
    CHECK(losses.is_found(none, 1.0));
    CHECK(!losses.is_found(none, 0.99));
    const std::vector<tally::LeftOut> part{{.from_s = 0.2, .until_s = 0.201, .kinds = {}}};
    CHECK(!losses.is_found(part, 1.0));
    for (std::size_t window = 50; window < 55; ++window) losses.note(window, 100, 2);
    CHECK(losses.is_found(part, 3));
    tally::SteadyLoss few{3, 0.01};
    for (std::size_t window = 0; window < 150; ++window) few.note(window, 100, window % 5 == 0 ? 1 : 2);
    CHECK(!few.is_found(none, 3));
}

TEST_CASE("a device that loses one frame in 1,000 at any load does so in what is judged") {
    for (unsigned seed = 0; seed < (tests::is_slow ? 3 : 10); ++seed) {
        Bench bench{.load = 0.7, .lost_share = 1e-3};
        bench.stalls = draw_stalls(seed, bench.seconds);
        const auto outcome = bench.run();
        const double share = static_cast<double>(outcome.lost_clean) / static_cast<double>(outcome.clean_frames);
        CHECK(share == doctest::Approx(1e-3).epsilon(0.4));
    }
}

TEST_CASE("left out is from the first frame in flight to where delays are as before, and little more") {
    // At 0.98 a queue of 3,000 frames takes 1.5 s to be empty again after a stall of 30 ms.
    Bench bench{.load = 0.98, .queue_frames = 5'000};
    bench.stalls = {{LapseKind::dut_away, 1.0, 1.03}};
    auto outcome = bench.run();
    REQUIRE(outcome.left_out.size() == 1);
    CHECK(outcome.left_out[0].from_s > 0.99);
    CHECK(outcome.left_out[0].from_s <= 0.999);
    CHECK(outcome.left_out[0].until_s == doctest::Approx(1.03 + 0.03 * 0.98 / 0.02).epsilon(0.05));
    CHECK(outcome.lost == 0);

    // A short queue was full, and is empty soon.
    bench = {.load = 0.5, .queue_frames = 100};
    bench.stalls = {{LapseKind::sender_overdue, 1.0, 1.03}};
    outcome = bench.run();
    REQUIRE(outcome.left_out.size() == 1);
    CHECK(outcome.left_out[0].until_s < 1.04);
    CHECK(outcome.lost > 0);
    CHECK(outcome.lost_clean == 0);
}

TEST_CASE("a second lapse before the device has caught up joins the first") {
    Bench bench{.load = 0.9, .queue_frames = 5'000};
    bench.stalls = {{LapseKind::dut_away, 1.0, 1.03}, {LapseKind::receiver_away, 1.1, 1.12}};
    auto outcome = bench.run();
    REQUIRE(outcome.left_out.size() == 1);
    CHECK(outcome.left_out[0].kinds == std::array{false, true, true});
    CHECK(outcome.lost_clean == 0);
    bench.stalls.back() = {LapseKind::receiver_away, 2.5, 2.52};
    outcome = bench.run();
    CHECK(outcome.left_out.size() == 2);
}

TEST_CASE("a lapse that meets frames of before an earlier series joins that") {
    // Delays are short until 1.1 s, and so long after 1.2 s that what came then was sent before the first lapse.
    SliceDelays delays{40};
    delays.begin(200'000);
    for (std::uint64_t k = 0; k < 200'000; ++k)
        delays.note(k, static_cast<pace::Ticks>((k < 115'000 ? 100e-6 : 0.4) * ticks_per_second));
    CleanTime clean{{.slice_s = 1e-3, .ticks_per_second = ticks_per_second, .directions = {{&delays}}}};
    clean.note({LapseKind::sender_overdue, 1.0, 1.005});
    clean.note({LapseKind::receiver_away, 1.12, 1.125});
    clean.note({LapseKind::dut_away, 1.16, 1.165});
    REQUIRE(clean.look(2.0).size() == 1);
    CHECK(clean.left_out()[0].from_s < 0.8);
    CHECK(clean.left_out()[0].kinds == std::array{true, true, true});
    CHECK(tally::seconds_without(clean.left_out(), 2.0) ==
          doctest::Approx(2.0 - clean.left_out()[0].until_s + clean.left_out()[0].from_s));
}

TEST_CASE("where nothing comes any more the device gets as much time again, and is judged then") {
    Bench bench{.load = 0.5, .queue_frames = 100, .lost_share = 1};
    bench.stalls = {{LapseKind::sender_overdue, 1.0, 1.1}};
    const auto outcome = bench.run();
    REQUIRE(outcome.left_out.size() == 1);
    CHECK(outcome.left_out[0].until_s == doctest::Approx(1.2).epsilon(0.01));
    CHECK(outcome.lost_clean == outcome.clean_frames);
    CHECK(outcome.clean_s == doctest::Approx(3.8).epsilon(0.01));
}

TEST_CASE("a look while frames are sent leaves out what is open until then, and the last look knows more") {
    SliceDelays delays{80};
    delays.begin(400'000);
    auto send_until = [&, k = std::uint64_t{0}](double seconds, double delay_s) mutable {
        for (; k < static_cast<std::uint64_t>(seconds * 100'000); ++k)
            delays.note(k, static_cast<pace::Ticks>(delay_s * ticks_per_second));
    };
    CleanTime clean{{.slice_s = 1e-3, .ticks_per_second = ticks_per_second, .directions = {{&delays}}}};
    send_until(1.0, 100e-6);
    CHECK(clean.look(1.0).empty());
    send_until(1.2, 5e-3);  // deep in a queue that the stall has filled
    clean.note({LapseKind::dut_away, 1.0, 1.02});
    send_until(1.22, 4e-3);
    REQUIRE(clean.look(1.05).size() == 1);
    CHECK(clean.left_out()[0].until_s == doctest::Approx(1.05));
    CHECK(tally::seconds_without(clean.left_out(), 1.05) == doctest::Approx(clean.left_out()[0].from_s));
    send_until(2.0, 100e-6);
    REQUIRE(clean.look(2.0).size() == 1);
    CHECK(tally::pieces_without(clean.left_out(), 2.0) == 2);
    // Its delays did not come down from one part to the next at first: it gets as much time again.
    CHECK(clean.left_out()[0].until_s == doctest::Approx(1.04).epsilon(0.01));
    CHECK(tally::seconds_without(clean.left_out(), 2.0) > 1.9);
}

TEST_CASE("a log joins lapses that follow at once, and a full one lasts on") {
    run::LapseLog log{2, 10};
    log.note(100, 200);
    log.note(205, 300);
    REQUIRE(log.size() == 1);
    CHECK(log.at(0).from == 100);
    CHECK(log.at(0).until == 300);
    log.note(400, 500);
    REQUIRE(log.size() == 2);
    log.note(900, 1000);
    REQUIRE(log.size() == 2);
    CHECK(log.at(1).from == 400);
    CHECK(log.at(1).until == 1000);
}

}  // namespace clean_time_test
