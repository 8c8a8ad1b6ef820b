// SPDX-License-Identifier: Apache-2.0
// A trial that can no longer pass stops (R2544-20, R2544-21): when, and what its loops do then.
#include "run/early_stop.hpp"

#include <doctest/doctest.h>

#include "rig.hpp"
#include "slow.hpp"

namespace early_stop_test {

using namespace evenhand;
using namespace evenhand::tests;

namespace {

constexpr double ticks_per_second = second;
constexpr std::uint64_t all = 60'000'000;  // of each direction: a minute

run::TrialRequest minute() {
    run::TrialRequest request{.rate_fps = rate_fps, .duration_s = 60, .stops_when_failed = true};
    request.limits.longest_overdue_us = 1e5;
    return request;
}

/// Records in which the first `frames` of both directions have arrived.
run::TrialRecords records_with(std::uint64_t frames) {
    run::TrialRecords records;
    for (auto& record : records) {
        record.map = tally::SequenceMap{all, false};
        for (std::uint64_t k = 0; k < frames; ++k) record.map.mark(k);
    }
    return records;
}

/// The same, and everything from `from` to `to` has arrived, too: the frames in between were overtaken.
run::TrialRecords records_with_gap(std::uint64_t frames, std::uint64_t from, std::uint64_t to) {
    auto records = records_with(frames);
    for (auto& record : records) {
        for (std::uint64_t k = from; k < to; ++k) record.map.mark(k);
    }
    return records;
}

Ticks at(double seconds) { return start + static_cast<Ticks>(seconds * ticks_per_second); }

}  // namespace

TEST_CASE("a frame is lost when the residual wait and the longest lateness are over, and no sooner (R2544-19)") {
    const auto request = minute();
    const auto records = records_with_gap(1'000'000, 3'100'000, 3'101'000);  // frame 1,000,000 is due after a second
    run::EarlyStop early{request, records, start, ticks_per_second};
    CHECK_FALSE(early.look(start - 1).has_value());
    CHECK_FALSE(early.look(at(1)).has_value());
    CHECK_FALSE(early.look(at(3.1)).has_value());
    const auto frames = early.look(at(3.2));
    REQUIRE(frames.has_value());
    CHECK(*frames == 3'250'000);
}

TEST_CASE("what the whole trial may lose is counted over its whole length and all directions") {
    auto request = minute();
    request.limits.loss_ratio = 0.01;  // 1,200,000 frames, 600,000 of each direction if both lose all
    const auto records = records_with_gap(1'000'000, 3'600'000, 3'601'000);
    SUBCASE("both directions") {
        run::EarlyStop early{request, records, start, ticks_per_second};
        CHECK_FALSE(early.look(at(3.7)).has_value());
        CHECK(early.look(at(3.8)).has_value());
    }
    SUBCASE("one direction") {
        request.directions = {Direction::reverse};
        run::EarlyStop early{request, records, start, ticks_per_second};
        CHECK_FALSE(early.look(at(3.7)).has_value());
        CHECK(early.look(at(3.8)).has_value());
    }
}

TEST_CASE("a slower direction may lose the less, and its frames are due later") {
    auto request = minute();
    request.rate_parts = {1, 0.25};
    request.limits.loss_ratio = 0.01;  // 750,000 frames: one percent of 60 and of 15 million
    const auto records = records_with_gap(1'000'000, 3'600'000, 3'601'000);
    run::EarlyStop early{request, records, start, ticks_per_second};
    CHECK(early.allowed() == doctest::Approx(750'000));
    // Frame 1,000,000 of the reverse direction is due after 4 s, so that none of its is lost before 6.1 s.
    CHECK_FALSE(early.look(at(3.8)).has_value());
    CHECK(early.lost(at(3.8)) == doctest::Approx(690'000).epsilon(0.001));
    CHECK(early.look(at(3.9)).has_value());
}

TEST_CASE("looking often counts no frame twice") {
    auto request = minute();
    request.limits.loss_ratio = 0.01;
    const auto records = records_with_gap(1'000'000, 2'000'000, 3'700'000);  // 1,000,000 of each direction are lost
    request.limits.loss_ratio = 0.02;
    run::EarlyStop early{request, records, start, ticks_per_second};
    for (double seconds = 0; seconds < 3.7; seconds += 0.02) CHECK_FALSE(early.look(at(seconds)).has_value());
}

TEST_CASE("a silence is no loss, however long it lasts: nothing has overtaken what is missing (R2544-19)") {
    const auto request = minute();
    for (const double wait_s : {0.1, 2.0}) {
        auto patient = request;
        patient.waits.residual_s = wait_s;
        for (const double stall_s : {0.7, 2.5, 5.0, 10.0}) {
            if (tests::is_slow && stall_s > 3) continue;  // the queue behind it is sent on frame by frame
            auto records = records_with(1'000'000);
            run::EarlyStop early{patient, records, start, ticks_per_second};
            for (double now_s = 1; now_s < 1 + stall_s; now_s += 0.02) REQUIRE_FALSE(early.look(at(now_s)).has_value());
            // The queue is sent on in order, at twice the load; looks come in between.
            std::uint64_t next = 1'000'000;
            for (double now_s = 1 + stall_s; now_s < 1 + 2 * stall_s + 0.1; now_s += 0.02) {
                const auto sent = static_cast<std::uint64_t>(now_s * rate_fps);
                for (const auto end = std::min(sent, next + 40'000); next < end; ++next) {
                    for (auto& record : records) record.map.mark(next);
                }
                REQUIRE_FALSE(early.look(at(now_s)).has_value());
            }
        }
    }
}

TEST_CASE("a silence of one direction hides no loss of the other, and what was lost in it is counted once it ends") {
    const auto request = minute();
    for (const auto direction : plan::both_directions) {
        auto records = records_with(1'000'000);
        run::EarlyStop early{request, records, start, ticks_per_second};
        CHECK_FALSE(early.look(at(6)).has_value());
        records[direction].map.mark(5'900'000);
        CHECK(early.look(at(6.02)).has_value());
    }
}

TEST_CASE("one tester among several counts its own losses by their places, and ends when it is told to") {
    auto request = minute();
    request.limits.loss_ratio = 0.01;
    // This one of two testers has the odd frames: its own frames 1,000,000 to 1,549,999 are missing.
    const frame::TesterShare own{1, 1, 2};
    run::TrialRecords records;
    for (auto& [share, map, losses, delays, order] : records) {
        share = own;
        map = tally::SequenceMap{own.count(all), false};
        for (std::uint64_t k = 0; k < 1'000'000; ++k) map.mark(k);
        for (std::uint64_t k = 1'550'000; k < 1'551'000; ++k) map.mark(k);
    }
    run::EarlyStop early{request, records, start, ticks_per_second};
    CHECK(early.allowed() == 1'200'000);  // of all testers
    CHECK(early.lost(start - 1) == 0);
    CHECK(early.lost(at(4.1)) == 0);
    // Frame 2,000,001 of the direction is its own frame 1,000,000, and is due after two seconds.
    CHECK(early.lost(at(4.2)) == 2 * 45'000);
    CHECK_FALSE(early.end(at(59.96), 0).has_value());
    CHECK_FALSE(early.end(at(5), 60).has_value());
    CHECK(early.end(at(5), 5.5) == 5'500'000);
    CHECK(early.end(at(5), 4) == 5'050'000);  // every worker has to hear of it
}

TEST_CASE("nothing is stopped that ends by itself") {
    if (tests::is_slow) return;  // 58 million marks
    auto request = minute();
    const auto records = records_with(58'000'000);
    run::EarlyStop early{request, records, start, ticks_per_second};
    CHECK_FALSE(early.look(at(60)).has_value());
}

TEST_CASE_TEMPLATE("a sender ends after so many frames, and a receiver's residual wait earlier", TheRig, Rig4, Rig6) {
    TheRig rig;
    auto& sender = rig.senders.front();
    rig.run_until(start + 300 * us);
    sender.end_after(500, start + 600 * us);
    rig.receiver.end_by(start + 550 * us);
    rig.run_until(start + 900 * us);
    CHECK(rig.offered() == 500);
    CHECK(sender.frames() == 500);
    CHECK(rig.got().received_frames == 500);
    SUBCASE("frames that are written are sent") {
        TheRig late;
        late.run_until(start + 300 * us);
        late.senders.front().end_after(100, late.deadline);
        late.run();
        CHECK(late.offered() == late.senders.front().frames());
        CHECK(late.offered() >= 300);
        CHECK(late.offered() < 1000);
        CHECK(late.got().received_frames == late.offered());
    }
    SUBCASE("a frame after the earlier end is late") {
        TheRig slow;
        slow.run_until(start + 300 * us);
        slow.receiver.end_by(start + 350 * us);
        slow.run();
        CHECK(slow.got().received_frames < 360);
        CHECK(slow.got().late_frames == 1000 - slow.got().received_frames);
    }
}

}  // namespace early_stop_test
