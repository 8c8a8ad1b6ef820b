// SPDX-License-Identifier: Apache-2.0
// Octets for tests: as text, and summed by the book.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace evenhand::tests {

using Octets = std::vector<std::byte>;

inline std::string hex(std::span<const std::byte> octets) {
    std::string text;
    for (const auto octet : octets) text += fmt::format("{:02x}", static_cast<unsigned>(octet));
    return text;
}

/// From hexadecimal digits; blanks between them are for the reader.
inline Octets octets_of(std::string_view digits) {
    const auto nibble = [](char c) { return static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10); };
    std::string packed;
    for (const char c : digits) {
        if (c != ' ') packed += c;
    }
    Octets octets;
    for (std::size_t i = 0; i + 1 < packed.size(); i += 2)
        octets.push_back(static_cast<std::byte>(nibble(packed[i]) * 16 + nibble(packed[i + 1])));
    return octets;
}

/// The sum of RFC 1071, 16-bit words one after the other; 0xFFFF over octets with a right checksum in them.
inline std::uint16_t slow_sum(std::span<const std::byte> octets, std::uint32_t sum = 0) {
    for (std::size_t i = 0; i < octets.size(); i += 2) {
        sum += static_cast<std::uint32_t>(octets[i]) << 8U;
        if (i + 1 < octets.size()) sum += static_cast<std::uint32_t>(octets[i + 1]);
        sum = (sum & 0xFFFFU) + (sum >> 16U);
    }
    return static_cast<std::uint16_t>(sum);
}

}  // namespace evenhand::tests
