// SPDX-License-Identifier: Apache-2.0
// Station 1, plan: a drawn number of all bits as one of a range. Exact if the range has a power of two of numbers.
// Otherwise no number is more likely than another by more than 2^-32 of its share; in IPv6, this is so up to 2^96.
#pragma once

#include <cstdint>

#include "wide.hpp"

namespace evenhand::plan {

constexpr unsigned half_bits = 64;

[[nodiscard]] inline std::uint64_t upper(Wide number) noexcept {
    return static_cast<std::uint64_t>(number >> half_bits);
}
[[nodiscard]] inline std::uint64_t lower(Wide number) noexcept { return static_cast<std::uint64_t>(number); }

/// bits * (span + 1) / 2^64: uniform from 0 to `span`.
[[nodiscard]] inline std::uint32_t scaled(std::uint64_t bits, std::uint32_t span) noexcept {
    return static_cast<std::uint32_t>((Wide{bits} * span + bits) >> half_bits);
}

/// bits * (span + 1) / 2^128. None of the sums overflows.
[[nodiscard]] inline Wide scaled(Wide bits, Wide span) noexcept {
    const Wide low = Wide{lower(bits)} * lower(span) + lower(bits);
    const Wide one = Wide{upper(bits)} * lower(span);
    const Wide other = Wide{lower(bits)} * upper(span);
    const Wide middle = Wide{upper(low)} + lower(one) + lower(other) + upper(bits);
    return Wide{upper(bits)} * upper(span) + upper(one) + upper(other) + upper(middle);
}

/// Two drawn words as one number.
[[nodiscard]] inline std::uint64_t joined(std::uint32_t high, std::uint32_t low) noexcept {
    return std::uint64_t{high} << 32U | low;
}

}  // namespace evenhand::plan
