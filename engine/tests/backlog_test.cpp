// SPDX-License-Identifier: Apache-2.0
// Station 5: what waited in a ring that nobody polled, and frames that left overdue.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "rig.hpp"
#include "run/overdue_frames.hpp"
#include "run/receiver_expectation.hpp"
#include "run/ring_backlog.hpp"
#include "tally/tally.hpp"

namespace backlog_test {

using namespace evenhand;
using pace::Ticks;

namespace {

constexpr std::size_t frame_size = 64;
constexpr Ticks per_frame = 10;
constexpr std::uint64_t ring_frames = 1024;
constexpr Ticks begin = 1'000'000;

run::Expectation expectation(Ticks residual_end) {
    return {.frames = tests::expected(tests::gateway_v4(), frame_size),
            .start = begin,
            .residual_end = residual_end,
            .ring_lasts = ring_frames * per_frame,
            .burst_lasts = run::receive_burst * per_frame};
}

/// A receive ring into which a frame comes every per_frame ticks, and the books that a receiver keeps of it.
class Ring {
   public:
    explicit Ring(run::Expectation expected) : expected_{std::move(expected)} {}

    /// After so many ticks; takes what a driver hands over at once, `most` at the most. Returns how many.
    unsigned poll_after(Ticks gap, unsigned most = run::receive_burst) {
        const std::uint64_t before = now_ / per_frame;
        now_ += gap;
        const std::uint64_t comes = waiting_ + now_ / per_frame - before;
        if (comes > ring_frames) {
            lost_frames_ += comes - ring_frames;
            ++overruns_;
        }
        waiting_ = std::min(comes, ring_frames);
        const auto n = static_cast<unsigned>(std::min<std::uint64_t>(most, waiting_));
        waiting_ -= n;
        backlog_.note_poll(now_, n, expected_, *tally_);
        return n;
    }

    void empty() {
        while (poll_after(1) != 0) {}
    }

    [[nodiscard]] Ticks excess(std::size_t share = 0) const { return tally_->gap_excess[share]; }
    [[nodiscard]] Ticks max_poll_gap() const { return tally_->max_poll_gap; }
    [[nodiscard]] std::uint64_t lost_frames() const { return lost_frames_; }
    [[nodiscard]] std::uint64_t overruns() const { return overruns_; }
    [[nodiscard]] bool is_catching_up() const { return backlog_.is_catching_up(); }
    [[nodiscard]] bool is_read_late() const { return backlog_.is_read_late(); }

   private:
    run::Expectation expected_;
    std::unique_ptr<tally::ReceiverTally> tally_ = std::make_unique<tally::ReceiverTally>();
    Ticks now_ = begin;
    run::RingBacklog backlog_{begin};
    std::uint64_t waiting_ = 0;
    std::uint64_t lost_frames_ = 0;
    std::uint64_t overruns_ = 0;
};

constexpr Ticks forever = begin + (Ticks{1} << 40U);

}  // namespace

TEST_CASE("a ring lost no more than its books say, whenever it was polled") {
    CHECK(rc::check([] {
        const auto gaps = *rc::gen::container<std::vector<Ticks>>(
            rc::gen::oneOf(rc::gen::inRange<Ticks>(1, 700), rc::gen::inRange<Ticks>(1, 40'000)));
        // virtio hands over up to three fewer than were asked for, other drivers half of them.
        const auto most = *rc::gen::element(64U, 63U, 62U, 61U, 32U, 29U);
        Ring ring{expectation(forever)};
        // And now and then one ends where the ring of its descriptors does, never twice in a row.
        constexpr std::size_t a_round = 5;
        for (std::size_t i = 0; i < gaps.size(); ++i) {
            const bool is_cut = i % a_round == a_round - 1;
            ring.poll_after(gaps[i], is_cut ? 1 + static_cast<unsigned>(gaps[i] % (most - 1)) : most);
        }
        // What is not worth remembering, and the frame that comes in the very tick of a poll.
        constexpr Ticks each = (run::receive_burst / 2 + 1) * per_frame;
        RC_ASSERT(ring.lost_frames() * per_frame <= ring.excess() + ring.overruns() * each);
    }));
}

TEST_CASE("gaps that a ring takes cost nothing, however many there are") {
    CHECK(rc::check([] {
        const auto gaps =
            *rc::gen::container<std::vector<Ticks>>(rc::gen::inRange<Ticks>(1, ring_frames * per_frame - 100));
        Ring ring{expectation(forever)};
        for (const Ticks gap : gaps) {
            ring.poll_after(gap);
            ring.empty();
        }
        RC_ASSERT(ring.lost_frames() == 0);
        RC_ASSERT(ring.excess() == 0);
    }));
}

TEST_CASE("of two short polls in a row one emptied the ring: only what came since the first may wait") {
    const auto expected = expectation(forever);
    const auto tally = std::make_unique<tally::ReceiverTally>();
    const Ticks long_gap = expected.ring_lasts - 1'000;
    Ticks now = begin;
    run::RingBacklog backlog{now};
    const auto poll = [&](Ticks gap, unsigned frames) { backlog.note_poll(now += gap, frames, expected, *tally); };

    SUBCASE("a moment ago") {
        poll(long_gap, 10);
        poll(1, 3);
        poll(long_gap, 10);
        CHECK(tally->gap_excess[0] == 0);
    }
    SUBCASE("a while ago") {
        poll(long_gap, 10);
        poll(long_gap, 3);  // may have ended early
        poll(long_gap, run::receive_burst);
        // Before the second poll, if the first left some; and before the third, if the second did.
        CHECK(tally->gap_excess[0] == 4 * long_gap - 2 * expected.ring_lasts - 13 * per_frame);
    }
}

TEST_CASE("a gap longer than the ring lasts is counted by what the ring cannot have held") {
    Ring ring{expectation(forever)};
    ring.empty();
    const Ticks longer = 500 * per_frame;
    ring.poll_after(ring_frames * per_frame + longer);
    CHECK(ring.excess() == longer);
    CHECK(ring.max_poll_gap() == ring_frames * per_frame + longer);
}

TEST_CASE("a queue that gets a share of the frames lasts longer, and books are kept for each share") {
    auto expected = expectation(forever);
    expected.is_one_of_many = true;
    Ring ring{expected};
    const Ticks lasts = expected.ring_lasts;
    ring.poll_after(3 * lasts);
    CHECK(ring.excess(0) == 2 * lasts);  // of all frames
    constexpr std::size_t half = 2;
    CHECK(ring.excess(half) == lasts / 2);
    constexpr std::size_t quarter = 4;
    CHECK(ring.excess(quarter) == 0);

    Ring alone{expectation(forever)};
    alone.poll_after(3 * lasts);
    CHECK(alone.excess(half) == 0);
}

TEST_CASE("what came before the end of the wait and was not taken in time is caught up with, and nothing after it") {
    const Ticks end = begin + 5'000;
    Ring ring{expectation(end)};
    ring.poll_after(4'000);
    CHECK(!ring.is_catching_up());
    ring.poll_after(3'000);  // 64 of some 600, after the end
    CHECK(ring.is_catching_up());
    CHECK(ring.max_poll_gap() == 4'000);  // of the second gap only what lies before the end
    while (ring.poll_after(1) == run::receive_burst) CHECK(ring.is_catching_up());
    ring.poll_after(1);
    ring.poll_after(1);
    CHECK(!ring.is_catching_up());
}

TEST_CASE("what waited for a receiver that was away is read late, until the ring is empty again") {
    auto expected = expectation(forever);
    expected.overdue_after = 5'000;
    Ring ring{expected};
    for (int i = 0; i < 100; ++i) {
        ring.poll_after(5'000);
        CHECK_FALSE(ring.is_read_late());
        ring.empty();
    }
    ring.poll_after(5'001);  // 64 of some 500
    CHECK(ring.is_read_late());
    while (ring.poll_after(1) == run::receive_burst) CHECK(ring.is_read_late());
    ring.poll_after(1);
    ring.poll_after(1);
    CHECK_FALSE(ring.is_read_late());
    ring.poll_after(6'000, 0);
    ring.poll_after(10);
    CHECK_FALSE(ring.is_read_late());  // nothing had come
}

namespace {

constexpr double ticks_per_second = 1e9;
constexpr double rate_fps = 1e6;  // a frame in 1,000 ticks
constexpr Ticks allowed = 5'000;

run::Expectation on_schedule(Ticks start) {
    return {.frames = tests::expected(tests::gateway_v4(), frame_size),
            .schedule = pace::EvenSchedule{start, ticks_per_second, rate_fps},
            .overdue_after = allowed};
}

/// A frame that left so many ticks after it was due, as a receiver asks about it that gets it 1 us later.
bool is_touched(run::OverdueFrames& overdue, const run::Expectation& expected, std::uint64_t sequence, Ticks late) {
    const Ticks sent = expected.schedule.due(sequence) + late;
    return overdue.is_touched(sequence, frame::FrameTime{sent & frame::time_mask}.seen_at(sent + 1000), expected);
}

}  // namespace

TEST_CASE("an overdue frame touches what leaves as long again after it, also where the time in tags begins anew") {
    for (const Ticks start : {begin, (Ticks{1} << 48U) - 20'000}) {
        CAPTURE(start);
        const auto expected = on_schedule(start);
        run::OverdueFrames overdue;
        CHECK_FALSE(is_touched(overdue, expected, 0, 0));
        CHECK_FALSE(is_touched(overdue, expected, 1, allowed));
        // Left at 32,000, and was due at 2,000: touches what leaves before 62,000.
        CHECK(is_touched(overdue, expected, 2, 30'000));
        CHECK(is_touched(overdue, expected, 33, 0));
        CHECK(is_touched(overdue, expected, 61, 0));
        CHECK_FALSE(is_touched(overdue, expected, 62, 0));
    }
}

TEST_CASE("a smaller lateness ends no greater one") {
    const auto expected = on_schedule(begin);
    run::OverdueFrames overdue;
    CHECK(is_touched(overdue, expected, 0, 40'000));  // until 80,000
    CHECK(is_touched(overdue, expected, 35, 6'000));  // until 47,000
    CHECK(is_touched(overdue, expected, 79, 0));
    CHECK_FALSE(is_touched(overdue, expected, 80, 0));
}

TEST_CASE("what leaves early is no lateness") {
    const auto expected = on_schedule(begin);
    run::OverdueFrames overdue;
    CHECK_FALSE(is_touched(overdue, expected, 100, Ticks{0} - 90'000));
}

}  // namespace backlog_test
