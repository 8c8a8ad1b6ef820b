// SPDX-License-Identifier: Apache-2.0
// Delays of each frame, beyond the histogram: percentiles with lost frames, tagged frames, differences of neighbours
// (R8219-12, R8219-13, R8219-16).
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <thread>
#include <vector>

#include "frame/share.hpp"
#include "slow.hpp"
#include "tally/delay_buckets.hpp"
#include "tally/delay_spread.hpp"
#include "tally/delays.hpp"
#include "tally/sequence_map.hpp"

namespace delays_test {
using namespace evenhand;
using tally::DelayTracks;
using tally::DelayWindow;
using tally::VariationHistogram;

namespace {

using Differences = std::vector<std::int64_t>;

/// By the book: of frames that both came, in the order of their numbers.
Differences differences_of(const std::vector<std::uint64_t>& delays, const std::vector<bool>& came) {
    Differences found;
    for (std::size_t k = 1; k < delays.size(); ++k) {
        if (came[k] && came[k - 1])
            found.push_back(static_cast<std::int64_t>(delays[k]) - static_cast<std::int64_t>(delays[k - 1]));
    }
    std::ranges::sort(found);
    return found;
}

struct Traffic {
    std::vector<std::uint64_t> delays;
    std::vector<bool> came;
    std::vector<std::uint64_t> order;  // of arrival

    /// A tenth is lost; the others come in an order in which each is at most `reach` places from its own.
    Traffic(std::size_t frames, std::size_t reach, unsigned seed) : delays(frames), came(frames), order(frames) {
        std::mt19937_64 random{seed};
        for (auto& delay : delays) delay = random() % 100'000;
        for (std::size_t k = 0; k < frames; ++k) came[k] = random() % 10 != 0;
        std::iota(order.begin(), order.end(), 0U);
        for (std::size_t first = 0; first < frames; first += reach) {
            std::shuffle(order.begin() + static_cast<std::ptrdiff_t>(first),
                         order.begin() + static_cast<std::ptrdiff_t>(std::min(frames, first + reach)), random);
        }
        std::erase_if(order, [&](std::uint64_t k) { return !came[k]; });
    }
};

}  // namespace

TEST_CASE("each pair of neighbours gives its difference once, in whichever order frames come") {
    // R8219-13
    for (const bool shared : {false, true}) {
        for (const std::size_t reach : {1U, 2U, 100U, 30'000U}) {
            CAPTURE(shared);
            CAPTURE(reach);
            const Traffic traffic{tests::is_slow ? 50'000U : 200'000U, reach, 1};
            DelayWindow window{shared};
            Differences seen;
            for (const auto k : traffic.order) {
                window.note(k, traffic.delays[k], [&](std::int64_t difference) { seen.push_back(difference); });
            }
            std::ranges::sort(seen);
            CHECK(seen == differences_of(traffic.delays, traffic.came));
        }
    }
}

TEST_CASE("receivers that note at the same time give each pair once") {
    const Traffic traffic{400'000, 64, 2};
    DelayWindow window{true};
    std::array<Differences, 2> seen;
    std::array<std::atomic<std::size_t>, 2> at{};
    {
        std::vector<std::jthread> receivers;
        receivers.reserve(2);
        for (std::size_t r = 0; r < 2; ++r) {
            receivers.emplace_back([&, r] {
                for (std::size_t i = r; i < traffic.order.size(); i += 2) {
                    // No further apart than the window, as queues of one port are.
                    while (i > at[1 - r].load(std::memory_order_acquire) + 1000) std::this_thread::yield();
                    const auto k = traffic.order[i];
                    window.note(k, traffic.delays[k], [&](std::int64_t difference) { seen[r].push_back(difference); });
                    at[r].store(i, std::memory_order_release);
                }
                at[r].store(traffic.order.size(), std::memory_order_release);
            });
        }
    }
    Differences all = seen[0];
    all.insert(all.end(), seen[1].begin(), seen[1].end());
    std::ranges::sort(all);
    CHECK(all == differences_of(traffic.delays, traffic.came));
}

TEST_CASE("a frame that a whole window overtook has no pair, and none that is not its own") {
    DelayWindow window{false};
    Differences seen;
    const auto note = [&](std::uint64_t k, std::uint64_t delay) {
        window.note(k, delay, [&](std::int64_t difference) { seen.push_back(difference); });
    };
    note(10, 5);
    note(11 + DelayWindow::frames, 7);  // in the place of 11
    note(12, 9);
    note(11, 8);  // knows 10 and 12, not the one that was in its place
    std::ranges::sort(seen);
    CHECK(seen == Differences{1, 3});
}

TEST_CASE("signed differences: minimum, median and maximum") {
    const auto h = std::make_unique<VariationHistogram>();
    const auto found = [&] {
        tally::DelayBuckets buckets;
        buckets.add_all(*h);
        buckets.sort();
        return buckets;
    };
    const auto percentile = [&](std::uint64_t numerator, std::uint64_t denominator) {
        const auto buckets = found();
        const auto bucket = buckets.percentile(numerator, denominator, buckets.count());
        REQUIRE(bucket);
        return bucket->highest;
    };
    CHECK_FALSE(found().percentile(1, 2, 0).has_value());
    SUBCASE("RFC 2330's example") {
        for (const auto value : {-2, 7, 7, 4, 18, -5}) h->record(value);
        CHECK(found().min() == -5);
        CHECK(found().max() == 18);
        CHECK(percentile(1, 4) == -2);
        CHECK(percentile(1, 2) == 4);
        CHECK(percentile(1, 1) == 18);
    }
    SUBCASE("all below zero") {
        for (const auto value : {-1, -1'000'000, -3}) h->record(value);
        CHECK(found().min() == -1'000'000);
        CHECK(found().max() == -1);
        CHECK(percentile(1, 2) == -3);
    }
    SUBCASE("within 0.1 percent") {
        std::mt19937_64 random{3};
        Differences values(10'001);
        const auto other = std::make_unique<VariationHistogram>();
        for (std::size_t i = 0; i < values.size(); ++i) {
            values[i] = static_cast<std::int64_t>(random() % 2'000'000) - 1'300'000;
            (i % 2 == 0 ? h : other)->record(values[i]);
        }
        h->add(*other);
        std::ranges::sort(values);
        for (const auto& [numerator, denominator] : {std::pair{1U, 100U}, {1U, 2U}, {99U, 100U}}) {
            const auto want = values[(values.size() * numerator + denominator - 1) / denominator - 1];
            CHECK(static_cast<double>(percentile(numerator, denominator)) ==
                  doctest::Approx(static_cast<double>(want)).epsilon(0.001));
        }
        CHECK(found().min() == values.front());
        CHECK(found().max() == values.back());
    }
}

TEST_CASE("tagged frames are spread over those that count, and a lost one has no delay") {
    // R8219-07: none before its time, as many as asked for
    DelayTracks tracks{{.first = 998, .tag_first = 1000, .tag_every = 3, .tagged = 5}, false};
    const auto none = [](std::int64_t) { FAIL("no differences were asked for"); };
    for (std::uint64_t k = 998; k < 1030; ++k) {
        if (k != 1006) tracks.note(k, k, k - 1000, none);
    }
    for (std::size_t n = 0; n < 5; ++n) {
        if (n == 2) {
            CHECK_FALSE(tracks.tagged(n).has_value());
        } else {
            CHECK(tracks.tagged(n) == 3 * n);
        }
    }
}

TEST_CASE("a tagged frame that was left out is neither lost nor has it a delay, and is part of no difference") {
    DelayTracks tracks{{.first = 10, .tag_first = 10, .tag_every = 2, .tagged = 3, .has_variation = true}, false};
    std::vector<std::int64_t> seen;
    const auto visit = [&](std::int64_t difference) { seen.push_back(difference); };
    tracks.note(10, 10, 100, visit);
    tracks.note(11, 11, 101, visit);
    tracks.leave_out(12);
    tracks.leave_out(13);  // has no tag
    tracks.note(14, 14, 104, visit);
    CHECK(tracks.tagged(0) == 100);
    CHECK_FALSE(tracks.is_left_out(0));
    CHECK(tracks.is_left_out(1));
    CHECK(tracks.tagged(2) == 104);
    CHECK(seen == std::vector<std::int64_t>{1});
}

TEST_CASE("a variation is known to 0.1 percent of itself, however long the delays are") {
    std::mt19937_64 random{7};
    for (const std::uint64_t shortest :
         {std::uint64_t{0}, std::uint64_t{20'000'000}, std::uint64_t{3'000'000'000'000}}) {
        for (const std::uint64_t spread_ticks : {1ULL, 2'000ULL, 200'000ULL, 5'000'000'000ULL}) {
            std::array<tally::DelaySpread, 2> spreads;  // of two receivers, each with a base of its own
            std::vector<std::uint64_t> delays;
            for (std::size_t i = 0; i < 20'000; ++i) {
                // The first frames wait for something, as for an answer to ARP.
                delays.push_back(shortest + (i < 3 ? 10 * spread_ticks : random() % (spread_ticks + 1)));
                spreads[i % 2].record(delays.back());
            }
            tally::DelayBuckets buckets;
            for (auto& spread : spreads) {
                spread.settle();
                buckets.add_all(spread);
            }
            buckets.sort();
            CHECK(buckets.count() == 20'000);
            std::ranges::sort(delays);
            for (const std::uint64_t n : {1U, 10'000U, 19'980U, 20'000U}) {
                const auto found = buckets.nth(n);
                REQUIRE(found);
                const std::uint64_t want = delays[n - 1];
                const auto highest = static_cast<std::uint64_t>(found->highest);
                const auto width = static_cast<std::uint64_t>(found->highest - found->lowest);
                CHECK(highest >= want);
                CHECK(highest - want <= width);
                CHECK(static_cast<double>(width) <=
                      1 + 0.001 * static_cast<double>(std::max(want - delays.front(), spread_ticks)));
            }
            CHECK_FALSE(buckets.nth(20'001));
        }
    }
    tally::DelaySpread none;
    none.settle();
    tally::DelayBuckets buckets;
    buckets.add_all(none);
    CHECK_FALSE(buckets.nth(1));
}

TEST_CASE("among several testers the frame before is the one that left before it on the same link") {
    // This one of two testers has the odd numbers.
    const frame::TesterShare own{1, 1, 2};
    DelayTracks tracks{{.first = 4, .tag_first = 4, .tag_every = 3, .tagged = 3, .has_variation = true}, false};
    std::vector<std::int64_t> seen;
    for (std::uint64_t k = 5; k < 15; k += 2)
        tracks.note(k, own.place(k), 100 + k * k, [&](std::int64_t difference) { seen.push_back(difference); });
    CHECK(seen == std::vector<std::int64_t>{49 - 25, 81 - 49, 121 - 81, 169 - 121});
    CHECK(tracks.tag_sequence(1) == 7);
    CHECK_FALSE(tracks.tagged(0).has_value());  // another tester's
    CHECK(tracks.tagged(1) == 149);
}

TEST_CASE("pairs of frames that came are counted by the map") {
    const Traffic traffic{5'000, 1, 4};
    tally::SequenceMap map{5'000, false};
    for (const auto k : traffic.order) map.mark(k);
    for (const std::uint64_t first : {0U, 1U, 63U, 64U, 1000U, 4'999U}) {
        std::uint64_t want = 0;
        for (std::uint64_t k = first + 1; k < 5'000; ++k)
            want += static_cast<std::uint64_t>(traffic.came[k] && traffic.came[k - 1]);
        CHECK(map.pairs(first, 5'000) == want);
    }
}

}  // namespace delays_test
