// SPDX-License-Identifier: Apache-2.0
// Station 1: the draw from lists of address ranges. SEED-40, SEED-41, SEED-43, SEED-44.
#include "plan/whole_draw.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <array>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "chi_square.hpp"
#include "lists.hpp"
#include "plan/listed_addresses.hpp"
#include "plan/scaled.hpp"
#include "plan/sent_flows.hpp"
#include "slow.hpp"

namespace whole_draw_test {

using namespace evenhand;
using plan::Choice;
using plan::Direction;
using plan::FlowBlock;
using plan::FlowDraw;
using plan::HostRange;
using plan::IpVersion;
using plan::Mode;
using tests::ip;
using tests::is_even;
using tests::list_of;
using tests::listed;

namespace {

constexpr std::uint64_t seed = 20261129;
constexpr std::uint64_t draws = tests::is_slow ? 200'000 : 1'000'000;

/// Gives the source and the destination of each of this many frames to `look`.
template <class Look>
void draw_all(const plan::AddressPlan& p, std::uint64_t frames, Look look, Direction direction = Direction::forward) {
    const FlowDraw draw{p, direction, seed};
    const bool is_v4 = p.version() == IpVersion::v4;
    FlowBlock block;
    for (std::uint64_t first = 0; first < frames; first += FlowBlock::size) {
        draw.draw_block(first, 1, block);
        for (std::size_t j = 0; j < FlowBlock::size; ++j) {
            if (is_v4) {
                look(Wide{block.source(j)}, Wide{block.destination(j)});
            } else {
                const std::byte* const pair = block.addresses[j].data();
                look(plan::number_of(IpVersion::v6, pair), plan::number_of(IpVersion::v6, pair + 16));
            }
        }
    }
}

/// The addresses of a block, and the values of its lanes, as single draws give them.
bool is_as_single_draws(const FlowDraw& draw, const FlowBlock& block, std::size_t j, std::uint64_t k) {
    const auto flow = draw.draw(k);
    const auto addresses = draw.whole_addresses(k).value();
    const bool is_v4 = addresses.source.version == IpVersion::v4;
    const auto octets_in_block = [&](std::size_t end) {
        return plan::address_of(IpVersion::v6, plan::number_of(IpVersion::v6, block.addresses[j].data() + 16 * end));
    };
    const bool are_addresses =
        is_v4 ? plan::number_of(addresses.source) == flow.source &&
                    plan::number_of(addresses.destination) == flow.destination
              : octets_in_block(0) == addresses.source && octets_in_block(1) == addresses.destination;
    return are_addresses && block.source(j) == flow.source && block.destination(j) == flow.destination &&
           block.source_port(j) == flow.source_port && block.destination_port(j) == flow.destination_port;
}

std::vector<plan::AddressPlan> all_kinds() {
    std::vector<plan::AddressPlan> plans{tests::both_listed_v4(), tests::both_listed_v6()};
    for (const auto version : {IpVersion::v4, IpVersion::v6}) {
        for (const auto mode : {Mode::pseudorandom, Mode::fixed, Mode::increment, Mode::decrement}) {
            for (const auto choice : {Choice::entry, Choice::host}) plans.push_back(listed(version, 333, choice, mode));
        }
        auto networks = listed(version, 333);
        networks.left.hosts.host = {.first = 1, .count = 200};
        networks.left.hosts.network = plan::NetworkRange{.offset = version == IpVersion::v4 ? 2U : 6U, .count = 7};
        plans.push_back(networks);
        networks.left.hosts.network->mode = Mode::increment;
        networks.destination_ports = {.first = 7, .count = 3, .mode = Mode::decrement};
        plans.push_back(networks);
        networks.left.hosts.host.mode = Mode::decrement;
        plans.push_back(networks);
        plans.push_back(version == IpVersion::v4 ? tests::listed_v4(list_of({{"20.0.0.0", "29.0.0.1"}}))
                                                 : tests::listed_v6(list_of({{"2500::", "2500::ffff"}})));
        plans.push_back(version == IpVersion::v4 ? tests::listed_v4(list_of({{"32.0.0.0", "159.255.255.255"}}))
                                                 : tests::listed_v6(list_of({{"2500::", "2500::ffff"}}, Choice::host)));
        auto fixed = listed(version, 333);
        fixed.fixed_source = true;
        plans.push_back(fixed);
    }
    // Both sides have the words of one counter, each of them has its own, and entries that are no prefixes.
    for (const auto& right : {tests::Ends{"2500::", "2500::ffff:ffff:ffff:ffff"},
                              {"2500::", "2500::1:0:0:0:ffff"},
                              {"2500::", "2500::1:0:0:0:fffe"}}) {
        auto of_both = tests::listed_v6(list_of({right, {"2600::40", "2600::7f"}}));
        of_both.left.hosts = HostRange::of(list_of({{"2400::", "2400::ffff:ffff:ffff:ffff"}}));
        plans.push_back(of_both);
    }
    auto odd = listed(IpVersion::v6, 333);
    odd.left.hosts.offset = 11;
    plans.push_back(odd);
    return plans;
}

}  // namespace

TEST_CASE("every vector unit gives the same words, which are those of philox4x32") {
    const bool same = rc::check("plain, avx2 and avx512 agree", [](std::uint32_t stream, plan::PhiloxKey key) {
        const auto counters =
            *rc::gen::container<std::vector<std::uint64_t>>(plan::DrawLanes::size, rc::gen::arbitrary<std::uint64_t>());
        for (const char* const name : {"plain", "avx2", "avx512"}) {
            const auto variant = plan::word_variant(name);
            if (variant == nullptr) continue;
            plan::DrawLanes lanes;
            variant(counters.data(), stream, key, lanes);
            for (std::size_t j = 0; j < counters.size(); ++j) {
                const auto words =
                    plan::philox4x32({static_cast<std::uint32_t>(counters[j]),
                                      static_cast<std::uint32_t>(counters[j] >> 32U & 0xFFFFU), stream, 0},
                                     key);
                for (std::size_t i = 0; i < words.size(); ++i) RC_ASSERT(lanes.field[i][j] == words[i]);
            }
        }
    });
    CHECK(same);
}

TEST_CASE_TEMPLATE("every vector unit puts the same addresses, which are those of scaled() and selected()", Number,
                   std::uint32_t, Wide) {
    const bool same = rc::check("plain and avx2 agree", [] {
        std::mt19937_64 random{*rc::gen::arbitrary<std::uint64_t>()};
        std::vector<plan::AddressEntry<Number>> entries(random() % 4 == 0 ? 1 : 100);
        const auto any = [&] {
            return static_cast<Number>(static_cast<Wide>(random()) << 64U | random()) >>
                   random() % (8 * sizeof(Number));
        };
        for (auto& [first, last] : entries) {
            first = any();
            last = any();
            if (last < first) std::swap(first, last);
        }
        entries[0] = {.first = 0, .last = static_cast<Number>(~Number{0})};
        plan::DrawLanes words;
        FlowBlock numbers;
        for (std::size_t j = 0; j < FlowBlock::size; ++j) {
            for (auto& field : words.field) field[j] = random() % 8 == 0 ? ~0U : static_cast<std::uint32_t>(random());
            for (const std::size_t end : {0U, 1U})
                numbers.lanes.field[end][j] = static_cast<std::uint32_t>(random() % entries.size());
        }
        const auto& w = words.field;
        for (const char* const name : {"plain", "avx2"}) {
            const auto variant = plan::listed_variant<Number>(name);
            if (variant == nullptr) continue;
            for (const std::size_t end : {0U, 1U}) {
                FlowBlock block = numbers;
                variant(entries, {w.data(), &w[1], &w[2], &w[3]}, end, block);
                RC_ASSERT(block.lanes.field[1 - end] == numbers.lanes.field[1 - end]);
                for (std::size_t j = 0; j < FlowBlock::size; ++j) {
                    const auto& entry = entries[numbers.lanes.field[end][j]];
                    const auto low = plan::joined(w[1][j], w[0][j]);
                    if constexpr (sizeof(Number) == sizeof(std::uint32_t)) {
                        RC_ASSERT(block.lanes.field[end][j] ==
                                  entry.first + plan::scaled(low, entry.last - entry.first));
                    } else {
                        const Wide address = plan::selected(entry, Wide{plan::joined(w[3][j], w[2][j])} << 64U | low);
                        RC_ASSERT(plan::number_of(IpVersion::v6, block.addresses[j].data() + 16 * end) == address);
                        RC_ASSERT(block.lanes.field[end][j] == plan::sum_of(address));
                    }
                }
            }
        }
    });
    CHECK(same);
}

TEST_CASE("a selected address is in its prefix, and each of its addresses is selected equally often") {
    const plan::AddressEntry<Wide> prefix{.first = Wide{0xABC0} << 100U, .last = (Wide{0xABC0} << 100U) + 15};
    std::map<Wide, unsigned> counts;
    for (std::uint64_t bits = 0; bits < 256; ++bits) ++counts[plan::selected(prefix, Wide{bits} << 64U | bits)];
    REQUIRE(counts.size() == 16);
    CHECK(counts.begin()->first == prefix.first);
    CHECK(counts.rbegin()->first == prefix.last);
    for (const auto& [address, count] : counts) CHECK(count == 16);
}

TEST_CASE("a block that is begun ahead is the same") {
    for (const auto version : {IpVersion::v4, IpVersion::v6}) {
        CHECK_FALSE(FlowDraw(listed(version, 100), Direction::forward, seed).has_ahead());
        const auto p = listed(version, 5000);
        for (const auto direction : {Direction::forward, Direction::reverse}) {
            const FlowDraw draw{p, direction, seed};
            REQUIRE(draw.has_ahead());
            std::array<FlowBlock, 2> blocks;
            draw.begin_block(70, 3, blocks[0]);
            for (std::size_t block = 0; block < 3; ++block) {
                const std::uint64_t first = 70 + 3 * FlowBlock::size * block;
                FlowBlock& current = blocks.at(block % 2);
                FlowBlock& next = blocks.at((block + 1) % 2);
                draw.draw_ahead(first, 3, current, next);
                draw.fetch_rest(next);
                for (std::size_t j = 0; j < FlowBlock::size; ++j)
                    CHECK(is_as_single_draws(draw, current, j, first + 3 * j));
            }
        }
    }
}

TEST_CASE("a block has the addresses of single draws, in every mode") {
    for (const auto& p : all_kinds()) {
        CAPTURE(p.name);
        CHECK_NOTHROW(check_plan(p));
        for (const auto direction : {Direction::forward, Direction::reverse}) {
            const FlowDraw draw{p, direction, seed};
            for (const auto& [first, stride] : {std::pair<std::uint64_t, std::uint64_t>{0, 1},
                                                {1'000'003, 7},
                                                {(std::uint64_t{1} << 48U) - 4000, 100}}) {
                FlowBlock block;
                draw.draw_block(first, stride, block);
                FlowBlock listed_block;
                std::array<std::uint64_t, FlowBlock::size> words{};
                for (std::size_t j = 0; j < words.size(); ++j)
                    words[j] = (first + (words.size() - 1 - j) * stride) | std::uint64_t{j} << 56U;
                draw.draw_listed(words.data(), listed_block);
                for (std::size_t j = 0; j < FlowBlock::size; ++j) {
                    CHECK(is_as_single_draws(draw, block, j, first + j * stride));
                    CHECK(is_as_single_draws(draw, listed_block, words.size() - 1 - j, first + j * stride));
                }
            }
        }
    }
}

TEST_CASE("drawn addresses are hosts of their sides") {
    for (const auto& p : all_kinds()) {
        CAPTURE(p.name);
        for (const auto direction : {Direction::forward, Direction::reverse}) {
            const auto& from = p.side(plan::sending_side(direction)).hosts;
            const auto& to = p.side(plan::receiving_side(direction)).hosts;
            bool are_hosts = true;
            draw_all(
                p, 2000,
                [&](Wide source, Wide destination) {
                    are_hosts = are_hosts && from.contains(plan::address_of(p.version(), source)) &&
                                to.contains(plan::address_of(p.version(), destination));
                },
                direction);
            CHECK(are_hosts);
        }
    }
}

TEST_CASE("entries are equally likely, whatever their sizes (SEED-40)") {
    for (const auto version : {IpVersion::v4, IpVersion::v6}) {
        const auto p = listed(version, 1000);
        const auto& list = *p.right.hosts.list;
        std::vector<std::uint64_t> counts(1000);
        draw_all(p, draws, [&](Wide /*source*/, Wide destination) {
            const auto address = plan::address_of(version, destination);
            ++counts[list.place(reinterpret_cast<const std::byte*>(address.octets.data()))->entry];
        });
        CHECK(is_even(counts, draws));
    }
}

TEST_CASE("addresses are equally likely within an entry, also if their number is no power of two") {
    for (const auto& entries : {std::vector<tests::Ends>{{"20.0.0.1", "20.0.0.254"}, {"21.0.0.0", "21.0.0.253"}},
                                std::vector<tests::Ends>{{"2400::1", "2400::fe"}, {"2400::1:0", "2400::1:fd"}}}) {
        const auto list = list_of(entries);
        const auto p = list->version() == IpVersion::v4 ? tests::listed_v4(list) : tests::listed_v6(list);
        std::array<std::vector<std::uint64_t>, 2> counts{std::vector<std::uint64_t>(254),
                                                         std::vector<std::uint64_t>(254)};
        draw_all(p, draws, [&](Wide /*source*/, Wide destination) {
            const std::size_t entry = destination > list->last(0) ? 1 : 0;
            ++counts.at(entry).at(static_cast<std::size_t>(destination - list->first(entry)));
        });
        // Both together: 508 addresses.
        counts[0].insert(counts[0].end(), counts[1].begin(), counts[1].end());
        CHECK(is_even(counts[0], draws));
    }
}

TEST_CASE("all bits of an address vary, each octet evenly and on its own") {
    const auto v4 = tests::listed_v4(list_of({{"128.0.0.0", "191.255.255.255"}}));
    const auto v6 = tests::listed_v6(list_of({{"2400::", "24ff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"}}));
    for (const auto& p : {v4, v6}) {
        const std::size_t octets = plan::address_octets(p.version());
        std::vector<std::vector<std::uint64_t>> alone(octets, std::vector<std::uint64_t>(256));
        // The upper halves of an octet and of the next one.
        std::vector<std::vector<std::uint64_t>> pairs(octets, std::vector<std::uint64_t>(256));
        draw_all(p, draws, [&](Wide /*source*/, Wide destination) {
            for (std::size_t i = 0; i < octets; ++i) {
                ++alone[i][static_cast<std::uint8_t>(destination >> 8 * i)];
                if (i + 1 < octets)
                    ++pairs[i][static_cast<std::uint8_t>((destination >> 8 * i & 0xF0U) |
                                                         (destination >> (8 * i + 12) & 0xFU))];
            }
        });
        for (std::size_t i = 0; i + 1 < octets; ++i) {
            CAPTURE(i);
            CHECK(is_even(alone[i], draws));
            if (i + 2 < octets) CHECK(is_even(pairs[i], draws));
        }
    }
}

TEST_CASE("with choose \"host\", all addresses of all entries are equally likely") {
    for (const auto& entries :
         {std::vector<tests::Ends>{{"20.0.0.0", "20.0.0.0"}, {"20.1.0.0", "20.1.3.231"}, {"30.0.0.5", "30.0.0.28"}},
          std::vector<tests::Ends>{{"2400::", "2400::"}, {"2401::", "2401::3e7"}, {"2402::5", "2402::1c"}}}) {
        const auto list = list_of(entries, Choice::host);
        REQUIRE(list->last_number() == 1024);
        const auto p = list->version() == IpVersion::v4 ? tests::listed_v4(list) : tests::listed_v6(list);
        std::vector<std::uint64_t> counts(1025);
        draw_all(p, draws, [&](Wide /*source*/, Wide destination) {
            const auto address = plan::address_of(list->version(), destination);
            ++counts[static_cast<std::size_t>(
                *list->number(reinterpret_cast<const std::byte*>(address.octets.data())))];
        });
        CHECK(is_even(counts, draws));
    }
}

TEST_CASE("source and destination, entry and place, are independent (SEED-41)") {
    for (const auto version : {IpVersion::v4, IpVersion::v6}) {
        // 15 entries on each side, of 256 addresses each.
        std::vector<tests::Ends> left;
        std::vector<tests::Ends> right;
        for (unsigned i = 1; i < 16; ++i) {
            const auto n = std::to_string(i);
            const bool is_v4 = version == IpVersion::v4;
            left.emplace_back(is_v4 ? "50." + n + ".0.0" : "2400:" + n + "::",
                              is_v4 ? "50." + n + ".0.255" : "2400:" + n + "::ff");
            right.emplace_back(is_v4 ? "60." + n + ".0.0" : "2500:" + n + "::",
                               is_v4 ? "60." + n + ".0.255" : "2500:" + n + "::ff");
        }
        auto p = version == IpVersion::v4 ? tests::listed_v4(list_of(right)) : tests::listed_v6(list_of(right));
        p.left.hosts = HostRange::of(list_of(left));
        const auto entry_of = [](const plan::AddressList& list, Wide address) {
            const auto octets = plan::address_of(list.version(), address);
            return list.place(reinterpret_cast<const std::byte*>(octets.octets.data()))->entry;
        };
        std::vector<std::uint64_t> entries(225);
        std::vector<std::uint64_t> places(256);           // upper halves of both places
        std::vector<std::uint64_t> entry_and_place(240);  // of the destination
        std::vector<std::uint64_t> crossed(240);          // source's entry, destination's place
        draw_all(p, draws, [&](Wide source, Wide destination) {
            const auto from = entry_of(*p.left.hosts.list, source);
            const auto to = entry_of(*p.right.hosts.list, destination);
            ++entries[from * 15 + to];
            ++places[static_cast<std::size_t>((source & 0xF0U) | (destination >> 4U & 0xFU))];
            ++entry_and_place[to * 16 + static_cast<std::size_t>(destination >> 4U & 0xFU)];
            ++crossed[from * 16 + static_cast<std::size_t>(destination >> 4U & 0xFU)];
        });
        CHECK(is_even(entries, draws));
        CHECK(is_even(places, draws));
        CHECK(is_even(entry_and_place, draws));
        CHECK(is_even(crossed, draws));
    }
}

TEST_CASE("increment, decrement and fixed go through all addresses in their order") {
    for (const auto& entries : {std::vector<tests::Ends>{{"20.0.0.0", "20.0.0.2"}, {"20.1.0.9", "20.1.0.9"}},
                                std::vector<tests::Ends>{{"2400::", "2400::2"}, {"2401::9", "2401::9"}}}) {
        const auto list = list_of(entries);
        const auto text_of = [&](Mode mode, std::uint64_t k) {
            const auto p =
                list->version() == IpVersion::v4 ? tests::listed_v4(list, mode) : tests::listed_v6(list, mode);
            return plan::to_string(FlowDraw{p, Direction::forward, seed}.whole_addresses(k)->destination);
        };
        const std::vector<std::string> all{plan::to_string(list->address(0)), plan::to_string(list->address(1)),
                                           plan::to_string(list->address(2)), entries[1].first};
        for (const std::uint64_t k : {0ULL, 1ULL, 2ULL, 3ULL, 4ULL, 5ULL, 1'000'002ULL}) {
            CHECK(text_of(Mode::increment, k) == all[k % 4]);
            CHECK(text_of(Mode::decrement, k) == all[3 - k % 4]);
            CHECK(text_of(Mode::fixed, k) == all[0]);
        }
    }
    // More addresses than there are frames.
    const auto all_v6 =
        tests::listed_v6(list_of({{"2400::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"}}), Mode::decrement);
    CHECK(FlowDraw{all_v6, Direction::forward, seed}.whole_addresses(0x10000)->destination ==
          ip("ffff:ffff:ffff:ffff:ffff:ffff:fffe:ffff"));
}

TEST_CASE("numbers of entries that would be biased are drawn again (SEED-43)") {
    // 2^32 modulo this many entries is large: in 32 frames there is often a draw that must be repeated.
    const auto p = listed(IpVersion::v4, 1'999'999);
    const FlowDraw draw{p, Direction::forward, seed};
    plan::DrawBounds bounds;
    bounds.set(1, 0, 1'999'999);
    std::size_t biased_blocks = 0;
    for (std::uint64_t first = 0; first < 32'000; first += FlowBlock::size) {
        plan::DrawLanes lanes;
        plan::LaneBits biased;
        if (!plan::draw_lanes(first, 1, 0, {static_cast<std::uint32_t>(seed), 0}, bounds, lanes, biased)) continue;
        ++biased_blocks;
        FlowBlock block;
        draw.draw_block(first, 1, block);
        for (std::size_t j = 0; j < FlowBlock::size; ++j) CHECK(is_as_single_draws(draw, block, j, first + j));
    }
    CHECK(biased_blocks > 0);
}

TEST_CASE("seeds and directions draw other addresses, and copies of a plan the same (SEED-44)") {
    for (const auto version : {IpVersion::v4, IpVersion::v6}) {
        const auto p = version == IpVersion::v4 ? tests::both_listed_v4() : tests::both_listed_v6();
        auto copy = p;
        copy.name = "copy";
        std::set<std::string> destinations;
        for (std::uint64_t k = 0; k < 8; ++k) {
            const auto found = FlowDraw{p, Direction::forward, seed}.whole_addresses(k);
            CHECK(found->destination == FlowDraw{copy, Direction::forward, seed}.whole_addresses(k)->destination);
            for (const std::uint64_t other : {std::uint64_t{1}, seed + 1, seed | std::uint64_t{1} << 40U})
                CHECK(found->destination != FlowDraw{p, Direction::forward, other}.whole_addresses(k)->destination);
            destinations.insert(plan::to_string(found->destination));
        }
        CHECK(destinations.size() == 8);
    }
}

}  // namespace whole_draw_test
