// SPDX-License-Identifier: Apache-2.0
// Station 5, seen from the frame: the pattern behind a tag, to compare with.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace evenhand::frame {

constexpr std::size_t pattern_period = 256;

/// Octets 0, 1, 2, ...: long enough for a register's width and more from any offset within a period.
inline constexpr auto pattern_octets = [] {
    std::array<std::byte, 3 * pattern_period> octets{};
    for (std::size_t i = 0; i < octets.size(); ++i) octets[i] = static_cast<std::byte>(i);
    return octets;
}();

/// Whether the octets are what write_pattern() writes, beginning with `first`.
[[nodiscard]] inline bool has_pattern(const std::byte* at, std::size_t octets, std::uint8_t first) noexcept {
    while (octets != 0) {
        const std::size_t n = std::min(octets, pattern_period);
        if (std::memcmp(at, pattern_octets.data() + first, n) != 0) return false;
        at += n;
        octets -= n;
    }
    return true;
}

}  // namespace evenhand::frame
