// SPDX-License-Identifier: Apache-2.0
#include "tally/sequence_map.hpp"

#include <immintrin.h>

#include <algorithm>
#include <bit>

namespace evenhand::tally {

std::uint64_t SequenceMap::missing(std::uint64_t first, std::uint64_t last) const noexcept {
    last = std::min(last, end());
    std::uint64_t absent = 0;
    for (std::uint64_t k = std::max(first, settled_); k < last;) {
        if (k % bits == 0 && last - k >= bits) {
            absent += bits - static_cast<std::uint64_t>(std::popcount(read(word_of(k))));
            k += bits;
        } else {
            absent += has(k) ? 0U : 1U;
            ++k;
        }
    }
    return absent;
}

std::uint64_t SequenceMap::pairs(std::uint64_t first, std::uint64_t last) const noexcept {
    last = std::min(last, end());
    std::uint64_t found = 0;
    bool has_before = false;
    for (std::uint64_t k = std::max(first, settled_); k < last;) {
        if (k % bits == 0 && last - k >= bits) {
            const auto word = read(word_of(k));
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
        if (k % bits == 0 && read(word_of(k)) == ~std::uint64_t{0}) {
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
        if (k % bits == 0 && read(word_of(k - 1)) == ~std::uint64_t{0}) {
            k -= bits;
            continue;
        }
        if (!has(--k)) return k;
    }
    return std::nullopt;
}

void SequenceMap::collect_plain(const std::uint64_t* numbers, unsigned count, std::uint64_t mask,
                                WordsOfBurst& words) noexcept {
    // Each frame's bit goes into the word that is being collected; a number in another word begins the next one. No
    // branch depends on the numbers.
    unsigned last = 0;
    std::uint64_t word = 0;
    std::uint64_t k = numbers[0] & mask;
    for (unsigned i = 1; i < count; ++i) {
        word |= std::uint64_t{1} << (k % bits);
        words.bits[last] = word;
        words.number[last] = k;
        const std::uint64_t next = numbers[i] & mask;
        const bool is_other = (next ^ k) >= bits;
        last += static_cast<unsigned>(is_other);
        word &= std::uint64_t{is_other} - 1;
        k = next;
    }
    words.bits[last] = word | std::uint64_t{1} << (k % bits);
    words.number[last] = k;
    words.count = last + 1;
}

/// Four frames at a time: where each one's bit is, and in which word after the first. Then each word collects its own.
__attribute__((target("avx2"))) void SequenceMap::collect_avx2(const std::uint64_t* numbers, unsigned count,
                                                               std::uint64_t mask, WordsOfBurst& words) noexcept {
    constexpr unsigned together = 4;
    /// Beyond it a burst has about as many words as frames.
    constexpr std::uint64_t most_words = 10;
    const std::uint64_t first = (numbers[0] & mask) / bits * bits;
    const std::uint64_t span = ((numbers[count - 1] & mask) - first) / bits + 1;
    if (span > most_words || count < together) {
        collect_plain(numbers, count, mask, words);
        return;
    }
    constexpr unsigned most_groups = most_at_once / together;
    __m256i bit_of[most_groups];   // NOLINT(modernize-avoid-c-arrays): std::array forgets how a register is aligned
    __m256i word_of[most_groups];  // NOLINT(modernize-avoid-c-arrays)
    const __m256i masks = _mm256_set1_epi64x(static_cast<long long>(mask));
    const __m256i firsts = _mm256_set1_epi64x(static_cast<long long>(first));
    const __m256i place_in_word = _mm256_set1_epi64x(bits - 1);
    const __m256i one = _mm256_set1_epi64x(1);
    const unsigned groups = (count + together - 1) / together;
    for (unsigned g = 0; g < groups; ++g) {
        // The last group reaches back: a frame that is in two counts once all the same.
        const unsigned at = g + 1 == groups ? count - together : g * together;
        const __m256i number =
            _mm256_and_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(numbers + at)), masks);
        bit_of[g] = _mm256_sllv_epi64(one, _mm256_and_si256(number, place_in_word));
        word_of[g] = _mm256_srli_epi64(_mm256_sub_epi64(number, firsts), 6);
    }
    unsigned found = 0;
    for (std::uint64_t w = 0; w < span; ++w) {
        const __m256i wanted = _mm256_set1_epi64x(static_cast<long long>(w));
        __m256i of_word = _mm256_setzero_si256();
        for (unsigned g = 0; g < groups; ++g)
            of_word = _mm256_or_si256(of_word, _mm256_and_si256(bit_of[g], _mm256_cmpeq_epi64(word_of[g], wanted)));
        const __m128i half =
            _mm_or_si128(_mm256_castsi256_si128(of_word), _mm256_extracti128_si256(of_word, 1));
        const auto word = static_cast<std::uint64_t>(_mm_cvtsi128_si64(_mm_or_si128(half, _mm_unpackhi_epi64(half, half))));
        words.bits[found] = word;
        words.number[found] = first + w * bits;
        found += static_cast<unsigned>(word != 0);
    }
    words.count = found;
}

SequenceMap::Collect SequenceMap::fastest_collect() noexcept {
    return __builtin_cpu_supports("avx2") != 0 ? collect_avx2 : collect_plain;
}

}  // namespace evenhand::tally
