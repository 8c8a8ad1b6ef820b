// SPDX-License-Identifier: Apache-2.0
// Station 1, plan: the counter-based generator of all draws, for one frame at a time and for many side by side.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace evenhand::plan {

using PhiloxKey = std::array<std::uint32_t, 2>;

/// Philox4x32 with 10 rounds: 128 pseudorandom bits for each (counter, key). Salmon et al., "Parallel random numbers:
/// as easy as 1, 2, 3", SC 2011; it passes BigCrush, and the authors' known answers are in tests/draw_test.cpp. Chosen
/// because it has no state, so that any core can draw any frame, and because its multiplications fit the vector units
/// of all usual CPUs.
[[nodiscard]] std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter, PhiloxKey key) noexcept;

constexpr std::size_t drawn_fields = 4;

/// Ranges of the four drawn numbers: first .. first + count - 1.
struct DrawBounds {
    std::array<std::uint32_t, drawn_fields> first{};
    std::array<std::uint32_t, drawn_fields> count{1, 1, 1, 1};
    std::array<std::uint32_t, drawn_fields> threshold{};  // 2^32 mod count

    void set(std::size_t field, std::uint32_t from, std::uint32_t n) noexcept {
        first[field] = from;
        count[field] = n;
        threshold[field] = (0U - n) % n;
    }
};

/// The drawn numbers of many counters, by field.
struct DrawLanes {
    static constexpr std::size_t size = 32;
    using Values = std::array<std::uint32_t, size>;
    alignas(64) std::array<Values, drawn_fields> field;
};

/// One bit for each lane, by field.
using LaneBits = std::array<std::uint32_t, drawn_fields>;

/// Draws for the counters first, first + stride, ...: lanes.field[i][j] is the high half of (word i of philox4x32({k
/// low, k high, stream, 0}) times count i), plus first i. This is uniform except for draws whose low half is below the
/// threshold (Lemire's method): `biased` says which ones these are, and the result whether there are any; the caller
/// draws them again. Uses the widest vector unit of this CPU; all give the same results.
[[nodiscard]] bool draw_lanes(std::uint64_t first, std::uint64_t stride, std::uint32_t stream, PhiloxKey key,
                              const DrawBounds& bounds, DrawLanes& lanes, LaneBits& biased) noexcept;

using DrawVariant = bool (*)(std::uint64_t, std::uint64_t, std::uint32_t, PhiloxKey, const DrawBounds&, DrawLanes&,
                             LaneBits&) noexcept;

/// The same for the counters that are the lower 48 bits of these DrawLanes::size words.
[[nodiscard]] bool draw_listed_lanes(const std::uint64_t* words, std::uint32_t stream, PhiloxKey key,
                                     const DrawBounds& bounds, DrawLanes& lanes, LaneBits& biased) noexcept;

using ListedDrawVariant = bool (*)(const std::uint64_t*, std::uint32_t, PhiloxKey, const DrawBounds&, DrawLanes&,
                                   LaneBits&) noexcept;

/// The words themselves for such counters: lanes.field[i][j] is word i of philox4x32({k low, k high, stream, 0}).
void draw_listed_words(const std::uint64_t* counters, std::uint32_t stream, PhiloxKey key, DrawLanes& lanes) noexcept;

using WordVariant = void (*)(const std::uint64_t*, std::uint32_t, PhiloxKey, DrawLanes&) noexcept;

/// The variants "plain", "avx2", "avx512", for tests; null if this CPU cannot.
[[nodiscard]] DrawVariant draw_variant(const char* name) noexcept;
[[nodiscard]] ListedDrawVariant listed_draw_variant(const char* name) noexcept;
[[nodiscard]] WordVariant word_variant(const char* name) noexcept;

}  // namespace evenhand::plan
