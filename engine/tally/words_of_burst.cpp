// SPDX-License-Identifier: Apache-2.0
#include "tally/words_of_burst.hpp"

#include <immintrin.h>

#include <algorithm>
#include <string_view>

namespace evenhand::tally {
namespace {

constexpr unsigned most_at_once = WordsOfBurst::most_frames;
constexpr int word_shift = 6;  // of a number, to that of its word

void collect_plain(const std::uint64_t* numbers, unsigned count, std::uint64_t mask, WordsOfBurst& words) noexcept {
    // Each frame's bit goes into the word that is being collected; a number in another word begins the next one. No
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

/// Beyond it a burst has about as many words as frames.
constexpr std::uint64_t most_words_at_once = 10;

/// Where the bit of each frame is, and in which word after the first, four frames in a register. Then each word
/// collects its own.
__attribute__((target("avx2"))) void collect_avx2(const std::uint64_t* numbers, unsigned count, std::uint64_t mask,
                                                  WordsOfBurst& words) noexcept {
    constexpr unsigned together = 4;
    const std::uint64_t first = (numbers[0] & mask) / word_bits * word_bits;
    const std::uint64_t span = ((numbers[count - 1] & mask) - first) / word_bits + 1;
    if (span > most_words_at_once || count < together) {
        collect_plain(numbers, count, mask, words);
        return;
    }
    constexpr unsigned most_groups = most_at_once / together;
    __m256i bit_of[most_groups];   // NOLINT(modernize-avoid-c-arrays): std::array forgets how a register is aligned
    __m256i word_of[most_groups];  // NOLINT(modernize-avoid-c-arrays)
    const __m256i masks = _mm256_set1_epi64x(static_cast<long long>(mask));
    const __m256i firsts = _mm256_set1_epi64x(static_cast<long long>(first));
    const __m256i place_in_word = _mm256_set1_epi64x(word_bits - 1);
    const __m256i one = _mm256_set1_epi64x(1);
    const unsigned groups = (count + together - 1) / together;
    for (unsigned g = 0; g < groups; ++g) {
        // The last group reaches back: a frame that is in two of them counts once all the same.
        const unsigned at = std::min(g * together, count - together);
        const __m256i number =
            _mm256_and_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(numbers + at)), masks);
        bit_of[g] = _mm256_sllv_epi64(one, _mm256_and_si256(number, place_in_word));
        word_of[g] = _mm256_srli_epi64(_mm256_sub_epi64(number, firsts), word_shift);
    }
    words.count = 0;
    for (std::uint64_t w = 0; w < span; ++w) {
        const __m256i wanted = _mm256_set1_epi64x(static_cast<long long>(w));
        __m256i of_word = _mm256_setzero_si256();
        for (unsigned g = 0; g < groups; ++g)
            of_word = _mm256_or_si256(of_word, _mm256_and_si256(bit_of[g], _mm256_cmpeq_epi64(word_of[g], wanted)));
        const __m128i half = _mm_or_si128(_mm256_castsi256_si128(of_word), _mm256_extracti128_si256(of_word, 1));
        words.take(first + w * word_bits,
                   static_cast<std::uint64_t>(_mm_cvtsi128_si64(_mm_or_si128(half, _mm_unpackhi_epi64(half, half)))));
    }
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
