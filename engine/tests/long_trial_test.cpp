// SPDX-License-Identifier: Apache-2.0
// Station 6: the record of a trial of more frames than it holds at once gives the same counts as one that holds them
// all. R2544-06, R2544-07.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <optional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "rig.hpp"
#include "slow.hpp"
#include "tally/losses.hpp"
#include "tally/sequence_map.hpp"

namespace long_trial_test {

using namespace evenhand;
using namespace evenhand::tests;
using tally::Losses;
using tally::SequenceMap;

namespace {

constexpr std::uint64_t held = 64 * SequenceMap::windows;  // the fewest: 64 windows of a word

/// What a summary says of a direction.
struct Account {
    std::vector<std::uint64_t> by_tenth, first;
    std::optional<std::uint64_t> last;
    std::uint64_t missing = 0, missing_of_counted = 0, came_of_counted = 0, pairs = 0;
    friend bool operator==(const Account&, const Account&) = default;
};

/// A tenth of a second has 1,000 frames but every third, which has one less.
std::uint64_t tenth_end(std::uint64_t tenths) { return tenths * 1000 - tenths / 3; }

Account account_of(const SequenceMap& map, Losses& losses, std::uint64_t frames) {
    losses.take_arrivals(map, map.end());
    losses.take_missing(map, frames, tenth_end);
    return {.by_tenth = losses.by_tenth(),
            .first = losses.first(),
            .last = losses.last(),
            .missing = map.missing_below_settled() + map.missing(map.settled(), frames),
            .missing_of_counted = losses.missing_of_counted(),
            .came_of_counted = losses.came_of_counted(),
            .pairs = losses.pairs()};
}

struct Arrival {
    std::uint64_t due;  // so many frames are due by then
    std::uint64_t number;
    friend auto operator<=>(const Arrival&, const Arrival&) = default;
};

/// What a bad DUT passes on: a share is lost, also many in a row, some frames come twice, and some late by up to
/// `latest`.
std::vector<Arrival> arrivals(std::uint64_t frames, std::uint64_t latest, std::uint32_t seed) {
    std::mt19937 random{seed};  // NOLINT(cert-msc51-cpp): the same each time
    std::vector<Arrival> all;
    std::uint64_t outage_ends = 0;
    for (std::uint64_t k = 0; k < frames; ++k) {
        if (random() % 20'000 == 0) outage_ends = k + random() % 3000;
        if (k < outage_ends || random() % 50 == 0) continue;
        const auto late = [&] { return random() % 4 == 0 ? random() % latest : 0; };
        all.push_back({k + late(), k});
        if (random() % 100 == 0) all.push_back({k + late(), k});
    }
    std::ranges::sort(all);
    return all;
}

}  // namespace

TEST_CASE("a ring of windows gives the counts of a whole map") {
    // A quarter of the ring is ahead of what is due, and an eighth is closed: a frame that is half a ring late is held.
    constexpr std::uint64_t latest = held / 2;
    for (const std::uint32_t seed : {1U, 2U, 3U}) {
        if (tests::is_slow && seed != 2) continue;
        for (const std::uint64_t frames : {std::uint64_t{3} * held + 17, std::uint64_t{1'000'000}}) {
            for (const std::uint64_t counted_from : tests::few({std::uint64_t{0}, held / 2 + 5, frames - 100})) {
                CAPTURE(seed);
                CAPTURE(frames);
                CAPTURE(counted_from);
                SequenceMap whole{frames, false};
                SequenceMap ring{frames, seed == 2, held};
                Losses of_whole{counted_from};
                Losses of_ring{counted_from};
                std::uint64_t duplicates_of_whole = 0;
                std::uint64_t duplicates_of_ring = 0;
                std::uint64_t not_held = 0;
                std::uint64_t looks_at = 0;
                for (const auto& [due, k] : arrivals(frames, latest, seed)) {
                    for (; looks_at <= due; looks_at += held / 20) {  // a few windows apart
                        if (looks_at % 7 == 0) continue;
                        ring.settle(looks_at, [&](std::uint64_t last) {
                            of_ring.take_arrivals(ring, last);
                            of_ring.take_missing(ring, last, tenth_end);
                        });
                    }
                    duplicates_of_whole += static_cast<std::uint64_t>(whole.mark(k));
                    if (ring.holds(k)) {
                        duplicates_of_ring += static_cast<std::uint64_t>(ring.mark(k));
                    } else {
                        ++not_held;
                    }
                }
                REQUIRE(not_held == 0);
                CHECK(duplicates_of_ring == duplicates_of_whole);
                CHECK(ring.settled() > frames - held - 1);
                CHECK(account_of(ring, of_ring, frames) == account_of(whole, of_whole, frames));
            }
        }
    }
}

TEST_CASE("a map that holds all frames never settles any") {
    SequenceMap map{held, false, held};
    map.settle(held, [](std::uint64_t) { FAIL("settled"); });
    CHECK(map.begin() == 0);
    CHECK(map.end() == held);
    CHECK(map.settled() == 0);
}

TEST_CASE("a ring holds no frame that is far ahead, and none that was given up") {
    SequenceMap map{100 * held, false, held};
    const auto nothing = [](std::uint64_t) {};
    CHECK(map.holds(0));
    CHECK(map.holds(map.end() - 1));
    CHECK_FALSE(map.holds(map.end()));
    CHECK_FALSE(map.holds(~std::uint64_t{0}));
    for (std::uint64_t due = 0; due < 50 * held; due += held / 64) map.settle(due, nothing);
    CHECK(map.begin() > 49 * held);
    CHECK(map.holds(map.begin()));
    CHECK_FALSE(map.holds(map.begin() - 1));
    CHECK_FALSE(map.holds(0));
    CHECK_FALSE(map.holds(map.end()));
    CHECK(map.holds(50 * held));
}

TEST_CASE("what a receiver marks just when its window is given up counts, and harms no later frame") {
    SequenceMap map{100 * held, false, held};
    std::uint64_t taken = 0;
    const auto take = [&](std::uint64_t last) { taken = last; };
    std::uint64_t due = 0;
    std::uint64_t marked = 0;
    for (; due < 20 * held; due += held / 64) {
        const auto about_to = map.begin();  // the receiver has looked, and is taken off its CPU
        map.settle(due, take);
        CHECK(taken == map.settled());
        REQUIRE(map.settled() <= about_to);
        if (map.begin() != about_to) marked += static_cast<std::uint64_t>(!map.mark(about_to));
    }
    CHECK(marked > 1000);
    // What is settled has all of these marks but for those of the windows that are closed and not settled yet.
    CHECK(map.settled() - map.missing_below_settled() == marked - (map.begin() - map.settled()) / (held / 64));
    CHECK(map.missing(map.begin(), map.end()) == map.end() - map.begin());
}

TEST_CASE("a ring that was looked after too late makes up for it step by step, and says what it does not hold") {
    SequenceMap map{100 * held, false, held};
    const auto nothing = [](std::uint64_t) {};
    const std::uint64_t due = 10 * held;
    CHECK_FALSE(map.holds(due));
    int calls = 0;
    for (; !map.holds(due); ++calls) {
        const auto begin = map.begin();
        map.settle(due, nothing);
        CHECK(map.begin() - begin ==
              held / 8);  // a receiver that has looked at it before marks in a window that is still there
        REQUIRE(calls < 100);
    }
    CHECK(calls > 8);
    CHECK(map.missing_below_settled() == map.settled());
}

TEST_CASE("a receiver marks while the main thread settles, and none of its marks is lost") {
    constexpr std::uint64_t frames = 3'000'000;
    SequenceMap map{frames, true, 16 * held};
    std::atomic<std::uint64_t> due = 0;
    std::uint64_t sum_marked = 0;
    {
        const std::jthread receiver{[&] {
            for (std::uint64_t k = 0; k < frames; ++k) {
                while (!map.holds(k)) std::this_thread::yield();
                if (k % 7 != 0) sum_marked += static_cast<std::uint64_t>(!map.mark(k));
                due.store(k, std::memory_order_relaxed);
            }
        }};
        while (due.load(std::memory_order_relaxed) != frames - 1)
            map.settle(due.load(std::memory_order_relaxed), [](std::uint64_t) {});
    }
    CHECK(sum_marked == frames - (frames + 6) / 7);
    CHECK(map.missing_below_settled() + map.missing(map.settled(), frames) == frames - sum_marked);
}

TEST_CASE("two receivers mark apart while the main thread settles, and every mark is found once or as a copy") {
    constexpr std::uint64_t frames = 1'000'000;
    auto map = SequenceMap::apart(frames, 2, 16 * held);
    std::array<std::atomic<std::uint64_t>, 2> at{};
    std::array<std::uint64_t, 2> marked{};
    {
        const auto receive = [&](std::size_t who) {
            auto part = map.part(who);
            for (std::uint64_t k = 0; k < frames; ++k) {
                while (!map.holds(k)) std::this_thread::yield();
                // Every 6th comes to both, every 3rd but those to the second, and every 5th of all to none.
                const bool comes = k % 5 != 0 && (who == 0 ? k % 3 != 0 || k % 6 == 0 : k % 3 == 0);
                if (comes) marked[who] += static_cast<std::uint64_t>(!part.mark(k));
                at[who].store(k, std::memory_order_relaxed);
            }
        };
        const std::jthread one{receive, 0U};
        const std::jthread other{receive, 1U};
        const auto due = [&] { return std::min(at[0].load(), at[1].load()); };
        while (due() != frames - 1) map.settle(due(), [](std::uint64_t) {});
    }
    map.bring_together();
    std::uint64_t came = 0;
    std::uint64_t twice = 0;
    for (std::uint64_t k = 0; k < frames; ++k) {
        came += static_cast<std::uint64_t>(k % 5 != 0);
        twice += static_cast<std::uint64_t>(k % 5 != 0 && k % 6 == 0);
    }
    CHECK(map.settled() != 0);
    CHECK(marked[0] + marked[1] == came + twice);
    CHECK(map.copies(0) == 0);
    CHECK(map.copies(1) == twice);
    CHECK(map.missing_below_settled() + map.missing(map.settled(), frames) == frames - came);
}

TEST_CASE("the losses of a part are counted once, also when the record settles them meanwhile") {
    SequenceMap map{20 * held, false, held};
    tally::MissingSoFar lost;
    for (std::uint64_t due = 0; due < 20 * held; due += 37) {
        map.settle(due, [](std::uint64_t) {});
        for (auto k = due; k < due + 37; ++k) {
            if (k % 5 != 0 && map.holds(k)) map.mark(k);
        }
        lost.catch_up(map);
        if (due % 3 == 0 && due > lost.looked_at()) lost.add(due, map.missing(lost.looked_at(), due));
        // A frame may have been looked at before it came, but not here: all are marked as they are due.
        CHECK(lost.missing() == (lost.looked_at() + 4) / 5);
    }
    CHECK(lost.looked_at() > 19 * held);
}

namespace {

constexpr std::uint64_t long_frames = 8 * held;

/// A test frame of the rig with another number, and a checksum to match.
template <IpVersion V>
MemoryPort::Frame with_number(MemoryPort::Frame f, std::uint64_t number) {
    using L = frame::Layout<V>;
    for (std::size_t octet = 6; octet-- > 0; number >>= 8U)
        f.octets.at(L::tag + frame::tag_sequence + octet) = static_cast<std::byte>(number & 0xFFU);
    frame::store(f.octets.data() + L::udp_checksum, std::uint16_t{0});
    const auto sum = frame::sum_octets(f.octets.data() + L::source, f.length - L::source) +
                     frame::pseudo_header_sum(frame::protocol_udp, f.length - L::udp);
    frame::store(f.octets.data() + L::udp_checksum, frame::udp_checksum(sum));
    return f;
}

/// A long trial in which every tenth frame comes once more, with another number.
template <IpVersion V>
tally::ReceiverTally received_with(const std::function<std::uint64_t(std::uint64_t)>& number, bool is_looked_after) {
    // A number that was made up goes with the addresses of another: that is told first, where it is known.
    Rig<V> rig{{.frames = long_frames, .held = held, .is_known = false}};
    rig.left.on_the_wire = [&](MemoryPort::Frame& f) {
        if (const auto k = number_of(f); k % 10 == 0) rig.right.inject(with_number<V>(f, number(k)));
        return 1U;
    };
    const pace::EvenSchedule schedule{start, second, rate_fps};
    for (std::uint64_t k = 64; k <= long_frames; k += 64) {
        if (is_looked_after) rig.map.settle(schedule.due_count(rig.clock.time), [](std::uint64_t) {});
        rig.run_until(schedule.due(k));
    }
    rig.run_until(schedule.due(long_frames + 10));
    return rig.got();
}

template <IpVersion V>
void check_what_is_not_held() {
    constexpr auto again = (long_frames + 9) / 10;
    const auto same = received_with<V>([](std::uint64_t k) { return k; }, true);
    CHECK(same.received_frames == long_frames);
    CHECK(same.duplicated_frames == again);

    const auto forged = received_with<V>([](std::uint64_t k) { return k + held < long_frames ? k + held : k; }, true);
    CHECK(forged.received_frames == long_frames);
    CHECK(forged.corrupted_frames == (long_frames - held + 9) / 10);
    CHECK(forged.unrecorded_frames + forged.late_frames == 0);

    const auto late = received_with<V>([](std::uint64_t k) { return k >= held ? k - held : k; }, true);
    CHECK(late.received_frames == long_frames);
    CHECK(late.late_frames == again - (held + 9) / 10);
    CHECK(late.unrecorded_frames + late.corrupted_frames == 0);

    // Nobody makes room: what comes then is not the DUT's loss, and is said to be so.
    const auto unrecorded = received_with<V>([](std::uint64_t k) { return k; }, false);
    constexpr auto room = SequenceMap::windows * 7 / 8 * 64;
    CHECK(unrecorded.received_frames == room);
    CHECK(unrecorded.unrecorded_frames == long_frames - room + again - (room + 9) / 10);
    CHECK(unrecorded.late_frames + unrecorded.corrupted_frames == 0);
}

}  // namespace

TEST_CASE("a number that the record does not hold is late, or made up, or the tester's own lapse") {
    SUBCASE("IPv4") { check_what_is_not_held<IpVersion::v4>(); }
    SUBCASE("IPv6") { check_what_is_not_held<IpVersion::v6>(); }
}

}  // namespace long_trial_test
