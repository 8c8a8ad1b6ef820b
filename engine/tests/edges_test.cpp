// SPDX-License-Identifier: Apache-2.0
// Stations 3, 4 and 6 at the edges of the tester: counters that lie, queues that share a load, clocks that differ. D5,
// R2544-39.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "pace/clock_offset.hpp"
#include "port/extended_counters.hpp"
#include "rig.hpp"
#include "run/settled.hpp"
#include "tally/gap_shares.hpp"
#include "tally/port_change.hpp"

namespace edges_test {

using namespace evenhand;
using namespace evenhand::tests;

namespace {

/// A port that says of its counters whatever a test wants, one reading after the other.
struct LyingPort {
    bool is_exact = true;
    mutable std::vector<tally::PortCounters> readings;

    std::function<void()> on_reading = [] {};

    [[nodiscard]] tally::PortCounters counters() const {
        on_reading();
        auto reading = readings.front();
        readings.erase(readings.begin());
        return reading;
    }
    [[nodiscard]] bool counts_exactly() const { return is_exact; }
};

/// Gaps of a receiver that serves `queues` queues, of which each gets as many frames as the others, and what they
/// explain of `lost`.
std::uint64_t explained(unsigned queues, unsigned gaps, Ticks gap, Ticks ring_lasts, std::uint64_t lost) {
    constexpr std::uint64_t frames = 1'000'000;
    std::vector<tally::QueueGaps> all;
    for (unsigned queue = 0; queue < queues; ++queue) {
        Rig4 rig{{.frames = 2000, .ring_lasts = ring_lasts}};
        rig.expect_one_of_many(queues > 1);
        rig.run_until(start + 100 * us);
        for (unsigned i = 0; i < gaps; ++i) {
            rig.clock.time += gap;
            rig.receive();
            for (int looks = 0; looks < 100; ++looks) rig.receive();
            rig.right.arrived().clear();
        }
        auto& q = all.emplace_back(tally::QueueGaps{.received_frames = (frames - lost) / queues, .excess_frames = {}});
        for (std::size_t i = 0; i < q.excess_frames.size(); ++i)
            q.excess_frames[i] = rig.got().gap_excess[i] / us;  // a frame each us
    }
    return tally::frames_lost_in_gaps(all, frames, lost);
}

struct ShiftedClock {
    Ticks ahead = 0;
    [[nodiscard]] Ticks now() const noexcept { return pace::TickClock::now() + ahead; }
};

}  // namespace

TEST_CASE("what a gap explains does not grow with the number of queues") {
    // Ten gaps of 3,000 frames before rings of 2,048: one queue that gets all overflows by 952 each time, and eight
    // that share them never do.
    CHECK(explained(1, 10, 3000 * us, 2048 * us, 500) == doctest::Approx(9520).epsilon(0.001));
    CHECK(explained(8, 10, 3000 * us, 2048 * us, 500) == 0);
    CHECK(explained(2, 10, 3000 * us, 2048 * us, 500) <= 2 * 10 * 80);
    // Before rings of 256, 375 come to each of eight queues, and 119 are too many; the shares are told to the root
    // of 2.
    const auto lost = explained(8, 10, 3000 * us, 256 * us, 20'000);
    CHECK(lost >= 10 * 8 * 119);
    CHECK(lost <= 10 * 8 * 275);
}

TEST_CASE("a queue that lost nearly all of its frames in a gap is not taken for one that few came to") {
    std::vector<tally::QueueGaps> queues(2);
    queues[0].received_frames = 500'000;
    // The second was away for most of the trial: half a million came to it, and it took none.
    for (std::size_t i = 0; i < tally::gap_shares.size(); ++i)
        queues[1].excess_frames[i] = 990'000ULL * tally::gap_shares[i] >> tally::gap_share_bits;
    CHECK(tally::frames_lost_in_gaps(queues, 1'000'000, 500'000) >= 490'000);
}

TEST_CASE("a burst that a driver trimmed does not empty the ring, so a second stall counts what waits") {
    // virtio gives 61 of a full ring; mlx5 ends a burst where its ring does.
    for (const unsigned first_look : {61U, 63U, 29U, 4U}) {
        CAPTURE(first_look);
        Rig4 rig{{.frames = 2000, .ring_lasts = 200 * us}};
        rig.run_until(start + 100 * us);
        rig.right.hand_over_at_most = first_look;
        for (int stall = 0; stall < 2; ++stall) {
            rig.clock.time += 180 * us;
            for (int bursts = 0; bursts < 6; ++bursts) rig.send();
            rig.receive();
        }
        // 180 wait, less what the one look took, and 180 more: the ring of 200 cannot have held them.
        CHECK(rig.got().gap_excess[0] >= (160 - first_look - 2) * us);
    }
}

TEST_CASE("two short bursts in a row, or an empty one, do empty the ring") {
    Rig4 rig{{.frames = 2000, .ring_lasts = 200 * us}};
    rig.run_until(start + 100 * us);
    for (int stall = 0; stall < 5; ++stall) {
        rig.clock.time += 180 * us;
        for (int bursts = 0; bursts < 6; ++bursts) rig.send();
        for (int looks = 0; looks < 4; ++looks) rig.receive();
    }
    CHECK(rig.got().gap_excess[0] == 0);
}

TEST_CASE("frames that the port counted are waited for before they are called lost") {
    const LyingPort port{.readings = {{.received_frames = 100}, {.received_frames = 1100}}};
    std::uint64_t taken = 40;
    const auto before = run::count_before(port, [&] { return taken; });
    // They come one at a time to each question.
    const auto after =
        run::count_after(port, before, [&] { return taken = std::min<std::uint64_t>(1040, taken + 250); });
    CHECK(tally::change_of(before, after).unseen_frames == 0);
    CHECK(after.seen_frames == 1040);
}

TEST_CASE("what a port counted and no receiver saw is known to the frame") {
    const LyingPort port{.readings = {{.received_frames = 7}, {.received_frames = 60'000'007}}};
    const auto before = run::count_before(port, [] { return std::uint64_t{3}; });
    const auto after =
        run::count_after(port, before, [] { return std::uint64_t{59'999'003}; }, std::chrono::milliseconds{5});
    CHECK(tally::change_of(before, after).unseen_frames == 1000);
}

TEST_CASE("a frame that comes while the counts before a trial are read is no loss inside the tester") {
    std::uint64_t taken = 3;
    // A question of the DUT comes and is taken as soon as the port's counters have been read, and one before that.
    const LyingPort port{.readings = {{.received_frames = 7}, {.received_frames = 1008}},
                         .on_reading = [&] { ++taken; }};
    const auto before = run::count_before(port, [&] { return taken; });
    ++taken;
    const auto after = run::count_after(port, before, [&] { return taken + 998; }, std::chrono::milliseconds{5});
    CHECK(tally::change_of(before, after).unseen_frames == 0);
}

TEST_CASE("a port whose count is not exact is not held against its receivers") {
    const LyingPort port{.is_exact = false, .readings = {{.received_frames = 0}, {.received_frames = 1000}}};
    const auto before = run::count_before(port, [] { return std::uint64_t{0}; });
    const auto after = run::count_after(port, before, [] { return std::uint64_t{0}; });
    CHECK_FALSE(after.seen_frames);
    CHECK(tally::change_of(before, after).unseen_frames == 0);
    CHECK_FALSE(port::tells_each_frame("net_bnxt"));
    CHECK(port::tells_each_frame("net_memif"));
    CHECK(port::tells_each_frame("net_i40e"));
}

TEST_CASE("a counter that goes backwards says so instead of a number") {
    const auto change = tally::change_of({.missed_frames = 9}, {.missed_frames = 3});
    REQUIRE(change.problem);
    CHECK(*change.problem == "missed_frames went from 9 to 3");
    CHECK(change.missed_frames == 0);
}

TEST_CASE("drops and PAUSE are found by the names that drivers give them") {
    for (const char* name : {"rx_discards_phy", "rx_out_of_buffer", "rx_missed_errors", "port.rx_discards",
                             "rx_prio0_discards", "rx_missed_packets"}) {
        CAPTURE(name);
        CHECK(port::is_hidden_drop_counter(name));
    }
    for (const char* name :
         {"tx_discards_phy", "rx_good_packets", "tx_missed", "rx_l2_filter_discards", "rx_pause_frames"}) {
        CAPTURE(name);
        CHECK_FALSE(port::is_hidden_drop_counter(name));
    }
    for (const char* name : {"rx_xoff_packets", "tx_xon_packets", "rx_pause_ctrl_phy"})
        CHECK(port::is_pause_counter(name));
}

TEST_CASE("frames that come to a CPU whose clock is behind are told by the difference, in both IP versions") {
    const auto check = []<IpVersion V>() {
        Rig<V> rig{{.frames = 100}};
        rig.run_behind(25 * us);
        CHECK(rig.got().received_frames == 0);
        CHECK(rig.got().stale_frames == 0);
        CHECK(rig.got().wrong_time_frames == 100);
        CHECK(rig.got().max_ahead >= 24 * us);
        CHECK(rig.got().max_ahead <= 26 * us);
    };
    check.template operator()<IpVersion::v4>();
    check.template operator()<IpVersion::v6>();
}

TEST_CASE("the offset between the clocks of two CPUs is measured as it was injected") {
    // The CPUs of this machine may be busy: a measurement that got no turn is nothing, and says so.
    for (const double injected : {0.0, 1e6, -3e6}) {
        CAPTURE(injected);
        const ShiftedClock second{static_cast<Ticks>(static_cast<std::int64_t>(injected))};
        const auto offset = pace::measure_offset(0, pace::TickClock{}, std::thread::hardware_concurrency() > 1 ? 1 : 0,
                                                 second, std::chrono::milliseconds{500});
        if (!offset) continue;
        // The counters of this machine may themselves be apart by a little, for which the limit of trials is 10 us.
        CHECK(std::abs(offset->ticks - injected) <= offset->uncertainty + 50'000);
    }
}

TEST_CASE("a CPU that never answers is not waited for") {
    struct NeverEnds {
        std::chrono::steady_clock::time_point until;
        [[nodiscard]] Ticks now() const noexcept {
            while (std::chrono::steady_clock::now() < until) std::this_thread::yield();
            return 0;
        }
    };
    const NeverEnds second{std::chrono::steady_clock::now() + std::chrono::seconds{1}};
    CHECK_FALSE(pace::measure_offset(0, pace::TickClock{}, 0, second, std::chrono::milliseconds{10}));
}

}  // namespace edges_test
