// SPDX-License-Identifier: Apache-2.0
// Elements: RSS-01, RSS-03, RSS-04, RSS-05; queues with known truth.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <array>
#include <cmath>
#include <deque>
#include <map>
#include <set>
#include <vector>

#include "elements/calendar.hpp"
#include "elements/defects.hpp"
#include "elements/elements.hpp"
#include "elements/spread.hpp"
#include "octets.hpp"

namespace elements_test {

using namespace evenhand;
using namespace evenhand::router;

namespace {

constexpr const char* verification_key =
    "6d5a56da255b0ec24167253d43a38fb0d0ca2bcbae7b30b477cb2da38030f20c6a42b73bbeac01fa";

std::vector<std::uint8_t> key_of(const char* digits) {
    std::vector<std::uint8_t> key;
    for (const auto octet : tests::octets_of(digits)) key.push_back(static_cast<std::uint8_t>(octet));
    return key;
}

Spread spread_of(HashType hash, bool is_symmetric = false, std::size_t elements = 16) {
    SpreadOptions options{.hash = hash, .is_symmetric = is_symmetric, .key = key_of(verification_key), .table = {}};
    for (std::size_t i = 0; i < 128; ++i) options.table.push_back(static_cast<std::uint16_t>(i % elements));
    return Spread{options};
}

/// Addresses and ports one after the other, as they stand in a frame.
tests::Octets tuple(const char* source, const char* destination, std::uint16_t source_port,
                    std::uint16_t destination_port) {
    tests::Octets octets;
    for (const char* text : {source, destination}) {
        const auto address = plan::parse_address(text).value();
        for (const auto octet : address.bytes()) octets.push_back(static_cast<std::byte>(octet));
    }
    for (const auto port : {source_port, destination_port}) {
        octets.push_back(static_cast<std::byte>(port >> 8U));
        octets.push_back(static_cast<std::byte>(port));
    }
    return octets;
}

/// The hash by its definition: a window of the key for each set bit.
std::uint32_t slow_hash(const std::vector<std::uint8_t>& key, const tests::Octets& input) {
    std::uint32_t hash = 0;
    for (std::size_t bit = 0; bit < 8 * input.size(); ++bit) {
        if ((static_cast<unsigned>(input[bit / 8]) >> (7 - bit % 8) & 1U) == 0) continue;
        for (std::size_t i = 0; i < 32; ++i)
            hash ^= static_cast<std::uint32_t>(key[(bit + i) / 8] >> (7 - (bit + i) % 8) & 1U) << (31 - i);
    }
    return hash;
}

constexpr Ticks second = 1'000'000'000;

}  // namespace

TEST_CASE("the Toeplitz hash gives the published vectors (RSS-03)") {
    struct Vector {
        const char* source;
        std::uint16_t source_port;
        const char* destination;
        std::uint16_t destination_port;
        std::uint32_t by_addresses;
        std::uint32_t with_ports;
    };
    const ToeplitzHash hash{key_of(verification_key)};
    for (const auto& v : {Vector{"66.9.149.187", 2794, "161.142.100.80", 1766, 0x323e8fc2, 0x51ccc178},
                          Vector{"199.92.111.2", 14230, "65.69.140.83", 4739, 0xd718262a, 0xc626b0ea},
                          Vector{"24.19.198.95", 12898, "12.22.207.184", 38024, 0xd2d0a5de, 0x5c2b394a},
                          Vector{"38.27.205.30", 48228, "209.142.163.6", 2217, 0x82989176, 0xafc7327f},
                          Vector{"153.39.163.191", 44251, "202.188.127.2", 1303, 0x5d1809c5, 0x10e828a2}}) {
        CAPTURE(v.source);
        const auto octets = tuple(v.source, v.destination, v.source_port, v.destination_port);
        CHECK(hash.hash(octets.data(), 8) == v.by_addresses);
        CHECK(hash.hash(octets.data(), 12) == v.with_ports);
    }
}

TEST_CASE("the hash by table is the hash by definition, for any input up to IPv6 with ports") {
    const auto key = key_of(verification_key);
    const ToeplitzHash hash{key};
    CHECK(rc::check([&] {
        const auto values = *rc::gen::container<std::vector<std::uint8_t>>(
            *rc::gen::inRange<std::size_t>(0, longest_hash_input + 1), rc::gen::arbitrary<std::uint8_t>());
        tests::Octets input;
        for (const auto value : values) input.push_back(static_cast<std::byte>(value));
        RC_ASSERT(hash.hash(input.data(), input.size()) == slow_hash(key, input));
    }));
}

TEST_CASE("ports do not change the element of a type 1 hash, and do that of type 2 (RSS-01)") {
    for (const auto& [version, left, right] : {std::tuple{frame::IpVersion::v4, "198.18.0.1", "198.19.0.1"},
                                               std::tuple{frame::IpVersion::v6, "2001:2::2", "2001:2:0:8000::2"}}) {
        const auto type1 = spread_of(HashType::addresses);
        const auto type2 = spread_of(HashType::addresses_and_ports);
        std::set<unsigned> seen1;
        std::set<unsigned> seen2;
        for (std::uint16_t port = 1024; port < 1524; ++port) {
            const auto t = tuple(left, right, port, 9);
            const std::byte* const ports = t.data() + 2 * plan::address_octets(version);
            seen1.insert(type1.element(version, t.data(), ports));
            seen2.insert(type2.element(version, t.data(), ports));
            CHECK(type2.element(version, t.data(), nullptr) ==
                  type1.element(version, t.data(), nullptr));  // a fragment has no ports
        }
        CHECK(seen1.size() == 1);
        CHECK(seen2.size() == 16);
    }
}

TEST_CASE("a symmetric hash takes both directions of a flow to one element (RSS-05)") {
    for (const auto hash : {HashType::addresses, HashType::addresses_and_ports}) {
        const auto spread = spread_of(hash, true);
        std::set<unsigned> seen;
        for (unsigned i = 0; i < 64; ++i) {
            const auto host = fmt::format("198.18.{}.7", i);
            const auto there = tuple(host.c_str(), "198.19.0.9", static_cast<std::uint16_t>(2000 + i), 80);
            const auto back = tuple("198.19.0.9", host.c_str(), 80, static_cast<std::uint16_t>(2000 + i));
            CHECK(spread.element(frame::IpVersion::v4, there.data(), there.data() + 8) ==
                  spread.element(frame::IpVersion::v4, back.data(), back.data() + 8));
            seen.insert(spread.element(frame::IpVersion::v4, there.data(), there.data() + 8));
        }
        CHECK(seen.size() > 8);
    }
}

TEST_CASE("same-index pairing gives a symmetric hash one input (RSS-05, SEED-41)") {
    const auto spread = spread_of(HashType::addresses, true);
    std::set<unsigned> seen;
    for (unsigned i = 1; i < 255; ++i) {
        const auto t =
            tuple(fmt::format("198.18.{}.{}", i, i).c_str(), fmt::format("198.19.{}.{}", i, i).c_str(), 1, 1);
        seen.insert(spread.element(frame::IpVersion::v4, t.data(), nullptr));
    }
    CHECK(seen.size() == 1);
}

TEST_CASE("an element serves at its rate, and loses what its queue cannot hold") {
    Elements elements{{.count = 2, .rate_fps = 1e6, .queue_frames = 4}, second};  // 1000 ticks a frame
    const Ticks start = 77;
    std::vector<Ticks> departures;
    int lost = 0;
    for (int i = 0; i < 10; ++i) {  // all at once
        if (const auto at = elements.admit(0, start)) {
            departures.push_back(*at - start);
        } else {
            ++lost;
        }
    }
    CHECK(departures == std::vector<Ticks>{1000, 2000, 3000, 4000, 5000});  // one in service, four waiting
    CHECK(lost == 5);
    CHECK(elements.counters(0).served_frames == 5);
    CHECK(elements.counters(0).dropped_frames == 5);
    CHECK(elements.counters(0).most_waiting == 4);
    CHECK(elements.admit(1, start) == start + 1000);  // the other one is idle
    CHECK_FALSE(elements.admit(0, start + 999));      // still five in it
    CHECK(elements.admit(0, start + 1000) == start + 6000);
    CHECK(elements.admit(0, start + 100'000) == start + 101'000);  // idle again
}

TEST_CASE("the element's arithmetic equals a queue that is played out") {
    CHECK(rc::check([] {
        const auto depth = *rc::gen::inRange<std::size_t>(1, 9);
        const auto gaps = *rc::gen::container<std::vector<Ticks>>(rc::gen::inRange<Ticks>(0, 3000));
        Elements elements{{.count = 1, .rate_fps = 1e6, .queue_frames = depth}, second};
        std::deque<Ticks> in_system;  // departures of the frames that have not left
        Ticks now = 1'000'000;
        for (const auto gap : gaps) {
            now += gap;
            while (!in_system.empty() && in_system.front() <= now) in_system.pop_front();
            const auto departure = elements.admit(0, now);
            RC_ASSERT(departure.has_value() == (in_system.size() <= depth));
            if (!departure) continue;
            RC_ASSERT(*departure == (in_system.empty() ? now : in_system.back()) + 1000);
            in_system.push_back(*departure);
        }
    }));
}

TEST_CASE("where some frames are dear the queue still counts frames, and each is served for its own time") {
    CHECK(rc::check([] {
        const auto depth = *rc::gen::inRange<std::size_t>(1, 9);
        const auto gaps = *rc::gen::container<std::vector<Ticks>>(rc::gen::inRange<Ticks>(0, 6000));
        Elements elements{{.count = 2, .rate_fps = 1e6, .queue_frames = depth, .dear_cost = 3.5}, second};
        Elements plain{{.count = 2, .rate_fps = 1e6, .queue_frames = depth}, second};
        std::deque<Ticks> in_system;  // departures of the frames that have not left
        std::size_t most_waiting = 0;
        std::uint64_t dropped = 0;
        Ticks now = 1'000'000;
        for (const auto gap : gaps) {
            now += gap;
            const bool is_dear = gap % 3 == 0;
            while (!in_system.empty() && in_system.front() <= now) in_system.pop_front();
            const auto departure = elements.admit(0, now, is_dear);
            RC_ASSERT(departure.has_value() == (in_system.size() <= depth));
            // Where none is, it is as if there were no dear ones.
            RC_ASSERT(elements.admit(1, now, false) == plain.admit(1, now));
            if (!departure) {
                ++dropped;
                continue;
            }
            RC_ASSERT(*departure == (in_system.empty() ? now : in_system.back()) + (is_dear ? 3500 : 1000));
            RC_ASSERT(*departure <= now + elements.longest_stay());
            most_waiting = std::max(most_waiting, in_system.size());
            in_system.push_back(*departure);
        }
        RC_ASSERT(elements.counters(0).most_waiting == most_waiting);
        RC_ASSERT(elements.counters(0).dropped_frames == dropped);
        RC_ASSERT(elements.counters(1).most_waiting == plain.counters(1).most_waiting);
    }));
}

TEST_CASE("what an element finds late leaves in its order, also where the frame before it is dear") {
    constexpr Ticks ms = second / 1000;
    Elements elements{{.count = 2, .rate_fps = 1000, .queue_frames = 64, .dear_cost = 5}, second};
    constexpr Ticks found = 100 * ms;
    const auto dear = elements.admit(0, 0, true);
    REQUIRE(dear);
    CHECK(elements.leave_at(0, *dear, found, true) == found + 5 * ms);
    const auto cheap = elements.admit(0, 0, false);
    REQUIRE(cheap);
    CHECK(elements.leave_at(0, *cheap, found, false) == found + 5 * ms);
    const auto elsewhere = elements.admit(1, 0, false);
    REQUIRE(elsewhere);
    CHECK(elements.leave_at(1, *elsewhere, found, false) == found + ms);
}

TEST_CASE("a rate that is no divisor of the clock is kept over a million frames") {
    Elements elements{{.count = 1, .rate_fps = 4e6 / 3, .queue_frames = 2'000'000}, 2'596'110'000};
    Ticks last = 0;
    for (int i = 0; i < 1'000'000; ++i) last = elements.admit(0, 1000).value();
    const double seconds = static_cast<double>(last - 1000) / 2'596'110'000;
    CHECK(1e6 / seconds == doctest::Approx(4e6 / 3).epsilon(2e-6));
}

TEST_CASE("an element that has served for years serves the next frame as the first") {
    const auto course = [](Ticks since_start) {
        Elements elements{{.count = 2, .rate_fps = 3e6 / 7, .queue_frames = 4}, second};
        (void)elements.admit(1, 0);
        std::vector<Ticks> departures;
        for (int i = 0; i < 4000; ++i) {
            const Ticks arrival = since_start + static_cast<Ticks>(i) * 2000;
            const auto departure = elements.admit(0, arrival);
            departures.push_back(departure ? *departure - since_start : 0);
        }
        departures.push_back(*elements.admit(1, since_start + second) - since_start);  // idle since the beginning
        departures.push_back(elements.counters(0).dropped_frames);
        return departures;
    };
    const auto usual = course(0);
    CHECK(usual.back() > 500);
    for (const unsigned bit : {48U, 55U, 56U, 57U, 62U}) {
        for (const Ticks before : {Ticks{0}, Ticks{1}, Ticks{4'000'000}, Ticks{100'000'000}})
            CHECK(course((Ticks{1} << bit) - before) == usual);
    }
}

TEST_CASE("a full neighbour table makes frames dearer, a small one does not") {
    const NeighborCost cost{.free_entries = 1000, .growth = 0.1};
    CHECK(cost.factor(2) == 1.0);
    CHECK(cost.factor(1000) == 1.0);
    CHECK(cost.factor(2000) == doctest::Approx(1.1));
    CHECK(cost.factor(64000) == doctest::Approx(1.6).epsilon(0.01));
    CHECK(NeighborCost{}.factor(1'000'000) == 1.0);
    Elements elements{{.count = 1, .rate_fps = 1e6, .queue_frames = 4}, second};
    elements.set_cost_factor(cost.factor(2000));
    CHECK(elements.admit(0, 0) == 1100);
}

TEST_CASE("what is put into the calendar comes out at its time, once, and in order for each element") {
    CHECK(rc::check([] {
        constexpr std::size_t elements = 3;
        const auto horizon = *rc::gen::element<Ticks>(1000, 100'000, 50'000'000);
        const Ticks start = *rc::gen::inRange<Ticks>(0, 1'000'000);
        Calendar<std::pair<std::size_t, int>> calendar{500, horizon, start};
        std::array<Ticks, elements> last{};
        last.fill(start);
        std::array<int, elements> put{};
        std::array<int, elements> taken{};
        std::map<std::pair<std::size_t, int>, Ticks> due;
        Ticks now = start;
        for (int i = 0; i < 300; ++i) {
            const auto e = *rc::gen::inRange<std::size_t>(0, elements);
            last[e] = std::min(now + horizon, std::max(last[e], now) + *rc::gen::inRange<Ticks>(0, horizon / 4 + 1));
            RC_ASSERT(calendar.add({e, put[e]}, last[e]));
            due[{e, put[e]++}] = last[e];
            now += *rc::gen::inRange<Ticks>(0, horizon / 100 + 2);
            std::vector<std::pair<std::pair<std::size_t, int>, Ticks>> left;
            calendar.advance(now, [&](const auto& item, Ticks departure) { left.emplace_back(item, departure); });
            for (const auto& [item, departure] : left) {
                RC_ASSERT(due.at(item) == departure);
                RC_ASSERT(departure <= now);
                RC_ASSERT(item.second == taken[item.first]++);
                due.erase(item);
            }
            for (const auto& [item, departure] : due) RC_ASSERT(departure > now);
        }
        calendar.advance(now + 2 * horizon, [&](const auto& item, Ticks) { due.erase(item); });
        RC_ASSERT(due.empty());
        RC_ASSERT(calendar.waiting() == 0);
    }));
}

TEST_CASE("a calendar that nobody looked at for a day is emptied once, in order, and goes on") {
    for (const Ticks horizon : {Ticks{0}, Ticks{1'000'000}}) {
        constexpr Ticks day = 86'400 * second;
        Calendar<int> calendar{100, horizon, 5};
        std::vector<int> left;
        const auto leave = [&](int item, Ticks) { left.push_back(item); };
        for (int i = 0; i < 10; ++i) CHECK(calendar.add(i, 5 + horizon * static_cast<Ticks>(i) / 10));
        calendar.advance(day, leave);
        CHECK(left == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
        CHECK(calendar.add(10, day + horizon));
        calendar.advance(day + horizon, leave);
        CHECK(left.back() == 10);
    }
}

TEST_CASE("a full calendar refuses") {
    Calendar<int> calendar{2, 1000, 0};
    CHECK(calendar.add(1, 10));
    CHECK(calendar.add(2, 10));
    CHECK_FALSE(calendar.add(3, 10));
    int sum = 0;
    calendar.advance(10, [&](int item, Ticks) { sum += item; });
    CHECK(sum == 3);
    CHECK(calendar.add(3, 20));
}

TEST_CASE("defects hit the numbered frames and no other") {
    Defects defects{{.seed = 1, .ratios = {}, .at = {{{5}, {7, 6}, {999'999}, {7}}}}};
    std::map<std::uint64_t, unsigned> hit;
    for (std::uint64_t k = 0; k < 1'000'000; ++k) {
        if (const unsigned set = defects.of(k); set != 0) hit[k] = set;
    }
    const auto bit = [](Defect d) { return 1U << static_cast<unsigned>(d); };
    CHECK(hit == std::map<std::uint64_t, unsigned>{{5, bit(Defect::loss)},
                                                   {6, bit(Defect::duplication)},
                                                   {7, bit(Defect::duplication) | bit(Defect::corruption)},
                                                   {999'999, bit(Defect::reordering)}});
    CHECK(Defects{}.is_none());
}

TEST_CASE("seeded defects come at their ratio, the same for the same seed") {
    constexpr std::uint64_t frames = 2'000'000;
    const auto count = [](std::uint64_t seed) {
        Defects defects{{.seed = seed, .ratios = {0.01, 0, 0, 0.001}, .at = {}}};
        std::array<std::uint64_t, defect_kinds> counts{};
        std::uint64_t sum_of_numbers = 0;
        for (std::uint64_t k = 0; k < frames; ++k) {
            const unsigned set = defects.of(k);
            for (std::size_t i = 0; i < defect_kinds; ++i) counts[i] += set >> i & 1U;
            if (set != 0) sum_of_numbers += k;
        }
        return std::pair{counts, sum_of_numbers};
    };
    const auto [counts, sum] = count(7);
    CHECK(counts[0] == doctest::Approx(0.01 * frames).epsilon(0.03));  // four standard deviations are 0.028
    CHECK(counts[1] == 0);
    CHECK(counts[3] == doctest::Approx(0.001 * frames).epsilon(0.09));
    CHECK(count(7) == std::pair{counts, sum});
    CHECK(count(8).second != sum);
    Defects all{{.seed = 1, .ratios = {1, 0, 0, 0}, .at = {}}};
    for (std::uint64_t k = 0; k < 100; ++k) CHECK(Defects::has(all.of(k), Defect::loss));
}

}  // namespace elements_test
