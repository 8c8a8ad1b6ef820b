// SPDX-License-Identifier: Apache-2.0
// SplitMix64 (Steele, Lea, Flood 2014): a generator whose state is one word, and a hash of one word. For values that
// nobody has to reproduce from a plan's seed, and that therefore need not come from Philox.
#pragma once

#include <cstdint>

namespace evenhand {

/// Odd numbers without a pattern in their bits. The first is 2^64 divided by the golden ratio: its multiples are spread
/// as evenly as multiples can be.
constexpr std::uint64_t golden_multiplier = 0x9E3779B97F4A7C15;
constexpr std::uint64_t first_mix_multiplier = 0xBF58476D1CE4E5B9;
constexpr std::uint64_t second_mix_multiplier = 0x94D049BB133111EB;

/// A bijection in which each bit of `z` reaches all bits of the result.
[[nodiscard]] constexpr std::uint64_t split_mix(std::uint64_t z) noexcept {
    z = (z ^ (z >> 30U)) * first_mix_multiplier;
    z = (z ^ (z >> 27U)) * second_mix_multiplier;
    return z ^ (z >> 31U);
}

/// The next word of the generator with this state, which may begin with any number.
[[nodiscard]] constexpr std::uint64_t next_split_mix(std::uint64_t& state) noexcept {
    return split_mix(state += golden_multiplier);
}

}  // namespace evenhand
