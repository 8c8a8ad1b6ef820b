// SPDX-License-Identifier: Apache-2.0
// Station 1, plan: a keyed bijection between numbers and the points of a rectangle with up to four sides.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "plan/philox.hpp"

namespace evenhand::plan {

/// Maps the numbers 0 .. count - 1 to the points of a rectangle with one side for each drawn field, each point once.
///
/// A point is a pair of numbers. In turn, each of the two is moved by a keyed hash of the other one, modulo the count
/// of its values (a generalised Feistel network). This needs no table, and any core can map any number. If there are
/// many points, the sides of the rectangle form two groups, and each number of the pair stands for one group. If there
/// are few, a group with hardly any values would mix the other one too little; then the pair is the two digits of one
/// number, the point's. A few pairs then stand for no point: whatever is mapped to one of these is mapped again from
/// there ("cycle walking").
class RectanglePermutation {
   public:
    using Numbers = DrawLanes::Values;

    /// How many points the rectangle has; nothing if 64 bits cannot count them.
    [[nodiscard]] static std::optional<std::uint64_t> points(const DrawBounds& sides) noexcept;

    /// `sides`: first value and count of each field; their points can be counted.
    RectanglePermutation(const DrawBounds& sides, std::uint64_t seed) noexcept;

    /// The same points with their fields exchanged, the first with the second and the third with the fourth.
    [[nodiscard]] RectanglePermutation turned_around() const noexcept;

    /// The points of these numbers, which are below points(). Uses the widest vector unit of this CPU; all give the
    /// same results.
    void apply(const Numbers& numbers, DrawLanes& points) const noexcept;

    using Variant = bool (*)(const RectanglePermutation&, const Numbers&, DrawLanes&) noexcept;
    /// The variants "plain", "avx2" and "avx512", for tests; null if this CPU cannot. They return true if a lane went
    /// nowhere.
    [[nodiscard]] static Variant variant(const char* name) noexcept;

   private:
    static constexpr std::size_t rounds = 6;

    /// A field, or the divisor of a pair.
    struct Digit {
        std::size_t field = 0;
        std::uint32_t first = 0;
        std::uint32_t base = 2;
        std::uint32_t reciprocal = 0;  // 2^32 / base, rounded down
    };
    /// The fields that a number consists of, the fastest one first, without those that have one value only.
    struct Group {
        std::array<Digit, drawn_fields> digits{};
        std::size_t size = 0;
        std::uint64_t product = 1;
    };

    [[nodiscard]] static Digit digit_of(std::size_t field, const DrawBounds& sides) noexcept;
    [[nodiscard]] static Group group_of(unsigned fields, const DrawBounds& sides) noexcept;
    [[nodiscard]] static bool apply_plain(const RectanglePermutation& p, const Numbers& numbers,
                                          DrawLanes& points) noexcept;
#if defined(__x86_64__)
    [[nodiscard]] static bool apply_avx2(const RectanglePermutation& p, const Numbers& numbers,
                                         DrawLanes& points) noexcept;
    [[nodiscard]] static bool apply_avx512(const RectanglePermutation& p, const Numbers& numbers,
                                           DrawLanes& points) noexcept;
#endif
    [[nodiscard]] static Variant widest() noexcept;
    void mix(std::uint32_t& left, std::uint32_t& right) const noexcept;
    void put(Group group, std::uint32_t number, std::size_t lane, DrawLanes& points) const noexcept;
    void walk(const Numbers& numbers, DrawLanes& points) const noexcept;

    DrawBounds sides_;
    std::array<Group, 2> groups_;  // left and right; the right one alone where left and right are digits of one number
    bool is_one_number_ = false;   // whether left and right are the digits of one number
    std::uint32_t left_size_ = 1;
    Digit right_;  // base: how many values the right number has
    std::uint32_t one_number_size_ = 0;
    std::array<std::uint32_t, rounds> keys_{};
};

}  // namespace evenhand::plan
