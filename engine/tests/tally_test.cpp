// SPDX-License-Identifier: Apache-2.0
// Station 6: R2544-06, R2544-07, R8219-15.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "tally/burst_runs.hpp"
#include "tally/latency_histogram.hpp"
#include "tally/recent_latency.hpp"
#include "tally/sequence_map.hpp"
#include "tally/tally.hpp"
#include "tally/words_of_burst.hpp"

namespace tally_test {

using namespace evenhand;
using tally::LatencyHistogram;
using tally::SequenceMap;

namespace {

using Numbers = std::vector<std::uint64_t>;

/// On the heap: a histogram has 43 kB.
std::unique_ptr<LatencyHistogram> histogram_of(const Numbers& values) {
    auto h = std::make_unique<LatencyHistogram>();
    for (const auto value : values) h->record(value);
    return h;
}

/// By the book (RFC 2330, 11.3): sorted, index ceil(p * n) - 1.
std::uint64_t percentile_of(Numbers values, std::uint64_t numerator, std::uint64_t denominator) {
    std::ranges::sort(values);
    const std::uint64_t rank = (values.size() * numerator + denominator - 1) / denominator;
    return values.at(rank == 0 ? 0 : rank - 1);
}

}  // namespace

TEST_CASE("a frame is marked once, and the second time it is a duplicate") {
    for (const bool shared : {false, true}) {
        CAPTURE(shared);
        SequenceMap map{200, shared};
        for (const std::uint64_t k : {0U, 63U, 64U, 127U, 128U, 199U}) {
            CHECK_FALSE(map.has(k));
            CHECK_FALSE(map.mark(k));
            CHECK(map.has(k));
            CHECK(map.mark(k));
        }
        CHECK_FALSE(map.has(1));
        CHECK_FALSE(map.has(62));
        CHECK_FALSE(map.has(65));
        CHECK(map.missing(0, 200) == 194);
    }
}

TEST_CASE("missing frames are counted in any range, across words") {
    const bool right = rc::check("missing and first_missing", [] {
        const auto frames = *rc::gen::inRange<std::uint64_t>(1, 400);
        const auto absent = *rc::gen::container<std::set<std::uint64_t>>(rc::gen::inRange<std::uint64_t>(0, frames));
        const auto first = *rc::gen::inRange<std::uint64_t>(0, frames + 1);
        const auto last = *rc::gen::inRange<std::uint64_t>(0, frames + 100);
        const auto most = *rc::gen::inRange<std::size_t>(0, 12);
        SequenceMap map{frames, *rc::gen::arbitrary<bool>()};
        for (std::uint64_t k = 0; k < frames; ++k) {
            if (!absent.contains(k)) RC_ASSERT(!map.mark(k));
        }
        Numbers below;
        std::uint64_t within = 0;
        for (const auto k : absent) {
            if (k >= first && k < last) ++within;
            if (k < last && below.size() < most) below.push_back(k);
        }
        RC_ASSERT(map.missing(first, last) == within);
        RC_ASSERT(map.first_missing(last, most) == below);
        const auto all = map.first_missing(map.frames(), map.frames());
        RC_ASSERT(map.last_missing(map.frames()) == (all.empty() ? std::nullopt : std::optional{all.back()}));
    });
    CHECK(right);
}

TEST_CASE("frames beyond the end of a map are not missing") {
    SequenceMap map{65, false};
    for (std::uint64_t k = 0; k < 65; ++k) map.mark(k);
    CHECK(map.missing(0, 128) == 0);
    CHECK(map.first_missing(128, 10).empty());
    CHECK(SequenceMap{}.missing(0, 10) == 0);
}

TEST_CASE("numbers that rise are marked at once as they are one after the other (R2544-06)") {
    const bool right = rc::check("mark_rising", [] {
        // A map of a ring as well, which begins anew in its middle.
        constexpr std::uint64_t held = std::uint64_t{64} * 64;
        const std::uint64_t base = *rc::gen::element<std::uint64_t>(0, held - 100);
        const bool is_ring = base != 0;
        const bool shared = *rc::gen::arbitrary<bool>();
        const auto make = [&] { return is_ring ? SequenceMap{10 * held, shared, held} : SequenceMap{1000, shared}; };
        auto at_once = make();
        auto one_by_one = make();
        if (is_ring) {
            for (auto* const map : {&at_once, &one_by_one}) {
                for (int calls = 0; calls < 100; ++calls) map->settle(base + 300, [](std::uint64_t) {});
            }
        }
        for (int bursts = 0; bursts < 5; ++bursts) {
            const auto count = *rc::gen::inRange<unsigned>(1, SequenceMap::most_at_once + 1);
            const auto widest = *rc::gen::element<std::uint64_t>(1, 2, 8, 14);
            const auto narrowest = *rc::gen::element<std::uint64_t>(1, widest);
            Numbers numbers{base + *rc::gen::inRange<std::uint64_t>(0, 100)};
            while (numbers.size() < count) numbers.push_back(numbers.back() + *rc::gen::inRange(narrowest, widest + 1));
            RC_ASSERT(at_once.holds(numbers.front()) && at_once.holds(numbers.back()));
            std::uint64_t before = 0;
            for (unsigned i = 0; i < count; ++i) before |= std::uint64_t{one_by_one.mark(numbers[i])} << i;
            // As in a tag, where something else stands above the number.
            constexpr std::uint64_t mask = ~std::uint64_t{0} >> 16U;
            const auto above = *rc::gen::arbitrary<std::uint64_t>() & ~mask;
            for (auto& number : numbers) number |= above;
            RC_ASSERT(at_once.part(0).mark_rising(numbers.data(), count, mask) == before);
        }
        for (std::uint64_t k = base; k < base + 1000; ++k) RC_ASSERT(at_once.has(k) == one_by_one.has(k));
    });
    CHECK(right);
}

TEST_CASE("each way to collect the words of a burst collects the same") {
    const bool right = rc::check("words", [] {
        const auto count = *rc::gen::inRange<unsigned>(1, tally::WordsOfBurst::most_frames + 1);
        const auto widest = *rc::gen::element<std::uint64_t>(1, 2, 3, 8, 20, 100);
        constexpr std::uint64_t mask = ~std::uint64_t{0} >> 16U;
        const auto above = *rc::gen::arbitrary<std::uint64_t>() & ~mask;
        Numbers numbers{*rc::gen::inRange<std::uint64_t>(0, 1000)};
        while (numbers.size() < count) numbers.push_back(numbers.back() + *rc::gen::inRange(1UL, widest + 1));
        std::map<std::uint64_t, std::uint64_t> expected;
        for (auto& number : numbers) {
            expected[number / 64] |= std::uint64_t{1} << number % 64;
            number |= above;
        }
        for (const char* const name : {"plain", "avx2"}) {
            const auto collect = tally::collect_variant(name);
            if (collect == nullptr) continue;  // this CPU cannot
            tally::WordsOfBurst words;
            collect(numbers.data(), count, mask, words);
            std::map<std::uint64_t, std::uint64_t> collected;
            for (unsigned w = 0; w < words.count; ++w) {
                RC_ASSERT(words.number[w] / 64 == (words.bits[w] != 0 ? words.number[w] : numbers[0] & mask) / 64);
                if (words.bits[w] != 0) RC_ASSERT(collected.emplace(words.number[w] / 64, words.bits[w]).second);
            }
            RC_ASSERT(collected == expected);
        }
    });
    CHECK(right);
}

TEST_CASE("receivers that mark apart have between them what one map has, and the copies are found (R2544-06)") {
    const bool right = rc::check("parts", [] {
        constexpr std::uint64_t held = std::uint64_t{64} * 64;
        const bool is_ring = *rc::gen::arbitrary<bool>();
        const auto frames = is_ring ? 3 * held : 1000;
        const auto receivers = *rc::gen::inRange(1U, 5U);
        auto apart = SequenceMap::apart(frames, receivers, held);
        SequenceMap together{frames, true, held};
        std::vector<std::uint64_t> received(receivers, 0);
        std::vector<std::uint64_t> told(receivers, 0);  // duplicates of a receiver's own
        std::uint64_t duplicates = 0;
        for (std::uint64_t k = 0; k < frames; k += 50) {
            for (auto* const map : {&apart, &together}) map->settle(k, [](std::uint64_t) {});
            for (int marks = *rc::gen::inRange(0, 40); marks > 0; --marks) {
                // Up to where a window is about to be closed: five eighths of the ring behind.
                const auto behind = std::min(k, *rc::gen::element<std::uint64_t>(0, 30, held / 4, held * 5 / 8));
                const auto number = std::min(frames - 1, k - behind + *rc::gen::inRange<std::uint64_t>(0, 60));
                const auto who = *rc::gen::inRange(0U, receivers);
                if (!together.holds(number)) continue;
                duplicates += static_cast<std::uint64_t>(together.part(who).mark(number));
                (apart.part(who).mark(number) ? told : received)[who] += 1;
            }
            RC_ASSERT(apart.missing(0, k) == together.missing(0, k));
            RC_ASSERT(apart.pairs(0, k) == together.pairs(0, k));
            RC_ASSERT(apart.first_missing(k, 5) == together.first_missing(k, 5));
            RC_ASSERT(apart.last_missing(k) == together.last_missing(k));
            RC_ASSERT(apart.missing_below_settled() == together.missing_below_settled());
        }
        const auto missing_before = apart.missing(0, frames);
        apart.bring_together();
        together.bring_together();
        RC_ASSERT(apart.missing(0, frames) == missing_before);
        RC_ASSERT(!is_ring || apart.settled() != 0);
        std::uint64_t found = 0;
        for (unsigned who = 0; who < receivers; ++who) {
            RC_ASSERT(apart.copies(who) <= received[who]);
            found += told[who] + apart.copies(who);
        }
        RC_ASSERT(found == duplicates);
        RC_ASSERT(apart.copies(0) == 0);
        RC_ASSERT(together.copies(receivers - 1) == 0);
    });
    CHECK(right);
}

TEST_CASE("two receivers that mark whole bursts apart at once are told of none, and all are found as copies") {
    constexpr std::uint64_t frames = 640'000;
    auto map = SequenceMap::apart(frames, 2);
    std::array<std::uint64_t, 2> duplicates{};
    {
        const auto mark_all = [&](std::size_t who) {
            auto part = map.part(who);
            constexpr unsigned burst = 64;
            for (std::uint64_t k = 0; k < frames; k += std::uint64_t{2} * burst) {
                // Every other number, then those in between; and all at once where both are there.
                for (const std::uint64_t first : {k, k + 1}) {
                    std::array<std::uint64_t, burst> numbers;
                    for (unsigned i = 0; i < burst; ++i) numbers[i] = first + 2 * std::uint64_t{i};
                    duplicates.at(who) +=
                        static_cast<std::uint64_t>(std::popcount(part.mark_rising(numbers.data(), burst)));
                }
            }
        };
        std::jthread one{mark_all, 0U};
        std::jthread other{mark_all, 1U};
    }
    CHECK(duplicates[0] + duplicates[1] == 0);
    map.bring_together();
    CHECK(map.copies(0) == 0);
    CHECK(map.copies(1) == frames);
    CHECK(map.missing(0, frames) == 0);
}

TEST_CASE("runs of a burst are cut where a bit says so, and nowhere else") {
    const bool right = rc::check("runs", [] {
        const auto end = *rc::gen::inRange(1U, 65U);
        const auto first = *rc::gen::inRange(0U, end);
        const auto beginnings = *rc::gen::arbitrary<std::uint64_t>();
        unsigned expected = first;
        std::vector<std::pair<unsigned, unsigned>> runs;
        tally::BurstRuns{beginnings, first, end}.for_each(
            [&](unsigned from, unsigned until) { runs.emplace_back(from, until); });
        for (const auto& [from, until] : runs) {
            RC_ASSERT(from == expected);
            RC_ASSERT(from < until);
            for (unsigned i = from + 1; i < until; ++i) RC_ASSERT((beginnings >> i & 1U) == 0);
            RC_ASSERT(until == end || (beginnings >> until & 1U) != 0);
            expected = until;
        }
        RC_ASSERT(expected == end);
    });
    CHECK(right);
}

TEST_CASE("two receivers of a shared map mark every frame exactly once between them") {
    constexpr std::uint64_t frames = 100'000;
    SequenceMap map{frames, true};
    std::array<std::uint64_t, 2> duplicates{};
    {
        const auto mark_all = [&](std::size_t who) {
            for (std::uint64_t k = 0; k < frames; ++k) duplicates.at(who) += static_cast<std::uint64_t>(map.mark(k));
        };
        std::jthread one{mark_all, 0U};
        std::jthread other{mark_all, 1U};
    }
    CHECK(duplicates[0] + duplicates[1] == frames);
    CHECK(map.missing(0, frames) == 0);
}

TEST_CASE("percentiles of the last moments are of what came since the last reading, of all receivers (R8219-15)") {
    const auto first = std::make_unique<LatencyHistogram>();
    const auto second = std::make_unique<LatencyHistogram>();
    tally::RecentLatency recent;
    const auto read = [&](std::uint64_t greatest) {
        recent.begin(greatest);
        recent.add(*first);
        recent.add(*second);
        return recent.end();
    };
    CHECK_FALSE(read(0).has_value());
    Numbers values;
    for (std::uint64_t value = 1; value <= 1000; ++value) {
        (value % 3 == 0 ? *first : *second).record(value);
        values.push_back(value);
    }
    auto found = read(1000);
    REQUIRE(found);
    CHECK(found->median == percentile_of(values, 1, 2));
    CHECK(found->p999 == percentile_of(values, 999, 1000));
    CHECK_FALSE(read(1000).has_value());  // nothing has come since
    for (std::uint64_t i = 0; i < 999; ++i) second->put(40'000);
    first->record(3'000'000);
    found = read(40'000);  // the greatest value is not told yet
    REQUIRE(found);
    CHECK(found->median >= 40'000);
    CHECK(found->median <= 40'040);
    CHECK(found->p999 == found->median);
    found = read(3'000'000);
    REQUIRE(found);
    CHECK(found->median >= 3'000'000);
    CHECK(found->median <= 3'003'000);
}

TEST_CASE("latencies below 128 ticks are exact") {
    const auto h = std::make_unique<LatencyHistogram>();
    for (std::uint64_t value = 0; value < 128; ++value) {
        for (std::uint64_t i = 0; i <= value; ++i) h->record(value);
    }
    Numbers lower;
    h->for_each_bucket([&](std::uint64_t bound, std::uint64_t count) {
        lower.push_back(bound);
        CHECK(count == bound + 1);
    });
    REQUIRE(lower.size() == 128);
    CHECK(lower.back() == 127);
}

TEST_CASE("a bucket holds its value and is narrower than 1 percent of it, up to 48 bits") {
    const auto check = [](std::uint64_t value) {
        // The lower bound is that of the bucket; the upper end is what a percentile says when larger values follow.
        const auto h = histogram_of({value, value, (std::uint64_t{1} << 48U) - 1});
        std::uint64_t lower = 0;
        bool first = true;
        h->for_each_bucket([&](std::uint64_t bound, std::uint64_t /*count*/) {
            if (std::exchange(first, false)) lower = bound;
        });
        const auto upper = h->percentile(1, 2).value();
        return lower <= value && value <= upper &&
               (value < 128 ? upper == lower
                            : static_cast<double>(upper + 1 - lower) < 0.01 * static_cast<double>(lower));
    };
    const bool right = rc::check("bucket width", [&] {
        const auto bits = *rc::gen::inRange(1U, 49U);
        RC_ASSERT(check(*rc::gen::arbitrary<std::uint64_t>() & ((std::uint64_t{1} << bits) - 1)));
    });
    CHECK(right);
    for (unsigned bit = 7; bit < 48; ++bit) {
        for (const std::uint64_t value :
             {(std::uint64_t{1} << bit) - 1, std::uint64_t{1} << bit, (std::uint64_t{1} << bit) + 1})
            CHECK_MESSAGE(check(value), value);
    }
}

TEST_CASE("a group of buckets is one value, or at most 0.8 percent wide, and loses nothing") {
    // Two neighbours are told apart unless they are closer than that; so nothing wider than that can be a group.
    for (unsigned octave = 0; octave < 47; ++octave) {
        for (const std::uint64_t part : {0U, 1U, 333U, 511U}) {
            const std::uint64_t value = (std::uint64_t{1} << octave) + ((std::uint64_t{1} << octave) * part) / 512;
            const auto width = value < 1024 ? 0 : value * 8 / 1000;
            CAPTURE(value);
            const auto h = histogram_of({value, value, value + width + 1});
            std::vector<std::pair<std::uint64_t, std::uint64_t>> groups;
            h->for_each_group([&](std::uint64_t lower, std::uint64_t count) { groups.emplace_back(lower, count); });
            REQUIRE(groups.size() == 2);
            CHECK(groups[0].first <= value);
            CHECK(groups[0].second == 2);
            CHECK(groups[1].first > value);
            CHECK(groups[1].first <= value + width + 1);
            CHECK(groups[1].second == 1);
        }
    }
    const auto close = histogram_of({4096, 4097, 4127});  // one bucket has four values, eight of them are a group
    std::uint64_t groups = 0;
    close->for_each_group([&](std::uint64_t lower, std::uint64_t count) {
        ++groups;
        CHECK(lower == 4096);
        CHECK(count == 3);
    });
    CHECK(groups == 1);
}

TEST_CASE("percentiles are the smallest value that enough of the sample does not exceed") {
    SUBCASE("of 1 .. 1000") {
        Numbers values(1000);
        std::iota(values.begin(), values.end(), 1U);
        const auto h = histogram_of(values);
        for (const auto& [numerator, denominator, want] : {std::tuple{1U, 1000U, 1U},
                                                           {1U, 2U, 500U},
                                                           {9U, 10U, 900U},
                                                           {99U, 100U, 990U},
                                                           {999U, 1000U, 999U},
                                                           {1U, 1U, 1000U}}) {
            const auto got = h->percentile(numerator, denominator).value();
            CHECK(got >= want);
            CHECK(static_cast<double>(got) < 1.01 * want);
        }
        CHECK(h->percentile(1, 1).value() == 1000);
        CHECK(h->percentile(1, 10).value() == 100);  // below 128: exact
        CHECK(h->mean() == doctest::Approx(500.5));
    }
    SUBCASE("of RFC 2330's example, without its negative numbers") {
        const auto h = histogram_of({2, 7, 7, 4, 18});
        CHECK(h->percentile(0, 1).value() == 2);
        CHECK(h->percentile(1, 5).value() == 2);
        CHECK(h->percentile(21, 100).value() == 4);
        CHECK(h->percentile(2, 5).value() == 4);
        CHECK(h->percentile(1, 2).value() == 7);
        CHECK(h->percentile(4, 5).value() == 7);
        CHECK(h->percentile(81, 100).value() == 18);
        CHECK(h->percentile(1, 1).value() == 18);
        CHECK(h->count() == 5);
    }
    SUBCASE("of any values, to the width of a bucket") {
        const bool right = rc::check("percentile", [] {
            const auto values =
                *rc::gen::nonEmpty(rc::gen::container<Numbers>(rc::gen::inRange<std::uint64_t>(0, 100'000'000)));
            const auto denominator = *rc::gen::inRange<std::uint64_t>(1, 1001);
            const auto numerator = *rc::gen::inRange<std::uint64_t>(0, denominator + 1);
            const auto want = percentile_of(values, numerator, denominator);
            const auto got = histogram_of(values)->percentile(numerator, denominator).value();
            RC_ASSERT(got >= want);
            RC_ASSERT(static_cast<double>(got) <= 1.01 * static_cast<double>(want));
        });
        CHECK(right);
    }
    SUBCASE("of nothing there is none") {
        CHECK_FALSE(std::make_unique<LatencyHistogram>()->percentile(1, 2).has_value());
    }
}

TEST_CASE("two histograms added are the histogram of both samples") {
    const bool right = rc::check("add", [](const std::vector<std::uint32_t>& a, const std::vector<std::uint32_t>& b) {
        Numbers both{a.begin(), a.end()};
        const auto sum = histogram_of(both);
        sum->add(*histogram_of({b.begin(), b.end()}));
        both.insert(both.end(), b.begin(), b.end());
        const auto whole = histogram_of(both);
        using Buckets = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
        const auto buckets_of = [](const LatencyHistogram& h) {
            Buckets buckets;
            h.for_each_bucket([&](std::uint64_t bound, std::uint64_t count) { buckets.emplace_back(bound, count); });
            return buckets;
        };
        RC_ASSERT(buckets_of(*sum) == buckets_of(*whole));
        RC_ASSERT(sum->count() == whole->count());
        RC_ASSERT(sum->min() == whole->min());
        RC_ASSERT(sum->max() == whole->max());
        if (!both.empty()) RC_ASSERT(sum->mean() == whole->mean());
    });
    CHECK(right);
}

TEST_CASE("the tallies of two queues add up, and the longest gap stays the longest") {
    const auto tally_of = [](std::uint64_t n) {
        auto t = std::make_unique<tally::ReceiverTally>();
        t->received_frames = n;
        t->duplicated_frames = n + 1;
        t->reordered_frames = n + 2;
        t->late_frames = n + 3;
        t->corrupted_frames = n + 4;
        t->wrong_length_frames = n + 5;
        t->foreign_frames = n + 6;
        t->stale_frames = n + 7;
        t->neighbor_frames = n + 8;
        t->max_poll_gap = n + 9;
        t->gap_excess[0] = n + 10;
        t->latency.record(n);
        return t;
    };
    const auto sum = tally_of(100);
    sum->add(*tally_of(1000));
    CHECK(sum->received_frames == 1100);
    CHECK(sum->duplicated_frames == 1102);
    CHECK(sum->reordered_frames == 1104);
    CHECK(sum->late_frames == 1106);
    CHECK(sum->corrupted_frames == 1108);
    CHECK(sum->wrong_length_frames == 1110);
    CHECK(sum->foreign_frames == 1112);
    CHECK(sum->stale_frames == 1114);
    CHECK(sum->neighbor_frames == 1116);
    CHECK(sum->max_poll_gap == 1009);
    CHECK(sum->gap_excess[0] == 1120);
    CHECK(sum->latency.count() == 2);
    CHECK(sum->latency.max() == 1000);
}

}  // namespace tally_test
