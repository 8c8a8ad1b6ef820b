// SPDX-License-Identifier: Apache-2.0
#include "tally/words_of_burst.hpp"

#include <algorithm>
#include <string_view>

#include "simd.hpp"

namespace evenhand::tally {
namespace {

void collect_plain(const std::uint64_t* numbers, unsigned count, std::uint64_t mask, WordsOfBurst& words) noexcept {
    // Each frame's bit is put into the word that is being collected; a number in another word begins the next one. No
    // branch depends on the numbers.
    unsigned last = 0;
    std::uint64_t word = 0;
    std::uint64_t k = numbers[0] & mask;
    for (unsigned i = 1; i < count; ++i) {
        word |= std::uint64_t{1} << (k % word_bits);
        words.bits[last] = word;
        words.number[last] = k;
        const std::uint64_t next = numbers[i] & mask;
        const bool is_other = (next ^ k) >= word_bits;
        last += static_cast<unsigned>(is_other);
        word &= std::uint64_t{is_other} - 1;
        k = next;
    }
    words.bits[last] = word | std::uint64_t{1} << (k % word_bits);
    words.number[last] = k;
    words.count = last + 1;
}

/// A burst whose numbers span more words than this has about as many words as frames.
constexpr std::uint64_t most_words_at_once = 12;
constexpr unsigned words_at_once = 4;
constexpr unsigned together = 4;  // numbers in a register

/// Words are collected four at a time, whether a burst has that many or not, so that no branch depends on its numbers.
/// In each word, a number's bit is shifted by the distance of the number from the word's first one: a shift by 64 or
/// more, or by a negative distance, leaves no bit.
__attribute__((target("avx2"))) void collect_avx2(const std::uint64_t* numbers, unsigned count, std::uint64_t mask,
                                                  WordsOfBurst& words) noexcept {
    const std::uint64_t first = numbers[0] / word_bits * word_bits;
    const std::uint64_t span = (numbers[count - 1] - first) / word_bits + 1;
    if (span > most_words_at_once || count < together) [[unlikely]] {
        collect_plain(numbers, count, mask, words);
        return;
    }
    const __m256i one = _mm256_set1_epi64x(1);
    const __m256i bits_of_word = _mm256_set1_epi64x(word_bits);
    unsigned word = 0;
    for (; word < span; word += words_at_once) {
        const __m256i begin = _mm256_set1_epi64x(static_cast<long long>(first + word * word_bits));
        __m256i of_word[words_at_once];  // NOLINT(modernize-avoid-c-arrays): std::array forgets a register's alignment
        for (auto& bits : of_word) bits = _mm256_setzero_si256();
        for (unsigned i = 0; i < count; i += together) {
            // The last step reaches back, so that it has four numbers: it does no harm to count a frame twice.
            const unsigned at = std::min(i, count - together);
            __m256i place = _mm256_sub_epi64(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(numbers + at)), begin);
            for (auto& bits : of_word) {
                bits = _mm256_or_si256(bits, _mm256_sllv_epi64(one, place));
                place = _mm256_sub_epi64(place, bits_of_word);
            }
        }
        for (unsigned w = 0; w < words_at_once; ++w) {
            const __m128i half =
                _mm_or_si128(_mm256_castsi256_si128(of_word[w]), _mm256_extracti128_si256(of_word[w], 1));
            words.put(
                word + w, (first & mask) + (word + w) * word_bits, first & mask,
                static_cast<std::uint64_t>(_mm_cvtsi128_si64(_mm_or_si128(half, _mm_unpackhi_epi64(half, half)))));
        }
    }
    words.count = word;
}

}  // namespace

CollectVariant collect_variant(const char* name) noexcept {
    const std::string_view wanted{name};
    if (wanted == "avx2" && __builtin_cpu_supports("avx2") != 0) return collect_avx2;
    return wanted == "plain" ? collect_plain : nullptr;
}

CollectVariant widest_collect() noexcept {
    const auto variant = collect_variant("avx2");
    return variant != nullptr ? variant : collect_plain;
}

}  // namespace evenhand::tally
