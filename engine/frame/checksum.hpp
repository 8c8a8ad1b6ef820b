// SPDX-License-Identifier: Apache-2.0
// Station 2, frame: the Internet checksum (RFC 1071). Sums are taken in memory order; the sum does not depend on byte
// order.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "frame/layout.hpp"

namespace evenhand::frame {

/// Sum of the 16-bit words of `octets` octets, not folded. 2^16 = 1 modulo 65535, so wider words may be added as they
/// are. An odd number of octets is summed as if a zero octet followed. Fast for few octets.
[[nodiscard]] inline std::uint64_t sum_short(const std::byte* at, std::size_t octets) noexcept {
    // Two sums side by side, so that one addition need not wait for the other.
    std::uint64_t low = 0;
    std::uint64_t high = 0;
    for (; octets >= 8; at += 8, octets -= 8) {
        const auto eight = load<std::uint64_t>(at);
        low += eight & 0xFFFFFFFFU;
        high += eight >> 32U;
    }
    if ((octets & 4U) != 0) {
        low += load<std::uint32_t>(at);
        at += 4;
    }
    if ((octets & 2U) != 0) {
        high += load<std::uint16_t>(at);
        at += 2;
    }
    if ((octets & 1U) != 0) low += static_cast<std::uint8_t>(*at);
    return low + high;
}

/// The same for many octets, up to a whole frame.
using LongSum = std::uint64_t (*)(const std::byte* at, std::size_t octets) noexcept;

/// "plain" and "avx2", whose sums are equal once they are folded; null if this CPU cannot.
[[nodiscard]] LongSum long_sum(const char* name) noexcept;

/// Chosen before the program's main function.
extern const LongSum fastest_long_sum;

/// The same for any number of octets.
[[nodiscard, gnu::always_inline]] inline std::uint64_t sum_octets(const std::byte* at, std::size_t octets) noexcept {
    constexpr std::size_t many = 192;  // a call and the sum of eight lanes at the end cost as much as some 100 octets
    return octets < many ? sum_short(at, octets) : fastest_long_sum(at, octets);
}

/// Folds to 16 bits; 0 only if every word was 0. A number that is added to itself with its halves exchanged has, in its
/// upper half, the sum of the halves with the carry added.
[[nodiscard]] constexpr std::uint16_t fold(std::uint64_t sum) noexcept {
    const auto half = static_cast<std::uint32_t>((sum + std::rotl(sum, 32)) >> 32U);
    return static_cast<std::uint16_t>((half + std::rotl(half, 16)) >> 16U);
}

/// Checksum field of an IPv4 header, memory order.
[[nodiscard]] constexpr std::uint16_t ip_checksum(std::uint64_t sum) noexcept {
    return static_cast<std::uint16_t>(~fold(sum));
}

/// Checksum field of UDP and ICMPv6, memory order: a computed 0 is sent as 0xFFFF (R5180-11), since 0 means "none" in
/// UDP.
[[nodiscard]] constexpr std::uint16_t udp_checksum(std::uint64_t sum) noexcept {
    const auto complement = static_cast<std::uint16_t>(~fold(sum));
    return complement == 0 ? std::uint16_t{0xFFFF} : complement;
}

/// The sum of the pseudo-header's words other than the addresses: protocol and length.
[[nodiscard]] constexpr std::uint64_t pseudo_header_sum(std::uint8_t protocol, std::size_t length) noexcept {
    return std::uint64_t{big(std::uint16_t{protocol})} + big(static_cast<std::uint16_t>(length));
}

}  // namespace evenhand::frame
