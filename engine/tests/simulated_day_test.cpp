// SPDX-License-Identifier: Apache-2.0
// Stations 3 to 7 over a whole day at the clock rates of real CPUs: no count, time or sum wraps. Time is driven by
// hand. R2544-06, R2544-07, R2544-15, R2544-19, R8219-12.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "contract/reply.hpp"
#include "contract/request.hpp"
#include "frame/frame_time.hpp"
#include "rig.hpp"
#include "run/early_stop.hpp"
#include "run/load.hpp"
#include "run/map_room.hpp"
#include "run/overdue_frames.hpp"
#include "run/so_far.hpp"
#include "slow.hpp"
#include "tally/delays.hpp"
#include "tally/together.hpp"
#include "tally/verdict.hpp"

namespace simulated_day_test {

using namespace evenhand;
using namespace evenhand::tests;
using Json = nlohmann::json;

namespace {

constexpr double day_s = 86'400;
constexpr double line_fps = 148'809'523.8;  // of 100 Gbit/s with 64 octets
constexpr std::uint64_t frames_of_day = 12'857'142'856'320;
constexpr std::uint64_t tolerance = static_cast<std::uint64_t>(1e-4 * 0x1p32);

/// A frame a second, sent, received 1 ms later and counted, by a tester whose counter runs at so many Hz.
template <IpVersion V>
struct Day {
    static constexpr std::uint64_t frames = 86'400;

    Day(Ticks hz, Ticks begin) : rig{{.frames = frames, .start = begin}}, hz{hz} {
        const pace::EvenSchedule schedule{begin, static_cast<double>(hz), 1};
        const auto ms = hz / 1000;
        const Ticks end = begin + frames * hz;
        rig.senders.clear();
        const auto shape =
            frame::make_template(rig.plan, frame::Layout<V>::smallest_frame_size, {.trial = trial}, left_mac, dut_mac);
        rig.senders.emplace_back(rig.left, 0,
                                 frame::TestFrameSource{shape, plan::FlowDraw{rig.plan, Direction::forward, 1}, {}},
                                 schedule, frames, run::Punctuality{.overdue_after = ms, .port_lag = tolerance}, end);
        auto& expected = *rig.expectation;
        expected.clock_skew = ms / 100;
        expected.residual_end = end + hz;
        expected.ring_lasts = 2048 * hz;
        expected.burst_lasts = run::receive_burst * hz;
        expected.schedule = schedule;
        expected.overdue_after = ms;
        expected.port_lag = tolerance;
        expected.delays = &tracks;
        expected.spread = &spread;
        rig.clock.time = begin;
        rig.receiver.arm(expected, rig.map, *rig.tally, begin);
        for (std::uint64_t k = 0; k < frames; ++k) {
            rig.clock.time = schedule.due(k) + (k == late_frame ? 20 * ms : 0);
            rig.receive();  // or the frame might have waited for the receiver all the second
            rig.send();
            rig.clock.time += k == unread_frame ? 20 * ms : ms;
            rig.receive();
        }
    }

    static constexpr std::uint64_t late_frame = 3600;
    static constexpr std::uint64_t unread_frame = 7200;
    Rig<V> rig;
    Ticks hz;
    tally::DelayTracks tracks{{.first = 0, .tag_first = 80'000, .tag_every = 1, .tagged = 10}, false};
    tally::DelaySpread spread;
};

template <IpVersion V>
void check_day() {
    // The counter of a CPU begins anywhere, also shortly before 48 bits end.
    for (const Ticks hz : tests::few({Ticks{1'000'000'000}, Ticks{2'600'000'000}, Ticks{5'000'000'000}})) {
        for (const Ticks begin : tests::few({Ticks{7} * hz, (Ticks{1} << 48U) - 40'000 * hz, Ticks{0} - 40'000 * hz})) {
            CAPTURE(hz);
            CAPTURE(begin);
            const auto day = std::make_unique<Day<V>>(hz, begin);
            const auto& got = day->rig.got();
            CHECK(day->rig.sent().offered_frames == Day<V>::frames);
            CHECK(day->rig.sent().overdue_frames == 1);
            CHECK(day->rig.sent().max_overdue == 20 * hz / 1000);
            CHECK(got.received_frames == Day<V>::frames);
            CHECK(damage_of(got) == Damage{});
            CHECK(got.left_out_frames == 2);  // the one that left late, and the one that waited for the receiver
            CHECK(got.latency.count() == Day<V>::frames - 2);
            CHECK(got.latency.min() == hz / 1000);
            CHECK(got.latency.max() == hz / 1000);
            CHECK(got.latency.mean() == doctest::Approx(static_cast<double>(hz) / 1000));
            constexpr std::size_t slices = tally::SliceDelays::slices;
            for (std::size_t s = 0; s < slices; ++s) {
                const auto& slice = got.delay_by_slice.all()[s];
                CHECK(slice.frames == Day<V>::frames / slices);
                CHECK(slice.max == (s == Day<V>::unread_frame * slices / Day<V>::frames ? hz / 50 : hz / 1000));
            }
            CHECK(day->tracks.tagged(9) == hz / 1000);
            CHECK(got.max_poll_gap < 2 * hz);
            CHECK(got.gap_excess[0] == 0);
            CHECK(day->rig.map.missing(0, Day<V>::frames) == 0);
        }
    }
}

/// What one of several testers replies of a day at line rate in which each frame took 1 ms.
tally::TrialResult long_result(double ticks_per_second) {
    tally::TrialResult r;
    r.tester = "a";
    r.trial = 1;
    r.started_at = "2026-11-25T12:00:00Z";
    r.frame_size = 64;
    r.intended_fps = line_fps;
    r.intended_duration_s = day_s;
    r.ticks_per_second = ticks_per_second;
    r.share = tally::Share{.first = 0, .streams = 1, .stride = 1};
    r.start = tally::StartTime{.intended_unix_ns = 1, .actual_unix_ns = 1};
    auto& d = r.directions.emplace_back(tally::DirectionResult{.direction = Direction::forward,
                                                               .intended_frames = frames_of_day,
                                                               .offered_frames = frames_of_day,
                                                               .offered_fps = line_fps,
                                                               .received_frames = frames_of_day,
                                                               .ring_frames = 2048});
    const auto delay = static_cast<std::uint64_t>(ticks_per_second / 1000);
    constexpr std::uint64_t parts = tally::SliceDelays::slices;
    for (std::uint64_t slice = 0; slice < parts; ++slice) {
        const std::uint64_t frames = frames_of_day / parts + (slice < frames_of_day % parts ? 1 : 0);
        d.latency.put(delay, frames);
        d.latency.add(frames, Wide{frames} * delay, delay, delay);
        d.delay_by_slice.add(slice, {.frames = frames, .sum = Wide{frames} * delay * 40, .min = delay, .max = delay});
    }
    return r;
}

}  // namespace

TEST_CASE("a day's frames are counted and timed as a second's are, at every clock rate and start of the counter") {
    SUBCASE("IPv4") { check_day<IpVersion::v4>(); }
    SUBCASE("IPv6") { check_day<IpVersion::v6>(); }
}

TEST_CASE("the mean of a day's delays at line rate is their mean, also among several testers (R8219-12)") {
    constexpr double hz = 3e9;
    auto r = long_result(hz);
    CHECK(r.directions[0].latency.count() == frames_of_day);
    CHECK(r.directions[0].latency.mean() == doctest::Approx(3e6));
    auto twice = std::make_unique<tally::LatencyHistogram>(r.directions[0].latency);
    twice->add(r.directions[0].latency);
    CHECK(twice->mean() == doctest::Approx(3e6));
    tally::judge(r);
    const auto reply = Json::parse(contract::write_trial(1, r));
    const auto check = [](const Json& forward) {
        CHECK(forward["latency"]["mean_ns"].get<double>() == doctest::Approx(1e6));
        CHECK(forward["latency"]["p50_ns"].get<double>() == doctest::Approx(1e6).epsilon(0.002));
        for (const auto& slice : forward["delay_by_slice"]) CHECK(slice[1].get<double>() == doctest::Approx(4e7));
    };
    check(reply["directions"]["forward"]);
    const Json clock{{"offset_us", 0}, {"uncertainty_us", 0}};
    const Json line{
        {"id", 2},
        {"request", "judge"},
        {"results", {{{"engine", "a"}, {"result", reply}, {"clock", {{"before", clock}, {"after", clock}}}}}}};
    const auto request = contract::read_request(line.dump());
    const auto judged = tally::judge_together(std::get<tally::TogetherRequest>(request.body));
    check(Json::parse(contract::write_judge(2, judged))["directions"]["forward"]);
}

TEST_CASE("a day at line rate has as many frames as it has, each in its tenth of a second") {
    const run::TrialRequest day{.rate_fps = line_fps, .duration_s = day_s};
    CHECK(run::frames_of(day) == frames_of_day);
    constexpr std::uint64_t tenths = 864'000;
    CHECK(run::frames_in_tenths(day, tenths) == frames_of_day);
    CHECK(run::frames_in_tenths(day, tenths + 1) == frames_of_day);
    for (std::uint64_t t = 1; t <= tenths; t += 997) {
        const auto before = static_cast<long double>(t) * static_cast<long double>(line_fps) / 10;
        const auto found = static_cast<long double>(run::frames_in_tenths(day, t));
        REQUIRE(std::abs(found - std::ceil(before)) <= 1);
    }
    tally::Losses losses;
    losses.take_unsent(frames_of_day, [&](std::uint64_t t) { return run::frames_in_tenths(day, t); });
    CHECK(losses.by_tenth().size() == tenths);
}

TEST_CASE("one overdue frame touches what it touches, and nothing hours later (R2544-15)") {
    constexpr Ticks hz = 3'000'000'000;
    constexpr double fps = 1e6;
    const auto touched_at = [&](run::OverdueFrames& overdue, const run::Expectation& expected, std::uint64_t k,
                                Ticks late) {
        const Ticks sent = expected.schedule.due(k) + late;
        return overdue.is_touched(k, frame::FrameTime{sent & frame::time_mask}.seen_at(sent + hz / 1000), expected);
    };
    const run::Expectation expected{.frames = tests::expected(tests::gateway_v4(), 64),
                                    .start = start,
                                    .schedule = pace::EvenSchedule{start, hz, fps},
                                    .overdue_after = hz / 10'000,
                                    .port_lag = tolerance};
    run::OverdueFrames overdue;
    CHECK_FALSE(touched_at(overdue, expected, 0, 0));
    CHECK(touched_at(overdue, expected, 1000, hz / 1000));
    CHECK(touched_at(overdue, expected, 2500, 0));
    for (std::uint64_t minute = 1; minute < std::uint64_t{24} * 60; ++minute)
        REQUIRE_FALSE(touched_at(overdue, expected, minute * 60'000'000, 0));
    CHECK(touched_at(overdue, expected, 86'400'000'000, hz / 1000));
}

TEST_CASE("what a port that is some ppm slow has made late after hours is not overdue, and a stall then is") {
    constexpr Ticks hz = 3'000'000'000;
    for (const double ppm : {1.0, 52.0, 99.0}) {
        CAPTURE(ppm);
        const run::Expectation expected{.frames = tests::expected(tests::gateway_v4(), 64),
                                        .start = start,
                                        .schedule = pace::EvenSchedule{start, hz, 1e4},
                                        .overdue_after = hz / 10'000,
                                        .port_lag = tolerance};
        run::OverdueFrames overdue;
        std::uint64_t touched = 0;
        // Ten frames of each second; now and then the port's ring takes one 50 us later.
        const auto due = [&](std::uint64_t k) { return expected.schedule.due(k); };
        const auto slip = [&](std::uint64_t k) {
            return static_cast<Ticks>(static_cast<double>(due(k) - start) * ppm * 1e-6);
        };
        constexpr std::uint64_t last = 864'000'000;
        for (std::uint64_t k = 0; k < last; k += 1000)
            touched += overdue.is_touched(k, due(k) + slip(k) + (k % 7000 == 0 ? hz / 20'000 : 0), expected) ? 1U : 0U;
        CHECK(touched == 0);
        CHECK(overdue.is_touched(last, due(last) + slip(last) + hz / 1000, expected));
        CHECK(overdue.is_touched(last + 5, due(last + 5) + slip(last + 5), expected));
        CHECK_FALSE(overdue.is_touched(last + 30, due(last + 30) + slip(last + 30), expected));
        // A port that is slower than may be is late, however slowly that came about.
        run::OverdueFrames slower;
        bool is_late = false;
        for (std::uint64_t k = 0; k < 2'000'000; k += 1000)
            is_late |=
                slower.is_touched(k, due(k) + static_cast<Ticks>(static_cast<double>(due(k) - start) * 2e-4), expected);
        CHECK(is_late);
    }
}

TEST_CASE("a port that falls behind by more than the record holds loses nothing in it (R2544-06, R2544-19)") {
    constexpr std::uint64_t held = 16'384;
    constexpr std::uint64_t frames = 4'000'000;
    constexpr std::uint64_t step = 1024;
    constexpr double slower = 0.005;  // 20,000 frames behind at the end
    run::TrialRequest request{.rate_fps = rate_fps, .duration_s = 4, .directions = {Direction::forward}};
    request.waits.residual_s = 0;
    request.limits.longest_overdue_us = 0;
    for (const std::uint64_t every : {std::uint64_t{0}, std::uint64_t{500}}) {
        CAPTURE(every);
        run::TrialRecords records;
        auto& map = records[Direction::forward].map;
        map = tally::SequenceMap{frames, false, held};
        std::vector<std::unique_ptr<run::WorkerTrial>> trials;
        trials.push_back(std::make_unique<run::WorkerTrial>());
        auto& told = trials[0]->so_far[Direction::forward];
        run::MapRoom room{request, trials, records};
        run::SoFar so_far{request, trials, records, start, second};
        run::EarlyStop early{request, records, start, second};
        run::Progress progress;
        std::uint64_t missing = 0;
        std::uint64_t not_held = 0;
        for (std::uint64_t sent = 0; sent < frames;) {
            const std::uint64_t end = std::min(frames, sent + step);
            for (; sent < end; ++sent) {
                if (every != 0 && sent % every == 0) {
                    ++missing;
                } else if (map.holds(sent)) {
                    map.mark(sent);
                } else {
                    ++not_held;
                }
            }
            told.sent_frames = told.sent_until = sent;
            const Ticks now = start + static_cast<Ticks>(static_cast<double>(sent * us) * (1 + slower));
            room.make();
            so_far.count(progress, now, 4);
            REQUIRE(progress.directions[Direction::forward]->lost_frames <= missing);
            REQUIRE(early.lost(now, {sent, 0}) <= missing);
        }
        CHECK(not_held == 0);
        CHECK(map.begin() > frames - held);
        CHECK(records[Direction::forward].losses.by_tenth().size() > 39);
        CHECK(map.missing_below_settled() + map.missing(map.settled(), frames) == missing);
        // When all has left and settled, all that is lost is told.
        so_far.count(progress, start + 5 * second, 4);
        CHECK(progress.directions[Direction::forward]->settled_frames == frames);
        CHECK(progress.directions[Direction::forward]->lost_frames == missing);
        CHECK(early.lost(start + 5 * second, {frames, 0}) <= missing);
    }
}

TEST_CASE("how far a direction was sent is what its slowest worker has told, and nothing before the first word") {
    std::vector<std::unique_ptr<run::WorkerTrial>> trials;
    trials.reserve(3);
    for (int i = 0; i < 3; ++i) trials.push_back(std::make_unique<run::WorkerTrial>());
    CHECK(run::sent_until(trials, Direction::forward) == 0);
    trials[0]->so_far[Direction::forward].sent_until = 900;
    trials[1]->so_far[Direction::forward].sent_until = 400;
    CHECK(run::sent_until(trials, Direction::forward) == 0);
    trials[2]->so_far[Direction::forward].sent_until = ~std::uint64_t{0};  // it sends nothing in this direction
    CHECK(run::sent_until(trials, Direction::forward) == 400);
    CHECK(run::sent_until(trials, Direction::reverse) == 0);
}

TEST_CASE("what had left some time ago is known to a few per cent of that time, at whatever rate it is looked at") {
    for (const Ticks step : {Ticks{1}, Ticks{7}, Ticks{100}, Ticks{2500}}) {
        CAPTURE(step);
        run::HadLeft had_left{1000};
        for (Ticks now = start; now < start + 100'000; now += step) {
            const auto found = had_left.note(now, now - start);  // a frame a tick
            const auto exact = now - start < 1000 ? 0 : now - start - 1000;
            REQUIRE(found <= exact);
            REQUIRE(found + 2 * step + 1000 / 30 >= exact);
        }
        for (Ticks later = 0; later < 5000; later += step) (void)had_left.note(start + 200'000 + later, 77'777);
        CHECK(had_left.note(start + 210'000, 77'777) == 77'777);
    }
    CHECK(run::HadLeft{1000}.note(start, run::HadLeft::all_due) == run::HadLeft::all_due);
}

TEST_CASE("the time of a tag is made whole within its horizon, on both sides of now") {
    using frame::FrameTime;
    for (const Ticks now :
         {Ticks{5}, Ticks{1} << 47U, (Ticks{1} << 48U) - 1, Ticks{1} << 48U, Ticks{1} << 63U, ~Ticks{0}}) {
        for (const Ticks ago : {Ticks{0}, Ticks{1}, Ticks{1} << 40U, FrameTime::horizon}) {
            CHECK(FrameTime{(now - ago) & frame::time_mask}.seen_at(now) == now - ago);
            if (ago != FrameTime::horizon) CHECK(FrameTime{(now + ago) & frame::time_mask}.seen_at(now) == now + ago);
        }
    }
}

}  // namespace simulated_day_test
