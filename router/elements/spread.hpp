// SPDX-License-Identifier: Apache-2.0
// Elements: which processing element works on a frame (RSS-01, RSS-04, RSS-05).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "elements/toeplitz.hpp"
#include "frame/layout.hpp"

namespace evenhand::router {

enum class HashType : std::uint8_t {
    addresses,           // type 1
    addresses_and_ports  // type 2; frames without UDP or TCP ports by their addresses
};

struct SpreadOptions {
    HashType hash = HashType::addresses;
    bool is_symmetric = false;  // the hash of source XOR destination, twice, as NICs do
    std::vector<std::uint8_t> key;
    std::vector<std::uint16_t> table;  // the elements, indexed by the low bits of the hash; its size is a power of two
};

/// element = table[hash(fields) mod size]. Reads the fields where a forwarder has found them; allocates nothing.
class Spread {
   public:
    explicit Spread(SpreadOptions options)
        : options_{std::move(options)},
          hash_{options_.key},
          mask_{static_cast<std::uint32_t>(options_.table.size() - 1)} {}

    /// `source`: first octet of the source address, the destination follows it. `ports`: source port, destination port;
    /// null if the frame has none, or if it is a fragment.
    [[nodiscard]] std::uint16_t element(frame::IpVersion version, const std::byte* source,
                                        const std::byte* ports) const noexcept {
        const std::size_t octets = plan::address_octets(version);
        std::array<std::byte, longest_hash_input> input;
        std::memcpy(input.data(), source, 2 * octets);
        std::size_t length = 2 * octets;
        if (options_.hash == HashType::addresses_and_ports && ports != nullptr) {
            std::memcpy(input.data() + length, ports, 4);
            length += 4;
        }
        if (options_.is_symmetric) fold(input.data(), octets, length);
        return options_.table[hash_.hash(input.data(), length) & mask_];
    }

   private:
    /// Replaces both the source and the destination field by their XOR.
    static void fold(std::byte* input, std::size_t address, std::size_t length) noexcept {
        for (std::size_t i = 0; i < address; ++i) input[i] = input[address + i] = input[i] ^ input[address + i];
        for (std::size_t i = 2 * address; i + 2 < length; ++i) input[i] = input[i + 2] = input[i] ^ input[i + 2];
    }

    SpreadOptions options_;
    ToeplitzHash hash_;
    std::uint32_t mask_;
};

}  // namespace evenhand::router
