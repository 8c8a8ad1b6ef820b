// SPDX-License-Identifier: Apache-2.0
#include "tally/sequence_map.hpp"

#include <algorithm>
#include <bit>

namespace evenhand::tally {

std::uint64_t SequenceMap::missing(std::uint64_t first, std::uint64_t last) const noexcept {
    last = std::min(last, end());
    std::uint64_t absent = 0;
    for (std::uint64_t k = std::max(first, settled_); k < last;) {
        if (k % bits == 0 && last - k >= bits) {
            absent += bits - static_cast<std::uint64_t>(std::popcount(word_of(k)));
            k += bits;
        } else {
            absent += has(k) ? 0U : 1U;
            ++k;
        }
    }
    return absent;
}

void SequenceMap::bring_together(std::uint64_t first, std::uint64_t last) noexcept {
    together_ = last;
    if (parts_ == 1) return;
    for (std::uint64_t k = first; k < last; k += bits) {  // whole words: no frame beyond the end is marked
        std::uint64_t before = read(word_of_part(0, k));
        for (std::size_t p = 1; p < parts_; ++p) {
            const std::uint64_t word = read(word_of_part(p, k));
            if (word == 0) continue;
            copies_[p] += static_cast<std::uint64_t>(std::popcount(before & word));
            before |= word;
            put(p, k, 0);
        }
        put(0, k, before);
    }
}

std::uint64_t SequenceMap::pairs(std::uint64_t first, std::uint64_t last) const noexcept {
    last = std::min(last, end());
    std::uint64_t found = 0;
    bool has_before = false;
    for (std::uint64_t k = std::max(first, settled_); k < last;) {
        if (k % bits == 0 && last - k >= bits) {
            const auto word = word_of(k);
            found +=
                static_cast<std::uint64_t>(std::popcount(word & (word << 1U | static_cast<std::uint64_t>(has_before))));
            has_before = (word >> (bits - 1) & 1U) != 0;
            k += bits;
        } else {
            const bool has_come = has(k);
            found += static_cast<std::uint64_t>(has_come && has_before);
            has_before = has_come;
            ++k;
        }
    }
    return found;
}

std::vector<std::uint64_t> SequenceMap::first_missing(std::uint64_t last, std::size_t most) const {
    std::vector<std::uint64_t> found;
    last = std::min(last, end());
    for (std::uint64_t k = settled_; k < last && found.size() < most;) {
        if (k % bits == 0 && word_of(k) == ~std::uint64_t{0}) {
            k += bits;
            continue;
        }
        if (!has(k)) found.push_back(k);
        ++k;
    }
    return found;
}

std::optional<std::uint64_t> SequenceMap::last_missing(std::uint64_t last) const noexcept {
    for (std::uint64_t k = std::min(last, end()); k > settled_;) {
        if (k % bits == 0 && word_of(k - 1) == ~std::uint64_t{0}) {
            k -= bits;
            continue;
        }
        if (!has(--k)) return k;
    }
    return std::nullopt;
}

}  // namespace evenhand::tally
