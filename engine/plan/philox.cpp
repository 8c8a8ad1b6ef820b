// SPDX-License-Identifier: Apache-2.0
#include "plan/philox.hpp"

#include <string_view>

#include "simd.hpp"

namespace evenhand::plan {
namespace {

constexpr std::uint32_t multiplier_0 = 0xD2511F53;
constexpr std::uint32_t multiplier_1 = 0xCD9E8D57;
constexpr std::uint32_t weyl_0 = 0x9E3779B9;
constexpr std::uint32_t weyl_1 = 0xBB67AE85;
constexpr int rounds = 10;

bool is_any(const LaneBits& bits) noexcept { return (bits[0] | bits[1] | bits[2] | bits[3]) != 0; }

/// The counters of a block that are evenly spaced.
struct Stepped {
    std::uint64_t first;
    std::uint64_t stride;

    [[nodiscard]] std::uint64_t at(std::size_t j) const noexcept { return first + j * stride; }
};

/// Any counters of a block: the lower bits of these words.
struct Listed {
    const std::uint64_t* words;

    static constexpr unsigned bits = 48;
    static constexpr std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
    [[nodiscard]] std::uint64_t at(std::size_t j) const noexcept { return words[j] & mask; }
};

template <class Counters>
bool draw_plain(const Counters& counters, std::uint32_t stream, PhiloxKey key, const DrawBounds& bounds,
                DrawLanes& lanes, LaneBits& biased) noexcept {
    biased = {};
    for (std::size_t j = 0; j < DrawLanes::size; ++j) {
        const std::uint64_t k = counters.at(j);
        const auto drawn =
            philox4x32({static_cast<std::uint32_t>(k), static_cast<std::uint32_t>(k >> 32U), stream, 0}, key);
        for (std::size_t i = 0; i < drawn_fields; ++i) {
            const std::uint64_t product = std::uint64_t{drawn[i]} * bounds.count[i];
            lanes.field[i][j] = bounds.first[i] + static_cast<std::uint32_t>(product >> 32U);
            biased[i] |= static_cast<std::uint32_t>(static_cast<std::uint32_t>(product) < bounds.threshold[i]) << j;
        }
    }
    return is_any(biased);
}

void words_plain(const std::uint64_t* counters, std::uint32_t stream, PhiloxKey key, DrawLanes& lanes) noexcept {
    for (std::size_t j = 0; j < DrawLanes::size; ++j) {
        const std::uint64_t k = Listed{counters}.at(j);
        const auto words =
            philox4x32({static_cast<std::uint32_t>(k), static_cast<std::uint32_t>(k >> 32U), stream, 0}, key);
        for (std::size_t i = 0; i < drawn_fields; ++i) lanes.field[i][j] = words[i];
    }
}

#if defined(__x86_64__)
// 32-bit words are kept in 64-bit elements: the vector multiplication reads the low halves only, so that the garbage
// which the shorter operations leave in the high halves does no harm, and nothing needs to be shuffled. Several vectors
// go through the rounds together, so that none waits for its own multiplications. Vectors come in pairs, one for the
// frames 0, 2, 4, ... and one for 1, 3, 5, ...: the drawn number is the high half of a product, so that one blend makes
// a vector of 32-bit numbers from a pair.

/// The counters at, at + 2, at + 4 and at + 6.
__attribute__((target("avx2"), always_inline)) inline __m256i every_other_avx2(const Stepped& counters,
                                                                               std::size_t at) noexcept {
    const auto s = static_cast<long long>(counters.stride);
    return _mm256_add_epi64(_mm256_set1_epi64x(static_cast<long long>(counters.at(at))),
                            _mm256_set_epi64x(6 * s, 4 * s, 2 * s, 0));
}
__attribute__((target("avx2"), always_inline)) inline __m256i every_other_avx2(const Listed& counters,
                                                                               std::size_t at) noexcept {
    constexpr int in_order = 0xD8;
    const auto* const words = counters.words + at / 2 * 2;
    const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(words));
    const __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(words + 4));
    const __m256i found = at % 2 == 0 ? _mm256_unpacklo_epi64(low, high) : _mm256_unpackhi_epi64(low, high);
    return _mm256_and_si256(_mm256_permute4x64_epi64(found, in_order),
                            _mm256_set1_epi64x(static_cast<long long>(Listed::mask)));
}

constexpr std::size_t frames_of_avx2_pair = 8;
constexpr int odd_words_avx2 = 0xAA;
using PairsAvx2 = __m256i[drawn_fields][2];

/// Makes the words of the frames at .. at + 7; above each, garbage.
template <class Counters>
__attribute__((target("avx2"), always_inline)) inline void make_words_avx2(const Counters& counters, std::size_t at,
                                                                           std::uint32_t stream, PhiloxKey key,
                                                                           PairsAvx2& w) noexcept {
    constexpr std::size_t pair = 2;
    const __m256i m0 = _mm256_set1_epi64x(multiplier_0);
    const __m256i m1 = _mm256_set1_epi64x(multiplier_1);
    for (std::size_t v = 0; v < pair; ++v) {
        w[0][v] = every_other_avx2(counters, at + v);
        w[1][v] = _mm256_srli_epi64(w[0][v], 32);
        w[2][v] = _mm256_set1_epi64x(stream);
        w[3][v] = _mm256_setzero_si256();
    }
    for (int round = 0; round < rounds; ++round, key[0] += weyl_0, key[1] += weyl_1) {
        const __m256i k0 = _mm256_set1_epi64x(key[0]);
        const __m256i k1 = _mm256_set1_epi64x(key[1]);
        for (std::size_t v = 0; v < pair; ++v) {
            const __m256i p0 = _mm256_mul_epu32(w[0][v], m0);
            const __m256i p1 = _mm256_mul_epu32(w[2][v], m1);
            w[0][v] = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(p1, 32), w[1][v]), k0);
            w[2][v] = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(p0, 32), w[3][v]), k1);
            w[1][v] = p1;
            w[3][v] = p0;
        }
    }
}

__attribute__((target("avx2"))) void words_avx2(const std::uint64_t* counters, std::uint32_t stream, PhiloxKey key,
                                                DrawLanes& lanes) noexcept {
    for (std::size_t at = 0; at < DrawLanes::size; at += frames_of_avx2_pair) {
        PairsAvx2 w;
        make_words_avx2(Listed{counters}, at, stream, key, w);
        for (std::size_t i = 0; i < drawn_fields; ++i)
            _mm256_store_si256(reinterpret_cast<__m256i*>(&lanes.field[i][at]),
                               _mm256_blend_epi32(w[i][0], _mm256_slli_epi64(w[i][1], 32), odd_words_avx2));
    }
}

template <class Counters>
__attribute__((target("avx2"))) bool draw_avx2(const Counters& counters, std::uint32_t stream, PhiloxKey key,
                                               const DrawBounds& bounds, DrawLanes& lanes, LaneBits& biased) noexcept {
    constexpr int odd = odd_words_avx2;
    __m256i are_uniform = _mm256_set1_epi32(-1);
    for (std::size_t at = 0; at < DrawLanes::size; at += frames_of_avx2_pair) {
        PairsAvx2 w;
        make_words_avx2(counters, at, stream, key, w);
        for (std::size_t i = 0; i < drawn_fields; ++i) {
            const __m256i count = _mm256_set1_epi64x(bounds.count[i]);
            const __m256i threshold = _mm256_set1_epi32(static_cast<int>(bounds.threshold[i]));
            const __m256i even_product = _mm256_mul_epu32(w[i][0], count);
            const __m256i odd_product = _mm256_mul_epu32(w[i][1], count);
            const __m256i high = _mm256_blend_epi32(_mm256_srli_epi64(even_product, 32), odd_product, odd);
            const __m256i low = _mm256_blend_epi32(even_product, _mm256_slli_epi64(odd_product, 32), odd);
            // Not biased if the greater of both is the low half itself: AVX2 has no unsigned comparison.
            are_uniform = _mm256_and_si256(are_uniform, _mm256_cmpeq_epi32(_mm256_max_epu32(low, threshold), low));
            _mm256_store_si256(reinterpret_cast<__m256i*>(&lanes.field[i][at]),
                               _mm256_add_epi32(high, _mm256_set1_epi32(static_cast<int>(bounds.first[i]))));
        }
    }
    // Which lanes are biased is determined only if there is one, which is very rare.
    if (_mm256_movemask_epi8(are_uniform) == -1) [[likely]] {
        biased = {};
        return false;
    }
    return draw_plain(counters, stream, key, bounds, lanes, biased);
}

// The copy for AVX-512 is 3.6 times as fast as that for AVX2, and 3.0 times for listed counters (0.90 and 3.26 ns, 1.06
// and 3.19 ns a frame; AMD EPYC, Zen 5, 2026), which makes the whole sender a quarter faster. bench/sender_rate.py
// measures both in turn in one run, as the parts "draw avx512" and "draw avx2". Below 1.1 the copy is not worth it.

/// The counters at, at + 2, ... at + 14.
__attribute__((target("avx512f"), always_inline)) inline __m512i every_other_avx512(const Stepped& counters,
                                                                                    std::size_t at) noexcept {
    const auto s = static_cast<long long>(counters.stride);
    return _mm512_add_epi64(_mm512_set1_epi64(static_cast<long long>(counters.at(at))),
                            _mm512_set_epi64(14 * s, 12 * s, 10 * s, 8 * s, 6 * s, 4 * s, 2 * s, 0));
}
__attribute__((target("avx512f"), always_inline)) inline __m512i every_other_avx512(const Listed& counters,
                                                                                    std::size_t at) noexcept {
    const auto* const words = counters.words + at / 2 * 2;
    const __m512i even = _mm512_set_epi64(14, 12, 10, 8, 6, 4, 2, 0);
    const __m512i which = at % 2 == 0 ? even : _mm512_add_epi64(even, _mm512_set1_epi64(1));
    return _mm512_and_si512(_mm512_permutex2var_epi64(_mm512_loadu_si512(words), which, _mm512_loadu_si512(words + 8)),
                            _mm512_set1_epi64(static_cast<long long>(Listed::mask)));
}

constexpr std::size_t frames_of_avx512_pair = 16;
constexpr std::size_t avx512_vectors = 2 * DrawLanes::size / frames_of_avx512_pair;
constexpr __mmask16 odd_words_avx512 = 0xAAAA;
using PairsAvx512 = __m512i[drawn_fields][avx512_vectors];

/// Makes the words of all frames; above each, garbage.
template <class Counters>
__attribute__((target("avx512f"), always_inline)) inline void make_words_avx512(const Counters& counters,
                                                                                std::uint32_t stream, PhiloxKey key,
                                                                                PairsAvx512& w) noexcept {
    constexpr std::size_t width = frames_of_avx512_pair;
    constexpr std::size_t together = avx512_vectors;
    constexpr int xor_of_three = 0x96;
    const __m512i m0 = _mm512_set1_epi64(multiplier_0);
    const __m512i m1 = _mm512_set1_epi64(multiplier_1);
    for (std::size_t v = 0; v < together; ++v) {
        w[0][v] = every_other_avx512(counters, v / 2 * width + v % 2);
        w[1][v] = _mm512_srli_epi64(w[0][v], 32);
        w[2][v] = _mm512_set1_epi64(stream);
        w[3][v] = _mm512_setzero_si512();
    }
    for (int round = 0; round < rounds; ++round, key[0] += weyl_0, key[1] += weyl_1) {
        const __m512i k0 = _mm512_set1_epi64(key[0]);
        const __m512i k1 = _mm512_set1_epi64(key[1]);
        for (std::size_t v = 0; v < together; ++v) {
            const __m512i p0 = _mm512_mul_epu32(w[0][v], m0);
            const __m512i p1 = _mm512_mul_epu32(w[2][v], m1);
            w[0][v] = _mm512_ternarylogic_epi64(_mm512_srli_epi64(p1, 32), w[1][v], k0, xor_of_three);
            w[2][v] = _mm512_ternarylogic_epi64(_mm512_srli_epi64(p0, 32), w[3][v], k1, xor_of_three);
            w[1][v] = p1;
            w[3][v] = p0;
        }
    }
}

__attribute__((target("avx512f"))) void words_avx512(const std::uint64_t* counters, std::uint32_t stream, PhiloxKey key,
                                                     DrawLanes& lanes) noexcept {
    PairsAvx512 w;
    make_words_avx512(Listed{counters}, stream, key, w);
    for (std::size_t i = 0; i < drawn_fields; ++i) {
        for (std::size_t v = 0; v < avx512_vectors; v += 2) {
            const __m512i odd = _mm512_slli_epi64(w[i][v + 1], 32);
            _mm512_store_si512(&lanes.field[i][v / 2 * frames_of_avx512_pair],
                               _mm512_mask_mov_epi32(w[i][v], odd_words_avx512, odd));
        }
    }
}

template <class Counters>
__attribute__((target("avx512f"))) bool draw_avx512(const Counters& counters, std::uint32_t stream, PhiloxKey key,
                                                    const DrawBounds& bounds, DrawLanes& lanes,
                                                    LaneBits& biased) noexcept {
    constexpr std::size_t width = frames_of_avx512_pair;
    constexpr std::size_t together = avx512_vectors;
    constexpr __mmask16 odd = odd_words_avx512;
    biased = {};
    PairsAvx512 w;
    make_words_avx512(counters, stream, key, w);
    for (std::size_t i = 0; i < drawn_fields; ++i) {
        const __m512i count = _mm512_set1_epi64(bounds.count[i]);
        const __m512i threshold = _mm512_set1_epi32(static_cast<int>(bounds.threshold[i]));
        for (std::size_t v = 0; v < together; v += 2) {
            const __m512i even_product = _mm512_mul_epu32(w[i][v], count);
            const __m512i odd_product = _mm512_mul_epu32(w[i][v + 1], count);
            const __m512i high = _mm512_mask_mov_epi32(_mm512_srli_epi64(even_product, 32), odd, odd_product);
            const __m512i low = _mm512_mask_mov_epi32(even_product, odd, _mm512_slli_epi64(odd_product, 32));
            biased[i] |= static_cast<std::uint32_t>(_mm512_cmplt_epu32_mask(low, threshold)) << (v / 2 * width);
            _mm512_store_si512(&lanes.field[i][v / 2 * width],
                               _mm512_add_epi32(high, _mm512_set1_epi32(static_cast<int>(bounds.first[i]))));
        }
    }
    return is_any(biased);
}
#endif

template <class Counters>
using Draw = bool (*)(const Counters&, std::uint32_t, PhiloxKey, const DrawBounds&, DrawLanes&, LaneBits&) noexcept;

template <Draw<Stepped> draw>
bool draw_stepped(std::uint64_t first, std::uint64_t stride, std::uint32_t stream, PhiloxKey key,
                  const DrawBounds& bounds, DrawLanes& lanes, LaneBits& biased) noexcept {
    return draw({.first = first, .stride = stride}, stream, key, bounds, lanes, biased);
}

template <Draw<Listed> draw>
bool draw_listed(const std::uint64_t* words, std::uint32_t stream, PhiloxKey key, const DrawBounds& bounds,
                 DrawLanes& lanes, LaneBits& biased) noexcept {
    return draw({.words = words}, stream, key, bounds, lanes, biased);
}

template <class Variant, class VariantOf>
Variant widest(VariantOf variant_of) noexcept {
    for (const char* const name : {"avx512", "avx2"}) {
        if (const auto variant = variant_of(name); variant != nullptr) return variant;
    }
    return variant_of("plain");
}

}  // namespace

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> c, PhiloxKey key) noexcept {
    for (int round = 0; round < rounds; ++round) {
        const std::uint64_t product_0 = std::uint64_t{multiplier_0} * c[0];
        const std::uint64_t product_1 = std::uint64_t{multiplier_1} * c[2];
        c = {static_cast<std::uint32_t>(product_1 >> 32U) ^ c[1] ^ key[0], static_cast<std::uint32_t>(product_1),
             static_cast<std::uint32_t>(product_0 >> 32U) ^ c[3] ^ key[1], static_cast<std::uint32_t>(product_0)};
        key[0] += weyl_0;
        key[1] += weyl_1;
    }
    return c;
}

DrawVariant draw_variant(const char* name) noexcept {
    const std::string_view wanted{name};
#if defined(__x86_64__)
    if (wanted == "avx512" && __builtin_cpu_supports("avx512f") != 0) return draw_stepped<draw_avx512<Stepped>>;
    if (wanted == "avx2" && __builtin_cpu_supports("avx2") != 0) return draw_stepped<draw_avx2<Stepped>>;
#endif
    return wanted == "plain" ? draw_stepped<draw_plain<Stepped>> : nullptr;
}

ListedDrawVariant listed_draw_variant(const char* name) noexcept {
    const std::string_view wanted{name};
#if defined(__x86_64__)
    if (wanted == "avx512" && __builtin_cpu_supports("avx512f") != 0) return draw_listed<draw_avx512<Listed>>;
    if (wanted == "avx2" && __builtin_cpu_supports("avx2") != 0) return draw_listed<draw_avx2<Listed>>;
#endif
    return wanted == "plain" ? draw_listed<draw_plain<Listed>> : nullptr;
}

WordVariant word_variant(const char* name) noexcept {
    const std::string_view wanted{name};
#if defined(__x86_64__)
    if (wanted == "avx512" && __builtin_cpu_supports("avx512f") != 0) return words_avx512;
    if (wanted == "avx2" && __builtin_cpu_supports("avx2") != 0) return words_avx2;
#endif
    return wanted == "plain" ? words_plain : nullptr;
}

bool draw_lanes(std::uint64_t first, std::uint64_t stride, std::uint32_t stream, PhiloxKey key,
                const DrawBounds& bounds, DrawLanes& lanes, LaneBits& biased) noexcept {
    static const DrawVariant variant = widest<DrawVariant>(draw_variant);
    return variant(first, stride, stream, key, bounds, lanes, biased);
}

bool draw_listed_lanes(const std::uint64_t* words, std::uint32_t stream, PhiloxKey key, const DrawBounds& bounds,
                       DrawLanes& lanes, LaneBits& biased) noexcept {
    static const ListedDrawVariant variant = widest<ListedDrawVariant>(listed_draw_variant);
    return variant(words, stream, key, bounds, lanes, biased);
}

void draw_listed_words(const std::uint64_t* counters, std::uint32_t stream, PhiloxKey key, DrawLanes& lanes) noexcept {
    static const WordVariant variant = widest<WordVariant>(word_variant);
    variant(counters, stream, key, lanes);
}

}  // namespace evenhand::plan
