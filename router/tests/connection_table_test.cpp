// SPDX-License-Identifier: Apache-2.0
// Connection table: beside a list that is searched from end to end.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "plans.hpp"
#include "slow.hpp"
#include "tables/connection_table.hpp"

namespace connection_table_test {

using namespace evenhand;
using namespace evenhand::router;
using tests::ip;

namespace {

constexpr auto none = ConnectionTable::none;

/// What the table should be, as simply as it can be written.
class Model {
   public:
    struct Known {
        InsideTuple inside;
        OutsideTuple outside;
        Ticks last_used = 0;
    };

    Model(Ticks timeout, bool reuses_ports) : timeout_{timeout}, reuses_ports_{reuses_ports} {}

    Known* find(const InsideTuple& tuple, Ticks now) {
        return first([&](const Known& k) { return k.inside == tuple; }, now);
    }
    Known* find(const OutsideTuple& tuple, Ticks now) {
        return first([&](const Known& k) { return k.outside == tuple; }, now);
    }
    bool is_free(const OutsideTuple& tuple, Ticks now) {
        return first(
                   [&](const Known& k) {
                       return reuses_ports_ ? k.outside == tuple
                                            : k.outside.number == tuple.number && k.outside.port == tuple.port &&
                                                  k.outside.pair == tuple.pair;
                   },
                   now) == nullptr;
    }
    std::size_t living(Ticks now) {
        return static_cast<std::size_t>(std::ranges::count_if(known, [&](const Known& k) { return !is_over(k, now); }));
    }

    std::vector<Known> known;  // the oldest first

   private:
    [[nodiscard]] bool is_over(const Known& k, Ticks now) const {
        return timeout_ != 0 && now - k.last_used >= timeout_;
    }
    Known* first(const auto& is, Ticks now) {
        const auto found = std::ranges::find_if(known, [&](const Known& k) { return is(k) && !is_over(k, now); });
        return found == known.end() ? nullptr : &*found;
    }

    Ticks timeout_;
    bool reuses_ports_;
};

/// Few values, so that tuples meet often.
struct Tuples {
    std::mt19937_64 random;

    std::uint64_t below(std::uint64_t n) { return random() % n; }
    AddressWords address(bool is_v6) {
        plan::IpAddress address = is_v6 ? ip("2001:2::") : ip("198.18.0.0");
        address.octets[is_v6 ? 13 : 3] = static_cast<std::uint8_t>(below(4));
        return AddressWords{address};
    }
    InsideTuple inside() {
        return {.host = address(true),
                .peer = address(below(2) == 0),
                .host_port = static_cast<std::uint16_t>(below(3)),
                .peer_port = static_cast<std::uint16_t>(below(2)),
                .pair = static_cast<std::uint8_t>(below(8) == 0 ? 3 : 0)};
    }
    OutsideTuple outside(const InsideTuple& of) {
        return {.peer = of.peer,
                .peer_port = of.peer_port,
                .number = static_cast<std::uint16_t>(below(3)),
                .port = static_cast<std::uint16_t>(below(4)),
                .pair = of.pair};
    }
};

void compare(const ConnectionTableOptions& options, std::uint64_t seed) {
    ConnectionTable table{options};
    Model model{options.timeout, options.reuses_ports};
    Tuples tuples{std::mt19937_64{seed}};
    Ticks now = 5;
    std::size_t added = 0;
    std::size_t taken = 0;
    for (int i = 0; i < 20'000; ++i) {
        now += tuples.below(3) == 0 ? tuples.below(options.timeout / 4 + 2) : 0;
        const InsideTuple inside = tuples.inside();
        const OutsideTuple outside = tuples.outside(inside);
        const std::size_t found_before = table.size();
        Model::Known* const known = model.find(inside, now);
        const auto entry = table.find(inside, now);
        REQUIRE((entry == none) == (known == nullptr));
        if (known != nullptr) {
            CHECK(table[entry].number == known->outside.number);
            CHECK(table[entry].port == known->outside.port);
            CHECK(table[entry].host == inside.host);
            if (tuples.below(2) == 0) {
                known->last_used = now;
                table.use(entry, now);
            }
        }
        Model::Known* const from_outside = model.find(outside, now);
        const auto outside_entry = table.find(outside, now);
        REQUIRE((outside_entry == none) == (from_outside == nullptr));
        if (from_outside != nullptr) {
            CHECK(table[outside_entry].host == from_outside->inside.host);
            CHECK(table[outside_entry].host_port == from_outside->inside.host_port);
        }
        REQUIRE(table.is_free(outside, now) == model.is_free(outside, now));
        CHECK(table.size() <= found_before);
        if (tuples.below(40) == 0) table.reclaim(now, tuples.below(3) == 0 ? 1 : 1000);
        if (known == nullptr && !table.is_full()) {
            // Also a tuple that another one has outside.
            table.add(inside, outside.number, outside.port, false, now);
            std::erase_if(model.known, [&](const Model::Known& k) { return k.inside == inside; });  // it is over
            model.known.push_back({.inside = inside, .outside = outside, .last_used = now});
            ++added;
        } else if (options.timeout == 0 && tuples.below(20) == 0 && table.size() != 0) {
            table.remove_oldest();
            model.known.erase(model.known.begin());
            ++taken;
        } else if (tuples.below(2000) == 0) {
            taken += table.clear();
            model.known.clear();
            CHECK(table.size() == 0);
        }
        CHECK(table.size() + table.expired() + taken == added);
        if (options.timeout == 0) {
            REQUIRE(table.size() == model.known.size());
        } else {
            REQUIRE(table.size() >= model.living(now));
        }
    }
    CHECK(added > 500);
    if (options.timeout == 0) return;
    CHECK(table.expired() > 100);
    // A little later nobody is there.
    table.reclaim(now + options.timeout + options.timeout / 128 + 2, 1'000'000);
    CHECK(table.size() == 0);
}

}  // namespace

TEST_CASE("any sequence of operations finds the connections that a search through all of them finds") {
    std::uint64_t seed = 1;
    for (const Ticks timeout : {Ticks{0}, Ticks{1}, Ticks{100}, Ticks{10'000}, Ticks{1'000'000'000}}) {
        for (const bool reuses_ports : {true, false}) {
            for (const std::size_t capacity : {std::size_t{1}, std::size_t{7}, std::size_t{64}, std::size_t{300}}) {
                CAPTURE(timeout);
                CAPTURE(reuses_ports);
                CAPTURE(capacity);
                if (capacity == 1) continue;                      // fewer than the 500 that are asked for
                if (tests::is_slow && capacity == 300) continue;  // most of the time goes into the search of the list
                compare({.capacity = capacity, .timeout = timeout, .reuses_ports = reuses_ports}, seed++);
            }
        }
    }
}

TEST_CASE("a full table of many connections finds each of them both ways") {
    constexpr std::size_t capacity = 200'000;
    ConnectionTable table{{.capacity = capacity}};
    const auto inside = [](std::size_t i) {
        plan::IpAddress host = ip("10.0.0.0");
        host.octets[2] = static_cast<std::uint8_t>(i >> 8U);
        host.octets[3] = static_cast<std::uint8_t>(i);
        return InsideTuple{.host = AddressWords{host},
                           .peer = AddressWords{ip("198.19.0.1")},
                           .host_port = static_cast<std::uint16_t>(i >> 16U),
                           .peer_port = 7};
    };
    const auto port = [](std::size_t i) { return static_cast<std::uint16_t>(i); };
    const auto number = [](std::size_t i) { return static_cast<std::uint16_t>(i >> 16U); };
    for (std::size_t i = 0; i < capacity; ++i) {
        REQUIRE_FALSE(table.is_full());
        table.add(inside(i), number(i), port(i), i % 2 == 1, 0);
    }
    CHECK(table.is_full());
    for (std::size_t i = 0; i < capacity; i += 7) {
        const auto entry = table.find(inside(i), 1);
        REQUIRE(entry != none);
        CHECK(table[entry].is_mark == i % 2);
        CHECK(table.find(
                  OutsideTuple{
                      .peer = AddressWords{ip("198.19.0.1")}, .peer_port = 7, .number = number(i), .port = port(i)},
                  1) == entry);
    }
    CHECK(table.find(inside(capacity), 1) == none);
    table.remove_oldest();
    CHECK(table.find(inside(0), 1) == none);
    CHECK(table.find(inside(1), 1) != none);
    CHECK(table.clear() == capacity - 1);
    CHECK(table.find(inside(1), 1) == none);
    CHECK(table.removals() == capacity);
}

TEST_CASE("entries whose time is over are freed within a two hundred and fiftieth of it, each looked at once") {
    constexpr Ticks timeout = 1'000'000;
    constexpr std::uint16_t count = 1000;
    ConnectionTable table{{.capacity = count, .timeout = timeout}};
    const AddressWords peer{ip("198.19.0.1")};
    for (std::uint16_t i = 0; i < count; ++i)
        table.add({.host = peer, .peer = peer, .host_port = i, .peer_port = 7}, 0, i, false, Ticks{i} * 1000);
    std::size_t looked = 0;
    for (Ticks now = 0; now < 2 * timeout + timeout / 250; now += 100) {
        looked += table.reclaim(now, 16);
        const std::size_t over = now < timeout ? 0 : std::min<std::size_t>((now - timeout) / 1000 + 1, count);
        CHECK(table.expired() <= over);
        const Ticks earlier = now - std::min(now, timeout / 250);
        CHECK(table.expired() >=
              (earlier < timeout ? 0 : std::min<std::size_t>((earlier - timeout) / 1000 + 1, count)));
    }
    CHECK(looked == count);
    CHECK(table.size() == 0);
}

}  // namespace connection_table_test
