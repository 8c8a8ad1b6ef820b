// SPDX-License-Identifier: Apache-2.0
#include "plan/listed_addresses.hpp"

#include <cstring>
#include <string_view>
#include <utility>

#include "plan/scaled.hpp"
#include "simd.hpp"

namespace evenhand::plan {
namespace {

void put_plain(std::span<const AddressEntry<std::uint32_t>> entries, const WordsOfBits& words, std::size_t end,
               FlowBlock& block) noexcept {
    for (std::size_t j = 0; j < FlowBlock::size; ++j) {
        auto& number = block.lanes.field[end][j];
        const auto& entry = entries[number];
        number = entry.first + scaled(joined((*words[1])[j], (*words[0])[j]), entry.last - entry.first);
    }
}

void put_plain(std::span<const AddressEntry<Wide>> entries, const WordsOfBits& words, std::size_t end,
               FlowBlock& block) noexcept {
    for (std::size_t j = 0; j < FlowBlock::size; ++j) {
        const auto word = [&](std::size_t i) { return (*words[i])[j]; };
        const Wide bits = Wide{joined(word(3), word(2))} << half_bits | joined(word(1), word(0));
        put_address_v6(block, end, j, selected(entries[block.lanes.field[end][j]], bits));
    }
}

#if defined(__x86_64__)
/// Loads the words of eight frames, the first of which is `at`.
__attribute__((target("avx2"), always_inline)) inline __m256i load_words(const DrawLanes::Values& words,
                                                                         std::size_t at) noexcept {
    return _mm256_load_si256(reinterpret_cast<const __m256i*>(words.data() + at));
}

/// As in philox.cpp, eight frames are a pair of vectors: the frames 0, 2, 4, 6 in the lower halves of 64 bits, and 1,
/// 3, 5, 7 in the upper ones.
__attribute__((target("avx2"))) void put_avx2(std::span<const AddressEntry<std::uint32_t>> entries,
                                              const WordsOfBits& words, std::size_t end, FlowBlock& block) noexcept {
    constexpr std::size_t together = 8;
    constexpr int odd_words = 0xAA;
    const __m256i low = _mm256_set1_epi64x(0xFFFFFFFF);
    for (std::size_t at = 0; at < FlowBlock::size; at += together) {
        auto& numbers = block.lanes.field[end];
        // First and last address, which take 64 bits together. Gathering them is slower on some CPUs.
        const auto entry = [&](std::size_t j) {
            long long both;
            std::memcpy(&both, &entries[numbers[at + j]], sizeof both);
            return both;
        };
        /// Places in the entries, in the upper halves.
        const auto placed = [&](__m256i first_and_last, __m256i high,
                                __m256i middle) __attribute__((target("avx2"), always_inline)) {
            const __m256i span = _mm256_sub_epi64(_mm256_srli_epi64(first_and_last, 32), first_and_last);
            middle = _mm256_and_si256(middle, low);
            const __m256i lower = _mm256_add_epi64(_mm256_mul_epu32(middle, span), middle);
            high = _mm256_and_si256(high, low);
            return _mm256_add_epi64(_mm256_add_epi64(_mm256_mul_epu32(high, span), high), _mm256_srli_epi64(lower, 32));
        };
        const __m256i even = _mm256_set_epi64x(entry(6), entry(4), entry(2), entry(0));
        const __m256i odd = _mm256_set_epi64x(entry(7), entry(5), entry(3), entry(1));
        const __m256i high = load_words(*words[1], at);
        const __m256i middle = load_words(*words[0], at);
        const __m256i even_places = _mm256_srli_epi64(placed(even, high, middle), 32);
        const __m256i odd_places = placed(odd, _mm256_srli_epi64(high, 32), _mm256_srli_epi64(middle, 32));
        const __m256i firsts = _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), odd_words);
        const __m256i places = _mm256_blend_epi32(even_places, odd_places, odd_words);
        _mm256_store_si256(reinterpret_cast<__m256i*>(numbers.data() + at), _mm256_add_epi32(firsts, places));
    }
}

/// The two halves of a vector are two addresses, of frames that are four apart: so eight frames need no other order
/// than the unpacking of their words gives.
template <bool IsOne>
__attribute__((target("avx2"), always_inline)) inline void put_wide_avx2(const AddressEntry<Wide>* entries,
                                                                         const WordsOfBits& words, std::size_t end,
                                                                         FlowBlock& block) noexcept {
    constexpr std::size_t together = 8;
    constexpr std::size_t apart = together / 2;
    constexpr int lower_halves = 0x20;
    constexpr int upper_halves = 0x31;
    const __m256i low = _mm256_set1_epi32(0xFFFF);
    const auto ends_of = [&](std::size_t one, std::size_t other) __attribute__((target("avx2"), always_inline)) {
        const auto entry = [&](std::size_t i) __attribute__((target("avx2"), always_inline)) {
            return _mm256_load_si256(reinterpret_cast<const __m256i*>(entries + i));
        };
        return std::pair{_mm256_permute2x128_si256(entry(one), entry(other), lower_halves),
                         _mm256_permute2x128_si256(entry(one), entry(other), upper_halves)};
    };
    const auto only = ends_of(0, 0);
    const __m256i in_network_order =
        _mm256_broadcastsi128_si256(_mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
    for (std::size_t at = 0; at < FlowBlock::size; at += together) {
        const auto word = [&](std::size_t i)
                              __attribute__((target("avx2"), always_inline)) { return load_words(*words[i], at); };
        const __m256i low_begin = _mm256_unpacklo_epi32(word(0), word(1));
        const __m256i low_end = _mm256_unpackhi_epi32(word(0), word(1));
        const __m256i high_begin = _mm256_unpacklo_epi32(word(2), word(3));
        const __m256i high_end = _mm256_unpackhi_epi32(word(2), word(3));
        const __m256i bits[apart] = {
            _mm256_unpacklo_epi64(low_begin, high_begin), _mm256_unpackhi_epi64(low_begin, high_begin),
            _mm256_unpacklo_epi64(low_end, high_end), _mm256_unpackhi_epi64(low_end, high_end)};
        __m256i sums[apart];
        auto& numbers = block.lanes.field[end];
        for (std::size_t i = 0; i < apart; ++i) {
            const auto [first, last] = IsOne ? only : ends_of(numbers[at + i], numbers[at + i + apart]);
            const __m256i address = _mm256_xor_si256(first, _mm256_and_si256(bits[i], _mm256_xor_si256(first, last)));
            const __m256i octets = _mm256_shuffle_epi8(address, in_network_order);
            const auto store = [&](std::size_t j, __m128i half) __attribute__((target("avx2"), always_inline)) {
                _mm_store_si128(reinterpret_cast<__m128i*>(block.addresses[j].data() + end * sizeof(Wide)), half);
            };
            store(at + i, _mm256_castsi256_si128(octets));
            store(at + i + apart, _mm256_extracti128_si256(octets, 1));
            sums[i] = _mm256_add_epi32(_mm256_and_si256(address, low), _mm256_srli_epi32(address, 16));
        }
        __m256i sum = _mm256_hadd_epi32(_mm256_hadd_epi32(sums[0], sums[1]), _mm256_hadd_epi32(sums[2], sums[3]));
        for (int fold = 0; fold < 2; ++fold)
            sum = _mm256_add_epi32(_mm256_and_si256(sum, low), _mm256_srli_epi32(sum, 16));
        _mm256_store_si256(reinterpret_cast<__m256i*>(numbers.data() + at), sum);
    }
}

__attribute__((target("avx2"))) void put_avx2(std::span<const AddressEntry<Wide>> entries, const WordsOfBits& words,
                                              std::size_t end, FlowBlock& block) noexcept {
    if (entries.size() == 1)
        put_wide_avx2<true>(entries.data(), words, end, block);
    else
        put_wide_avx2<false>(entries.data(), words, end, block);
}
#endif

}  // namespace

template <class Number>
ListedVariant<Number> listed_variant(const char* name) noexcept {
    const std::string_view wanted{name};
#if defined(__x86_64__)
    if (wanted == "avx2" && __builtin_cpu_supports("avx2") != 0) return put_avx2;
#endif
    return wanted == "plain" ? static_cast<ListedVariant<Number>>(put_plain) : nullptr;
}
template ListedVariant<std::uint32_t> listed_variant<std::uint32_t>(const char* name) noexcept;
template ListedVariant<Wide> listed_variant<Wide>(const char* name) noexcept;

namespace {

template <class Number>
void put_fastest(const AddressEntries<Number>& entries, const WordsOfBits& words, std::size_t end,
                 FlowBlock& block) noexcept {
    static const ListedVariant<Number> variant = [] {
        const auto avx2 = listed_variant<Number>("avx2");
        return avx2 != nullptr ? avx2 : listed_variant<Number>("plain");
    }();
    variant(entries.all(), words, end, block);
}

}  // namespace

void put_listed(const EntriesV4& entries, const WordsOfBits& words, std::size_t end, FlowBlock& block) noexcept {
    put_fastest(entries, words, end, block);
}
void put_listed(const EntriesV6& entries, const WordsOfBits& words, std::size_t end, FlowBlock& block) noexcept {
    put_fastest(entries, words, end, block);
}

/// As 2^16 = 1 modulo 65535, wider parts may be added.
std::uint32_t sum_of(Wide address) noexcept {
    constexpr std::uint64_t half_word = 0xFFFFFFFF;
    constexpr std::uint64_t word = 0xFFFF;
    std::uint64_t sum =
        (upper(address) >> 32U) + (upper(address) & half_word) + (lower(address) >> 32U) + (lower(address) & half_word);
    sum = (sum >> 32U) + (sum >> 16U & word) + (sum & word);
    sum = (sum >> 16U) + (sum & word);
    return static_cast<std::uint32_t>((sum >> 16U) + (sum & word));
}

void put_address_v6(FlowBlock& block, std::size_t end, std::size_t j, Wide address) noexcept {
    const std::array<std::uint64_t, 2> octets{__builtin_bswap64(upper(address)), __builtin_bswap64(lower(address))};
    std::memcpy(block.addresses[j].data() + end * sizeof(Wide), octets.data(), sizeof octets);
    block.lanes.field[end][j] = sum_of(address);
}

}  // namespace evenhand::plan
