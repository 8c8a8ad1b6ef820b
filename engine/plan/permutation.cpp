// SPDX-License-Identifier: Apache-2.0
#include "plan/permutation.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "simd.hpp"

namespace evenhand::plan {
namespace {

/// The draws of addresses use streams 0 and 1 of philox4x32.
constexpr std::uint32_t stream_of_keys = 2;

constexpr std::uint32_t multiplier = 0xD2511F53;  // one of Philox's

constexpr std::uint64_t two_32 = std::uint64_t{1} << 32U;
constexpr std::uint64_t most_of_one_number = two_32 / 2;  // the product of its two digits' bases may be a little larger

/// How far a number is moved. The map is a bijection whatever the distribution of this hash; that all results are about
/// equally likely makes it look random.
std::uint32_t step_of(std::uint32_t by, std::uint32_t key, std::uint32_t size) noexcept {
    const std::uint64_t product = std::uint64_t{by ^ key} * multiplier;
    const auto hash = static_cast<std::uint32_t>(product ^ product >> 32U);
    return static_cast<std::uint32_t>(std::uint64_t{hash} * size >> 32U);
}

/// Both must be below `size`, which may need all 32 bits.
std::uint32_t moved(std::uint32_t number, std::uint32_t step, std::uint32_t size) noexcept {
    return number >= size - step ? number + step - size : number + step;
}

std::uint32_t square_root_up(std::uint64_t size) noexcept {
    auto root = static_cast<std::uint32_t>(std::sqrt(static_cast<double>(size)));
    while (std::uint64_t{root} * root < size) ++root;
    return root;
}

std::uint32_t reciprocal_of(std::uint32_t base) noexcept { return static_cast<std::uint32_t>(two_32 / base); }

/// Leaves the quotient in `number` and returns the remainder. The reciprocal is rounded down, so the quotient may be
/// one too small before the correction.
std::uint32_t divide(std::uint32_t& number, std::uint32_t base, std::uint32_t reciprocal) noexcept {
    auto quotient = static_cast<std::uint32_t>(std::uint64_t{number} * reciprocal >> 32U);
    std::uint32_t rest = number - quotient * base;
    if (rest >= base) {
        rest -= base;
        ++quotient;
    }
    number = quotient;
    return rest;
}

}  // namespace

std::optional<std::uint64_t> RectanglePermutation::points(const DrawBounds& sides) noexcept {
    std::uint64_t product = 1;
    for (const std::uint64_t side : sides.count) {
        if (__builtin_mul_overflow(product, side, &product)) return std::nullopt;
    }
    return product;
}

RectanglePermutation::Digit RectanglePermutation::digit_of(std::size_t field, const DrawBounds& sides) noexcept {
    return {.field = field,
            .first = sides.first[field],
            .base = sides.count[field],
            .reciprocal = reciprocal_of(sides.count[field])};
}

RectanglePermutation::Group RectanglePermutation::group_of(unsigned fields, const DrawBounds& sides) noexcept {
    Group group;
    for (std::size_t field = 0; field < drawn_fields; ++field) {
        if ((fields >> field & 1U) == 0 || sides.count[field] == 1) continue;
        group.digits[group.size++] = digit_of(field, sides);
        group.product *= sides.count[field];
    }
    return group;
}

RectanglePermutation::RectanglePermutation(const DrawBounds& sides, std::uint64_t seed) noexcept : sides_{sides} {
    constexpr unsigned all = (1U << drawn_fields) - 1;
    const Group whole = group_of(all, sides);
    for (unsigned fields = 0; fields <= all; ++fields) {
        const Group left = group_of(fields, sides);
        const Group right = group_of(all & ~fields, sides);
        const auto smaller = std::min(left.product, right.product);
        if (std::max(left.product, right.product) < two_32 &&
            smaller > std::min(groups_[0].product, groups_[1].product))
            groups_ = {left, right};
    }
    is_one_number_ = whole.product < most_of_one_number;
    right_.first = 0;
    if (is_one_number_) {
        groups_ = {Group{}, whole};
        one_number_size_ = static_cast<std::uint32_t>(whole.product);
        right_.base = std::max(square_root_up(whole.product), 2U);
        left_size_ = static_cast<std::uint32_t>((whole.product + right_.base - 1) / right_.base);
    } else {
        right_.base = static_cast<std::uint32_t>(groups_[1].product);
        left_size_ = static_cast<std::uint32_t>(groups_[0].product);
    }
    right_.reciprocal = reciprocal_of(right_.base);
    const PhiloxKey key{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32U)};
    for (std::size_t i = 0; i < rounds; ++i)
        keys_[i] = philox4x32({static_cast<std::uint32_t>(i), 0, stream_of_keys, 0}, key)[0];
}

RectanglePermutation RectanglePermutation::turned_around() const noexcept {
    RectanglePermutation turned{*this};
    for (std::size_t field = 0; field < drawn_fields; ++field)
        turned.sides_.set(field, sides_.first[field ^ 1U], sides_.count[field ^ 1U]);
    for (Group& group : turned.groups_) {
        for (Digit& digit : group.digits) digit.field ^= 1U;
    }
    return turned;
}

void RectanglePermutation::mix(std::uint32_t& left, std::uint32_t& right) const noexcept {
    for (std::size_t round = 0; round < rounds; round += 2) {
        left = moved(left, step_of(right, keys_[round], left_size_), left_size_);
        right = moved(right, step_of(left, keys_[round + 1], right_.base), right_.base);
    }
}

void RectanglePermutation::put(Group group, std::uint32_t number, std::size_t lane, DrawLanes& points) const noexcept {
    for (std::size_t i = 0; i < group.size; ++i) {
        const Digit& digit = group.digits[i];
        const bool is_last = i + 1 == group.size;
        points.field[digit.field][lane] =
            digit.first + (is_last ? number : divide(number, digit.base, digit.reciprocal));
    }
}

bool RectanglePermutation::apply_plain(const RectanglePermutation& p, const Numbers& numbers,
                                       DrawLanes& points) noexcept {
    bool is_nowhere = false;
    for (std::size_t field = 0; field < drawn_fields; ++field) points.field[field].fill(p.sides_.first[field]);
    for (std::size_t lane = 0; lane < DrawLanes::size; ++lane) {
        std::uint32_t left = numbers[lane];
        std::uint32_t right = divide(left, p.right_.base, p.right_.reciprocal);
        p.mix(left, right);
        if (p.is_one_number_) {
            right += left * p.right_.base;
            is_nowhere = is_nowhere || right >= p.one_number_size_;
        } else {
            p.put(p.groups_[0], left, lane, points);
        }
        p.put(p.groups_[1], right, lane, points);
    }
    return is_nowhere;
}

/// Maps lanes that stand for no point until they do.
void RectanglePermutation::walk(const Numbers& numbers, DrawLanes& points) const noexcept {
    for (std::size_t lane = 0; lane < DrawLanes::size; ++lane) {
        std::uint32_t left = numbers[lane];
        std::uint32_t right = divide(left, right_.base, right_.reciprocal);
        std::uint32_t number = 0;
        do {
            mix(left, right);
            number = left * right_.base + right;
        } while (number >= one_number_size_);
        put(groups_[1], number, lane, points);
    }
}

#if defined(__x86_64__)
namespace {

// As in philox.cpp: 32-bit words in 64-bit elements, and a pair of vectors for the lanes 0, 2, 4, ... and 1, 3, 5, ...
// The high halves of numbers that are moved are zero, so that a sum beyond 32 bits or below zero is visible in them.

struct Pair {
    __m256i even;
    __m256i odd;
};

__attribute__((target("avx2"), always_inline)) inline Pair pair_of(__m256i eight) noexcept {
    return {_mm256_and_si256(eight, _mm256_set1_epi64x(two_32 - 1)), _mm256_srli_epi64(eight, 32)};
}
__attribute__((target("avx2"), always_inline)) inline __m256i eight_of(const Pair& pair) noexcept {
    return _mm256_or_si256(pair.even, _mm256_slli_epi64(pair.odd, 32));
}
__attribute__((target("avx2"), always_inline)) inline __m256i each(std::uint32_t value) noexcept {
    return _mm256_set1_epi64x(value);
}

/// The number, less `size` if it is not below that.
__attribute__((target("avx2"), always_inline)) inline __m256i below(__m256i number, __m256i size,
                                                                    __m256i& less) noexcept {
    less = _mm256_sub_epi64(number, size);
    const __m256d sign = _mm256_castsi256_pd(less);
    return _mm256_castpd_si256(_mm256_blendv_pd(sign, _mm256_castsi256_pd(number), sign));
}

__attribute__((target("avx2"), always_inline)) inline __m256i move_lanes(__m256i number, __m256i by, __m256i key,
                                                                         __m256i size) noexcept {
    const __m256i product = _mm256_mul_epu32(_mm256_xor_si256(by, key), each(multiplier));
    const __m256i hash = _mm256_xor_si256(product, _mm256_srli_epi64(product, 32));
    __m256i less;
    return below(_mm256_add_epi64(number, _mm256_srli_epi64(_mm256_mul_epu32(hash, size), 32)), size, less);
}

__attribute__((target("avx2"), always_inline)) inline __m256i divide_lanes(__m256i& number, __m256i base,
                                                                           __m256i reciprocal) noexcept {
    const __m256i quotient = _mm256_srli_epi64(_mm256_mul_epu32(number, reciprocal), 32);
    __m256i less;
    const __m256i rest = below(_mm256_sub_epi64(number, _mm256_mul_epu32(quotient, base)), base, less);
    number = _mm256_sub_epi64(_mm256_add_epi64(quotient, each(1)), _mm256_srli_epi64(less, 63));
    return rest;
}

// The copy for AVX-512 is 1.34 times as fast as that for AVX2 (1.82 and 2.44 ns a connection; AMD EPYC, Zen 5, 2026).
// bench/sender_rate.py measures both in turn in one run, as the parts "permute avx512" and "permute avx2". Below 1.1
// the copy is not worth it.

/// A pair of vectors with sixteen lanes.
struct WidePair {
    __m512i even;
    __m512i odd;
};

__attribute__((target("avx512f"), always_inline)) inline WidePair wide_pair_of(__m512i sixteen) noexcept {
    return {_mm512_and_si512(sixteen, _mm512_set1_epi64(two_32 - 1)), _mm512_srli_epi64(sixteen, 32)};
}
__attribute__((target("avx512f"), always_inline)) inline __m512i sixteen_of(const WidePair& pair) noexcept {
    return _mm512_or_si512(pair.even, _mm512_slli_epi64(pair.odd, 32));
}

__attribute__((target("avx512f"), always_inline)) inline __m512i move_wide(__m512i number, __m512i by, __m512i key,
                                                                           __m512i size) noexcept {
    const __m512i product = _mm512_mul_epu32(_mm512_xor_si512(by, key), _mm512_set1_epi64(multiplier));
    const __m512i hash = _mm512_xor_si512(product, _mm512_srli_epi64(product, 32));
    const __m512i sum = _mm512_add_epi64(number, _mm512_srli_epi64(_mm512_mul_epu32(hash, size), 32));
    return _mm512_min_epu64(sum, _mm512_sub_epi64(sum, size));  // a difference below zero is a huge unsigned number
}

__attribute__((target("avx512f"), always_inline)) inline __m512i divide_wide(__m512i& number, __m512i base,
                                                                             __m512i reciprocal) noexcept {
    const __m512i quotient = _mm512_srli_epi64(_mm512_mul_epu32(number, reciprocal), 32);
    const __m512i rest = _mm512_sub_epi64(number, _mm512_mul_epu32(quotient, base));
    const __mmask8 is_over = _mm512_cmpge_epu64_mask(rest, base);
    number = _mm512_mask_add_epi64(quotient, is_over, quotient, _mm512_set1_epi64(1));
    return _mm512_mask_sub_epi64(rest, is_over, rest, base);
}

}  // namespace

__attribute__((target("avx2"))) bool RectanglePermutation::apply_avx2(const RectanglePermutation& p,
                                                                      const Numbers& numbers,
                                                                      DrawLanes& points) noexcept {
    constexpr std::size_t width = 8;
    const __m256i left_size = each(p.left_size_);
    const __m256i right_size = each(p.right_.base);
    const __m256i reciprocal = each(p.right_.reciprocal);
    __m256i is_somewhere = _mm256_set1_epi64x(-1);
    for (std::size_t field = 0; field < drawn_fields; ++field) points.field[field].fill(p.sides_.first[field]);
    // All lanes go through a round together, so that no pair waits for its own multiplications.
    std::array<Pair, DrawLanes::size / width> lefts;
    std::array<Pair, DrawLanes::size / width> rights;
    for (std::size_t i = 0; i < lefts.size(); ++i) {
        lefts[i] = pair_of(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(&numbers[i * width])));
        rights[i] = {divide_lanes(lefts[i].even, right_size, reciprocal),
                     divide_lanes(lefts[i].odd, right_size, reciprocal)};
    }
    for (std::size_t round = 0; round < rounds; round += 2) {
        const __m256i key_0 = each(p.keys_[round]);
        const __m256i key_1 = each(p.keys_[round + 1]);
        for (std::size_t i = 0; i < lefts.size(); ++i) {
            lefts[i].even = move_lanes(lefts[i].even, rights[i].even, key_0, left_size);
            lefts[i].odd = move_lanes(lefts[i].odd, rights[i].odd, key_0, left_size);
        }
        for (std::size_t i = 0; i < lefts.size(); ++i) {
            rights[i].even = move_lanes(rights[i].even, lefts[i].even, key_1, right_size);
            rights[i].odd = move_lanes(rights[i].odd, lefts[i].odd, key_1, right_size);
        }
    }
    for (std::size_t i = 0; i < lefts.size(); ++i) {
        const std::size_t at = i * width;
        Pair& left = lefts[i];
        Pair& right = rights[i];
        if (p.is_one_number_) {
            const __m256i size = each(p.one_number_size_);
            right.even = _mm256_add_epi64(right.even, _mm256_mul_epu32(left.even, right_size));
            right.odd = _mm256_add_epi64(right.odd, _mm256_mul_epu32(left.odd, right_size));
            is_somewhere = _mm256_and_si256(
                is_somewhere, _mm256_and_si256(_mm256_sub_epi64(right.even, size), _mm256_sub_epi64(right.odd, size)));
        }
        for (const auto& [group, pair] : {std::pair<const Group&, Pair&>{p.groups_[0], left}, {p.groups_[1], right}}) {
            for (std::size_t d = 0; d < group.size; ++d) {
                const Digit& digit = group.digits[d];
                Pair value = pair;
                if (d + 1 != group.size) {
                    const __m256i base = each(digit.base);
                    const __m256i of_base = each(digit.reciprocal);
                    value = {divide_lanes(pair.even, base, of_base), divide_lanes(pair.odd, base, of_base)};
                }
                _mm256_store_si256(reinterpret_cast<__m256i*>(&points.field[digit.field][at]),
                                   _mm256_add_epi32(eight_of(value), _mm256_set1_epi32(static_cast<int>(digit.first))));
            }
        }
    }
    // Every lane stands for a point if all differences are below zero.
    return p.is_one_number_ && _mm256_movemask_pd(_mm256_castsi256_pd(is_somewhere)) != 0xF;
}

__attribute__((target("avx512f"))) bool RectanglePermutation::apply_avx512(const RectanglePermutation& p,
                                                                           const Numbers& numbers,
                                                                           DrawLanes& points) noexcept {
    constexpr std::size_t width = 16;
    const __m512i left_size = _mm512_set1_epi64(p.left_size_);
    const __m512i right_size = _mm512_set1_epi64(p.right_.base);
    const __m512i reciprocal = _mm512_set1_epi64(p.right_.reciprocal);
    __mmask8 is_nowhere = 0;
    for (std::size_t field = 0; field < drawn_fields; ++field) points.field[field].fill(p.sides_.first[field]);
    std::array<WidePair, DrawLanes::size / width> lefts;
    std::array<WidePair, DrawLanes::size / width> rights;
    for (std::size_t i = 0; i < lefts.size(); ++i) {
        lefts[i] = wide_pair_of(_mm512_loadu_si512(&numbers[i * width]));
        rights[i] = {divide_wide(lefts[i].even, right_size, reciprocal),
                     divide_wide(lefts[i].odd, right_size, reciprocal)};
    }
    for (std::size_t round = 0; round < rounds; round += 2) {
        const __m512i key_0 = _mm512_set1_epi64(p.keys_[round]);
        const __m512i key_1 = _mm512_set1_epi64(p.keys_[round + 1]);
        for (std::size_t i = 0; i < lefts.size(); ++i) {
            lefts[i].even = move_wide(lefts[i].even, rights[i].even, key_0, left_size);
            lefts[i].odd = move_wide(lefts[i].odd, rights[i].odd, key_0, left_size);
        }
        for (std::size_t i = 0; i < lefts.size(); ++i) {
            rights[i].even = move_wide(rights[i].even, lefts[i].even, key_1, right_size);
            rights[i].odd = move_wide(rights[i].odd, lefts[i].odd, key_1, right_size);
        }
    }
    for (std::size_t i = 0; i < lefts.size(); ++i) {
        const std::size_t at = i * width;
        WidePair& left = lefts[i];
        WidePair& right = rights[i];
        if (p.is_one_number_) {
            const __m512i size = _mm512_set1_epi64(p.one_number_size_);
            right.even = _mm512_add_epi64(right.even, _mm512_mul_epu32(left.even, right_size));
            right.odd = _mm512_add_epi64(right.odd, _mm512_mul_epu32(left.odd, right_size));
            is_nowhere = static_cast<__mmask8>(is_nowhere | _mm512_cmpge_epu64_mask(right.even, size) |
                                               _mm512_cmpge_epu64_mask(right.odd, size));
        }
        for (const auto& [group, pair] :
             {std::pair<const Group&, WidePair&>{p.groups_[0], left}, {p.groups_[1], right}}) {
            for (std::size_t d = 0; d < group.size; ++d) {
                const Digit& digit = group.digits[d];
                WidePair value = pair;
                if (d + 1 != group.size) {
                    const __m512i base = _mm512_set1_epi64(digit.base);
                    const __m512i of_base = _mm512_set1_epi64(digit.reciprocal);
                    value = {divide_wide(pair.even, base, of_base), divide_wide(pair.odd, base, of_base)};
                }
                _mm512_store_si512(
                    &points.field[digit.field][at],
                    _mm512_add_epi32(sixteen_of(value), _mm512_set1_epi32(static_cast<int>(digit.first))));
            }
        }
    }
    return is_nowhere != 0;
}
#endif

RectanglePermutation::Variant RectanglePermutation::variant(const char* name) noexcept {
    const std::string_view wanted{name};
#if defined(__x86_64__)
    if (wanted == "avx512" && __builtin_cpu_supports("avx512f") != 0) return apply_avx512;
    if (wanted == "avx2" && __builtin_cpu_supports("avx2") != 0) return apply_avx2;
#endif
    return wanted == "plain" ? apply_plain : nullptr;
}

RectanglePermutation::Variant RectanglePermutation::widest() noexcept {
    for (const char* const name : {"avx512", "avx2"}) {
        if (const auto found = variant(name); found != nullptr) return found;
    }
    return apply_plain;
}

void RectanglePermutation::apply(const Numbers& numbers, DrawLanes& points) const noexcept {
    static const Variant fastest = widest();
    if (fastest(*this, numbers, points)) [[unlikely]]
        walk(numbers, points);
}

}  // namespace evenhand::plan
