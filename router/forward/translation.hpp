// SPDX-License-Identifier: Apache-2.0
// Forward: stateless translation between IPv6 and IPv4 (RFC 7915), by a prefix (RFC 6052) and by explicit mappings (RFC
// 7757), with deliberate defects on request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "forward/ip_translation.hpp"
#include "forward/packet.hpp"
#include "plan/address.hpp"

namespace evenhand::router {

/// The hosts of the IPv6 side: their IPv4 addresses and their IPv6 addresses, which are the same in the bits behind
/// both prefixes.
struct AddressMapping {
    plan::IpAddress ipv4;
    unsigned ipv4_length = 0;
    bool is_behind_prefix =
        false;  // the prefix of RFC 6052, like the IPv4 hosts; otherwise they have the following one
    plan::IpAddress ipv6;
    unsigned ipv6_length = 0;  // ipv4_length + 96
};

struct TranslationOptions {
    plan::IpAddress prefix;
    unsigned prefix_length = 0;  // 32, 40, 48, 56, 64 or 96
    std::vector<AddressMapping> mappings;
    /// Every how many translated frames one is translated wrongly; 0: none.
    std::uint64_t wrong_address_every = 0;
    std::uint64_t no_checksum_every = 0;  // of the frames that are translated to IPv6
    std::uint64_t traffic_class_every = 0;
};

struct TranslationCounters {
    std::uint64_t translated_frames = 0;
    std::uint64_t refused_frames = 0;  // not a whole UDP packet, no mapping for one of its addresses, or too long
    std::uint64_t wrong_address_frames = 0;
    std::uint64_t no_checksum_frames = 0;
    std::uint64_t traffic_class_frames = 0;
};

class Translator {
   public:
    explicit Translator(TranslationOptions options) : options_{std::move(options)} {}

    /// Whether a packet with this destination is to be translated.
    [[nodiscard]] bool is_for(const Packet& packet) const noexcept;

    /// The addresses that the packet gets; nothing: it cannot be translated, which is counted.
    [[nodiscard]] std::optional<TranslatedAddresses> addresses_of(const Packet& packet) noexcept;

    /// Translates the frame in place: it becomes 20 octets longer or shorter. `room`: all octets that may be written;
    /// `octets`: the frame's length. Returns its new length; 0 if it cannot be translated, which is counted.
    [[nodiscard]] std::size_t translate(std::span<std::byte> room, std::size_t octets) noexcept;

    [[nodiscard]] const TranslationCounters& counters() const noexcept { return counters_; }

   private:
    [[nodiscard]] std::optional<plan::IpAddress> to_ipv4(const plan::IpAddress& ipv6) const noexcept;
    [[nodiscard]] std::optional<plan::IpAddress> to_ipv6(const plan::IpAddress& ipv4) const noexcept;
    /// Whether the address is that of a host of the IPv6 side.
    [[nodiscard]] bool is_of_ipv6_side(const plan::IpAddress& address, const AddressMapping& mapping) const noexcept;
    void spoil(TranslatedAddresses& addresses, const Packet& packet) noexcept;
    [[nodiscard]] std::uint8_t class_change() noexcept;
    [[nodiscard]] bool has_checksum(IpVersion from) noexcept;

    TranslationOptions options_;
    TranslationCounters counters_;
    HeaderTranslation headers_;
};

}  // namespace evenhand::router
