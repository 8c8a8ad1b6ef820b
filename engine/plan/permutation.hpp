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

/// From the numbers 0 .. count - 1 to the points of a rectangle with a side for each drawn field, each point once.
///
/// A point is a pair of numbers, of which both are moved in turn by a keyed hash of the other, modulo how many values
/// they have (a generalised Feistel network): no table, and any core can say where any number goes. With many points
/// the sides of the rectangle are two groups, and each of the pair's numbers stands for one. With few, a group of
/// almost no values would hardly mix the other. Then the pair is the two digits of one number of the points; a few
/// pairs are none, and who is led to one of these goes on from there ("cycle walking").
class RectanglePermutation {
   public:
    using Numbers = DrawLanes::Values;

    /// Points of the rectangle, or nothing if 64 bits cannot count them.
    [[nodiscard]] static std::optional<std::uint64_t> points(const DrawBounds& sides) noexcept;

    /// `sides`: first value and count of each field; their points can be counted.
    RectanglePermutation(const DrawBounds& sides, std::uint64_t seed) noexcept;

    /// The points of these numbers, which are below points(). Uses the widest vector unit; the results are the same on
    /// all.
    void apply(const Numbers& numbers, DrawLanes& points) const noexcept;

    using Variant = bool (*)(const RectanglePermutation&, const Numbers&, DrawLanes&) noexcept;
    /// The variants "plain", "avx2" and "avx512", for tests; null if this CPU cannot. They return true if a lane went
    /// nowhere.
    [[nodiscard]] static Variant variant(const char* name) noexcept;

   private:
    static constexpr std::size_t rounds = 6;

    /// A field, or what divides a pair.
    struct Digit {
        std::size_t field = 0;
        std::uint32_t first = 0;
        std::uint32_t base = 2;
        std::uint32_t reciprocal = 0;  // 2^32 / base, rounded down
    };
    /// The fields that a number is made of, the fastest first; those with one value are left out.
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
    std::array<Group, 2> groups_;  // left, right; where they are digits of one number, that is right
    bool is_one_number_ = false;   // of which left and right are the digits
    std::uint32_t left_size_ = 1;
    Digit right_;  // base: how many values the right number has
    std::uint32_t one_number_size_ = 0;
    std::array<std::uint32_t, rounds> keys_{};
};

}  // namespace evenhand::plan
