// SPDX-License-Identifier: Apache-2.0
// Elements: the Toeplitz hash of receive-side scaling (RSS-03).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace evenhand::router {

constexpr std::size_t longest_hash_input = 36;  // IPv6 addresses and UDP ports
constexpr std::size_t hash_window_octets = 4;   // each input bit uses 32 bits of the key

/// Hashes source address, destination address and, if wanted, source and destination port, in network order. The key is
/// expanded into a table of what each value of each input octet contributes, since the hash is linear: hash(a xor b) =
/// hash(a) xor hash(b).
class ToeplitzHash {
   public:
    /// The key must have at least `input + hash_window_octets` octets, where `input` is the longest input that will be
    /// hashed.
    explicit ToeplitzHash(std::span<const std::uint8_t> key) : contributions_(longest_hash_input * values) {
        for (std::size_t octet = 0; octet < longest_hash_input; ++octet) {
            for (std::size_t value = 0; value < values; ++value) {
                std::uint32_t hash = 0;
                for (std::size_t bit = 0; bit < 8; ++bit) {
                    if ((value >> (7 - bit) & 1U) != 0) hash ^= window(key, 8 * octet + bit);
                }
                contributions_[octet * values + value] = hash;
            }
        }
    }

    [[nodiscard]] std::uint32_t hash(const std::byte* input, std::size_t octets) const noexcept {
        std::uint32_t hash = 0;
        const std::uint32_t* row = contributions_.data();
        for (std::size_t i = 0; i < octets; ++i, row += values) hash ^= row[static_cast<std::uint8_t>(input[i])];
        return hash;
    }

   private:
    static constexpr std::size_t values = 256;

    /// 32 bits of the key from bit `first` on; beyond its end zeros.
    [[nodiscard]] static std::uint32_t window(std::span<const std::uint8_t> key, std::size_t first) {
        std::uint32_t bits = 0;
        for (std::size_t i = first; i < first + 32; ++i) {
            const std::uint32_t bit = i / 8 < key.size() ? key[i / 8] >> (7 - i % 8) & 1U : 0;
            bits = bits << 1U | bit;
        }
        return bits;
    }

    std::vector<std::uint32_t> contributions_;  // indexed by octet of the input, then by its value
};

}  // namespace evenhand::router
