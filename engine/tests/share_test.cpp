// SPDX-License-Identifier: Apache-2.0
// Stations 2, 3 and 5: the share of one tester among several: which frames are its own, when they are due, and what its
// receiver makes of those of others. SEED-44, R2544-07.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "frame/share.hpp"
#include "pace/schedule.hpp"
#include "rig.hpp"

namespace share_test {

using namespace evenhand;
using namespace evenhand::tests;
using frame::TesterShare;

namespace {

/// Testers with so many streams each.
std::vector<TesterShare> shares_of(const std::vector<unsigned>& streams) {
    std::uint64_t stride = 0;
    for (const auto s : streams) stride += s;
    std::vector<TesterShare> shares;
    std::uint64_t first = 0;
    for (const auto s : streams) {
        shares.emplace_back(first, s, stride);
        first += s;
    }
    return shares;
}

/// The rig's sender is tester 0's only stream of two; its receiver may be another tester's.
template <IpVersion V>
struct Pair {
    explicit Pair(std::uint64_t receiving) : rig{{.frames = 1000, .streams = 2}} {
        rig.expectation->share = TesterShare{receiving, 1, 2};
        map = tally::SequenceMap{rig.expectation->share.count(1000), false};
        rig.receiver.arm(*rig.expectation, map, *rig.tally, rig.clock.now());
    }
    Rig<V> rig;
    tally::SequenceMap map;
};

}  // namespace

TEST_CASE("the shares of all testers are all frames, each once, and each tester's are those of its streams") {
    CHECK(rc::check([] {
        const auto testers = *rc::gen::inRange<std::size_t>(1, 6);
        const auto streams = *rc::gen::container<std::vector<unsigned>>(testers, rc::gen::inRange(1U, 9U));
        const auto frames = *rc::gen::inRange<std::uint64_t>(0, 500);
        const auto shares = shares_of(streams);
        std::map<std::uint64_t, int> owners;
        for (std::size_t t = 0; t < testers; ++t) {
            const auto& share = shares[t];
            std::set<std::uint64_t> own;
            for (std::uint64_t s = 0; s < streams[t]; ++s) {
                const auto stream = share.stream(s);
                const auto own_stream = share.own_stream(stream);
                for (std::uint64_t i = 0; i < stream.count(frames); ++i) {
                    const auto k = stream.sequence(i);
                    own.insert(k);
                    RC_ASSERT(share.has(k));
                    RC_ASSERT(share.place(k) == own_stream.sequence(i));
                    RC_ASSERT(share.sequence(share.place(k)) == k);
                }
            }
            RC_ASSERT(own.size() == share.count(frames));
            for (const auto k : own) ++owners[k];
            // In their order they have the places 0, 1, 2, ...
            std::uint64_t place = 0;
            for (const auto k : own) RC_ASSERT(share.place(k) == place++);
            for (std::uint64_t k = 0; k < frames; ++k) RC_ASSERT(share.has(k) == own.contains(k));
        }
        RC_ASSERT(owners.size() == frames);
        for (const auto& [k, times] : owners) RC_ASSERT(times == 1);
    }));
}

TEST_CASE("a share's arithmetic is exact up to the last number that a tag holds") {
    for (const std::uint64_t stride : {2U, 3U, 7U, 127U, 128U}) {
        for (const std::uint64_t k :
             {frame::sequence_mask, frame::sequence_mask - 1, frame::sequence_mask - stride,
              frame::sequence_mask / stride * stride, frame::sequence_mask / stride * stride - 1}) {
            for (std::uint64_t first = 0; first < stride; ++first) {
                const TesterShare share{first, 1, stride};
                CHECK(share.has(k) == (k % stride == first));
                if (share.has(k)) CHECK(share.place(k) == k / stride);
                CHECK(share.count(k + 1) == frame::StreamShare{first, stride}.count(k + 1));
            }
        }
    }
}

TEST_CASE("a tester that is alone has all frames, by their own numbers") {
    const TesterShare share{0, 4, 4};
    CHECK(share.is_whole());
    CHECK(TesterShare{}.is_whole());
    for (const std::uint64_t k : {std::uint64_t{0}, std::uint64_t{5}, frame::sequence_mask}) {
        CHECK(share.has(k));
        CHECK(share.place(k) == k);
        CHECK(share.sequence(k) == k);
        CHECK(share.count(k) == k);
    }
    CHECK(share.part() == 1);
}

TEST_CASE("testers that start together keep the whole's schedule, to the tick") {
    const pace::EvenSchedule whole{start, second, 3.7e5};
    const auto bursts = pace::Schedule::bursts(start, second, 1e6, 5, 1e-3);
    for (const auto& share : shares_of({1, 2, 1})) {
        for (std::uint64_t s = 0; s < share.streams(); ++s) {
            const auto stream = share.stream(s);
            for (std::uint64_t i = 0; i < 1000; ++i) {
                CHECK(whole.stream(stream.first, stream.stride).due(i) == whole.due(stream.sequence(i)));
                CHECK(bursts.stream(stream.first, stream.stride).due(i) == bursts.due(stream.sequence(i)));
            }
        }
    }
}

TEST_CASE_TEMPLATE("a receiver counts its own tester's frames, and knows those of others as strayed", R, Rig4, Rig6) {
    constexpr auto version = std::is_same_v<R, Rig4> ? IpVersion::v4 : IpVersion::v6;
    for (const std::uint64_t receiving : {0U, 1U}) {
        Pair<version> pair{receiving};
        pair.rig.run();
        CHECK(pair.rig.offered() == 1000);
        CHECK(pair.rig.got().received_frames == 500);
        CHECK(pair.rig.got().strayed_frames == 500);
        CHECK(damage_of(pair.rig.got()) == Damage{});
        CHECK(pair.map.missing(0, 500) == 0);
        std::uint64_t in_slices = 0;
        for (const auto& slice : pair.rig.got().delay_by_slice.all()) {
            in_slices += slice.frames;
            CHECK(slice.frames == 10);
        }
        CHECK(in_slices == 500);
    }
}

TEST_CASE("another tester's clock says nothing: its frames are strayed, not of another time") {
    Rig4 rig{{.frames = 1000, .streams = 2}};
    rig.expectation->share = TesterShare{1, 1, 2};
    tally::SequenceMap map{500, false};
    rig.receiver.arm(*rig.expectation, map, *rig.tally, rig.clock.now());
    rig.run_behind(10 * us);
    CHECK(rig.got().strayed_frames == 500);
    CHECK(rig.got().wrong_time_frames == 500);  // its own
    CHECK(rig.got().received_frames == 0);
}

TEST_CASE("a time is a tick, and the other way round") {
    constexpr double rate = 2.596e9;
    const pace::ClockSample sample{
        .ticks = 1'000'000'000'000, .steered_ns = 27'000'123'456'789, .time_ns = 1'795'628'890'062'122'339};
    for (const std::int64_t ahead_ns : {std::int64_t{0}, std::int64_t{1'000}, std::int64_t{750'000'000},
                                        std::int64_t{-20'000'000}, std::int64_t{60'000'000'000}}) {
        const auto ticks = pace::ticks_at(sample.steered_ns + ahead_ns, sample, rate);
        CHECK(static_cast<double>(static_cast<std::int64_t>(ticks - sample.ticks)) ==
              doctest::Approx(static_cast<double>(ahead_ns) * rate / 1e9));
        CHECK(std::abs(pace::time_at(ticks, sample, rate) - sample.time_ns - ahead_ns) <= 1);
    }
    const auto now = pace::sample_clocks();
    CHECK(now.time_ns > 1'700'000'000'000'000'000);
}

}  // namespace share_test
