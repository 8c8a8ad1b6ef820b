// SPDX-License-Identifier: Apache-2.0
// Station 1, plan: pseudorandom MAC addresses of hosts on the link (RFC 4814, section 4.2).
#pragma once

#include <array>
#include <cstdint>

#include "plan/plan.hpp"

namespace evenhand::plan {

/// MACs of the hosts of one side: (RR & 0xFC):PP:PP:RR:RR:RR, where PP:PP is the tester's interface, 1 for the left and
/// 2 for the right (R4814-05). The 30 bits RR are a keyed permutation of the host's number, a function of seed, side
/// and host alone. So all trials of a test have the same set (R4814-08), no two hosts of a side share a MAC, and no
/// table is needed.
class HostMacs {
   public:
    HostMacs(std::uint64_t seed, Side side) noexcept;

    /// MAC of host i < 2^24. A hot path: each frame of a direct plan has it as its source.
    [[nodiscard]] MacAddress mac(std::uint32_t host) const noexcept {
        const std::uint32_t rr = permute(host);
        return {static_cast<std::uint8_t>(rr >> 24U << 2U),
                interface_high,
                interface_low_,
                static_cast<std::uint8_t>(rr >> 16U),
                static_cast<std::uint8_t>(rr >> 8U),
                static_cast<std::uint8_t>(rr)};
    }

   private:
    static constexpr std::uint8_t interface_high = 0;
    static constexpr std::uint32_t half_bits = 15;
    static constexpr std::uint32_t half_mask = (1U << half_bits) - 1;
    static constexpr std::size_t rounds =
        4;  // a Feistel network is a strong pseudorandom permutation from four rounds on (Luby, Rackoff)

    [[nodiscard]] std::uint32_t permute(std::uint32_t host) const noexcept {
        std::uint32_t left = host >> half_bits & half_mask;
        std::uint32_t right = host & half_mask;
        for (const std::uint32_t key : keys_) {
            const std::uint32_t next = left ^ (scramble(right + key) & half_mask);
            left = right;
            right = next;
        }
        return left << half_bits | right;
    }

    /// The finalizer of MurmurHash3: every bit of the input moves every bit of the result.
    [[nodiscard]] static std::uint32_t scramble(std::uint32_t x) noexcept {
        x ^= x >> 16U;
        x *= 0x85EBCA6B;
        x ^= x >> 13U;
        x *= 0xC2B2AE35;
        return x ^ x >> 16U;
    }

    std::array<std::uint32_t, rounds> keys_;
    std::uint8_t interface_low_;
};

}  // namespace evenhand::plan
