// SPDX-License-Identifier: Apache-2.0
#include "frame/checksum.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "simd.hpp"

namespace evenhand::frame {

namespace {

[[nodiscard]] std::uint64_t sum_plain(const std::byte* at, std::size_t octets) noexcept {
    return sum_short(at, octets);
}

/// Adds 32 octets with three instructions. The multiply-add instruction takes words as signed numbers: with its highest
/// bit flipped, a word is 0x8000 too small, which is added again at the end.
[[nodiscard]] __attribute__((target("avx2"))) std::uint64_t sum_avx2(const std::byte* at, std::size_t octets) noexcept {
    constexpr std::size_t step = 64;
    constexpr std::size_t words_of_lane = 4;  // in one step: two in each of two vectors
    // A lane holds 32 bits, and grows by less than 2^17 with each step.
    constexpr std::size_t most_steps = 8192;
    std::uint64_t sum = 0;
    const __m256i ones = _mm256_set1_epi16(1);
    const __m256i high_bits = _mm256_set1_epi16(static_cast<short>(0x8000));
    while (octets >= step) {
        const std::size_t steps = std::min(octets / step, most_steps);
        __m256i first = _mm256_setzero_si256();
        __m256i second = _mm256_setzero_si256();
        for (std::size_t i = 0; i < steps; ++i, at += step) {
            const auto* const words = reinterpret_cast<const __m256i*>(at);
            const __m256i a = _mm256_xor_si256(_mm256_loadu_si256(words), high_bits);
            const __m256i b = _mm256_xor_si256(_mm256_loadu_si256(words + 1), high_bits);
            first = _mm256_add_epi32(first, _mm256_madd_epi16(a, ones));
            second = _mm256_add_epi32(second, _mm256_madd_epi16(b, ones));
        }
        octets -= steps * step;
        alignas(32) std::array<std::int32_t, 8> lanes;
        _mm256_store_si256(reinterpret_cast<__m256i*>(lanes.data()), _mm256_add_epi32(first, second));
        std::int64_t signed_sum = 0;
        for (const auto lane : lanes) signed_sum += lane;
        constexpr std::int64_t bias = 0x8000;
        sum += static_cast<std::uint64_t>(signed_sum +
                                          bias * static_cast<std::int64_t>(steps * lanes.size() * words_of_lane));
    }
    return sum + sum_short(at, octets);
}

}  // namespace

LongSum long_sum(const char* name) noexcept {
    const std::string_view wanted{name};
    if (wanted == "plain") return sum_plain;
    if (wanted == "avx2" && __builtin_cpu_supports("avx2") != 0) return sum_avx2;
    return nullptr;
}

const LongSum fastest_long_sum = [] {
    const LongSum wide = long_sum("avx2");
    return wide != nullptr ? wide : sum_plain;
}();

}  // namespace evenhand::frame
