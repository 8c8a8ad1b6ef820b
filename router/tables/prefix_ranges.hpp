// SPDX-License-Identifier: Apache-2.0
// Tables: the longest prefix of an address, as a search among ranges.
//
// Prefixes that nest cut the addresses into ranges, each with one longest prefix. An index by the next bits of the
// address leads to a few ranges, among which a binary search finds the right one: the structure of DXR (M. Zec, L.
// Rizzo, M. Mikuc, "DXR: towards a billion routing lookups per second in software", CCR 2012). Its index has one level
// of fixed width. Ours begins at the first range and divides again where ranges are dense, since a test may have a
// million IPv6 prefixes in one /48.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace evenhand::router {

/// `Key`: an address as an unsigned number, of 32 or 128 bits. Built once, then only read.
template <class Key>
class PrefixRanges {
   public:
    struct Prefix {
        Key first;  // its lowest address
        std::uint32_t value;
        std::uint8_t length;

        [[nodiscard]] Key last() const noexcept {
            constexpr unsigned bits = 8 * sizeof(Key);
            return length == 0 ? static_cast<Key>(~Key{0})
                               : static_cast<Key>(first + ((Key{1} << (bits - length)) - Key{1}));
        }
    };

    /// The value of an address that is in no prefix.
    static constexpr std::uint32_t nothing = 0xFFFFFFFF;

    PrefixRanges() : PrefixRanges{std::span<const Prefix>{}} {}
    /// `prefixes`: by `first`, the shorter one of two with the same; no two are alike.
    explicit PrefixRanges(std::span<const Prefix> prefixes) {
        cut(prefixes);
        divide();
    }

    /// The value of the longest prefix that has this address.
    [[nodiscard]] std::uint32_t find(Key address) const noexcept {
        Part part = parts_.front();
        while (part.more == divided) {
            const Node& node = nodes_[part.first];
            if (address < node.low) return values_[node.first];
            if (address >= node.high) return values_[node.last];
            part = parts_[node.parts + static_cast<std::size_t>((address - node.low) >> node.shift)];
        }
        // The last range that does not begin behind the address. The first of the part never does.
        std::size_t at = part.first;
        for (std::size_t left = std::size_t{part.more} + 1; left > 1;) {
            const std::size_t half = left / 2;
            at += firsts_[at + half] <= address ? half : 0;
            left -= half;
        }
        return values_[at];
    }

    [[nodiscard]] std::size_t range_count() const noexcept { return firsts_.size(); }
    /// What it takes of memory.
    [[nodiscard]] std::size_t octets() const noexcept {
        return firsts_.capacity() * sizeof(Key) + values_.capacity() * sizeof(std::uint32_t) +
               parts_.capacity() * sizeof(Part) + nodes_.capacity() * sizeof(Node);
    }

   private:
    /// Consecutive ranges, `first` and `more` after it; or the node number `first`.
    struct Part {
        std::uint32_t first;
        std::uint32_t more;
    };
    static constexpr std::uint32_t divided = 0xFFFFFFFF;
    static constexpr std::size_t most_searched = 32;  // 5 steps, mostly in one or two cache lines

    /// An index of equal parts of the addresses from `low` to `high`, which does not belong to it.
    struct Node {
        Key low;
        Key high;
        std::size_t parts;
        std::uint32_t first;  // the range below `low`
        std::uint32_t last;   // the range at `high` and above
        unsigned shift;
    };

    static unsigned width(Key number) noexcept {
        unsigned bits = 0;
        for (; number != 0; number >>= 1U) ++bits;
        return bits;
    }

    /// The range from this address on has this value, whatever was said of it before.
    void begin(Key first, std::uint32_t value) {
        if (!firsts_.empty() && firsts_.back() == first) {
            firsts_.pop_back();
            values_.pop_back();
        }
        if (!values_.empty() && values_.back() == value) return;
        firsts_.push_back(first);
        values_.push_back(value);
    }

    void cut(std::span<const Prefix> prefixes) {
        constexpr Key most = static_cast<Key>(~Key{0});
        std::vector<std::pair<Key, std::uint32_t>> open;  // last address and value of the prefixes around this place
        const auto close = [&] {
            const Key last = open.back().first;
            open.pop_back();
            if (last != most) begin(static_cast<Key>(last + 1), open.empty() ? nothing : open.back().second);
        };
        begin(0, nothing);
        for (const Prefix& prefix : prefixes) {
            while (!open.empty() && open.back().first < prefix.first) close();
            begin(prefix.first, prefix.value);
            open.emplace_back(prefix.last(), prefix.value);
        }
        while (!open.empty()) close();
        firsts_.shrink_to_fit();
        values_.shrink_to_fit();
    }

    void divide() {
        struct Task {
            std::size_t part;
            std::uint32_t first;
            std::uint32_t last;
        };
        std::vector<Task> tasks;
        const auto set = [&](std::size_t part, std::uint32_t first, std::uint32_t last) {
            parts_[part] = {.first = first, .more = last - first};
            if (last - first >= most_searched) tasks.push_back({part, first, last});
        };
        parts_.resize(1);
        set(0, 0, static_cast<std::uint32_t>(firsts_.size() - 1));
        while (!tasks.empty()) {
            const Task task = tasks.back();
            tasks.pop_back();
            const std::uint32_t count = task.last - task.first;
            const Key low = firsts_[task.first + 1];
            const Key high = firsts_[task.last];
            const Key span = high - low - 1;
            const unsigned index_bits =
                static_cast<unsigned>(std::bit_width(count)) - 2;  // 2 to 8 ranges for each part
            const unsigned bits = width(span);
            const unsigned shift = bits > index_bits ? bits - index_bits : 0;
            const Node node{.low = low,
                            .high = high,
                            .parts = parts_.size(),
                            .first = task.first,
                            .last = task.last,
                            .shift = shift};
            parts_[task.part] = {.first = static_cast<std::uint32_t>(nodes_.size()), .more = divided};
            nodes_.push_back(node);
            const auto parts = static_cast<std::size_t>(span >> shift) + 1;
            parts_.resize(node.parts + parts);
            std::uint32_t at = task.first + 1;
            for (std::size_t part = 0; part < parts; ++part) {
                const Key end =
                    part + 1 == parts ? high : static_cast<Key>(low + (static_cast<Key>(part + 1) << shift));
                const std::uint32_t from = at;
                while (firsts_[at + 1] < end) ++at;
                set(node.parts + part, from, at);
                if (firsts_[at + 1] == end) ++at;
            }
        }
        parts_.shrink_to_fit();
    }

    std::vector<Key> firsts_;  // of each range; the first one begins at 0
    std::vector<std::uint32_t> values_;
    std::vector<Part> parts_;
    std::vector<Node> nodes_;
};

}  // namespace evenhand::router
