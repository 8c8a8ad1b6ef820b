// SPDX-License-Identifier: Apache-2.0
// Entry index: beside a list that is searched from end to end.
#include "tables/entry_index.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

namespace entry_index_test {

using namespace evenhand::router;

namespace {

struct Known {
    std::uint32_t hash = 0;
    std::uint32_t entry = 0;
};

template <class Index>
std::uint32_t find(const Index& index, const Known& known) {
    return index.find(known.hash, [&](std::uint32_t entry) { return entry == known.entry; });
}

/// Full, emptied and filled again at random; after each step the index knows each entry that is in it, and no other.
template <class Index>
void check_beside_list(std::uint32_t capacity, std::uint32_t hashes) {
    Index index{capacity};
    std::mt19937 random{capacity * 1000 + hashes};
    std::vector<Known> in;
    std::vector<Known> out;
    out.reserve(capacity);
    // The hashes end where the slots end, so that the first slots belong to entries from the last ones.
    const auto slots = static_cast<std::uint32_t>(Index::slots_for(capacity));
    for (std::uint32_t entry = 0; entry < capacity; ++entry)
        out.push_back({.hash = slots - 1 - static_cast<std::uint32_t>(random()) % hashes, .entry = entry});
    for (int step = 0; step < 2000; ++step) {
        const bool adds = in.empty() || (!out.empty() && random() % 3 != 0);
        auto& from = adds ? out : in;
        std::swap(from[random() % from.size()], from.back());
        const Known known = from.back();
        from.pop_back();
        if (adds) {
            index.add(known.hash, known.entry);
            in.push_back(known);
        } else {
            index.remove(known.hash, known.entry);
            out.push_back(known);
        }
        REQUIRE(std::ranges::all_of(in, [&](const Known& k) { return find(index, k) == k.entry; }));
        REQUIRE(std::ranges::all_of(out, [&](const Known& k) { return find(index, k) == Index::none; }));
    }
}

}  // namespace

TEST_CASE_TEMPLATE("an index knows the entries that were added and not removed, however their hashes collide", Index,
                   EntryIndex<2, 3>, EntryIndex<1, 2>) {
    for (const std::uint32_t capacity : {1U, 2U, 3U, 10U, 21U, 64U}) {
        for (const std::uint32_t hashes : {1U, 2U, 8U, 1000U}) check_beside_list<Index>(capacity, hashes);
    }
}

TEST_CASE("of entries with equal keys the one that was added first is found, until it is removed") {
    EntryIndex<2, 3> index{3};
    const auto any = [](std::uint32_t) { return true; };
    for (const std::uint32_t entry : {2U, 0U, 1U}) index.add(7, entry);
    for (const std::uint32_t entry : {2U, 0U, 1U}) {
        CHECK(index.find(7, any) == entry);
        index.remove(7, entry);
    }
    CHECK(index.find(7, any) == index.none);
}

TEST_CASE("who is asked about an entry is asked only where the whole hash is the same") {
    EntryIndex<1, 2> index{4};  // 8 slots
    index.add(3, 0);
    index.add(3 + 8, 1);
    std::vector<std::uint32_t> asked;
    CHECK(index.find(3 + 8, [&](std::uint32_t entry) { return asked.push_back(entry), true; }) == 1);
    CHECK(asked == std::vector<std::uint32_t>{1});
}

TEST_CASE("a cleared index knows no entry, and takes as many as before") {
    EntryIndex<2, 3> index{8};
    for (int round = 0; round < 2; ++round) {
        for (std::uint32_t entry = 0; entry < 8; ++entry) index.add(entry * 5, entry);
        for (std::uint32_t entry = 0; entry < 8; ++entry) CHECK(find(index, {entry * 5, entry}) == entry);
        index.clear();
        for (std::uint32_t entry = 0; entry < 8; ++entry) CHECK(find(index, {entry * 5, entry}) == index.none);
    }
}

TEST_CASE("no more of the slots are taken than the index says, and one is always free") {
    for (std::size_t capacity = 0; capacity < 1000; ++capacity) {
        CHECK(capacity * 3 <= EntryIndex<2, 3>::slots_for(capacity) * 2);
        CHECK(capacity * 2 <= EntryIndex<1, 2>::slots_for(capacity));
        CHECK(capacity < EntryIndex<2, 3>::slots_for(capacity));
        CHECK(capacity < EntryIndex<1, 2>::slots_for(capacity));
    }
    CHECK(EntryIndex<2, 3>::slots_for(131'072) == 262'144);
    CHECK(EntryIndex<1, 2>::slots_for(131'072) == 262'144);
}

}  // namespace entry_index_test
