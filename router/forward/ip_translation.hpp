// SPDX-License-Identifier: Apache-2.0
// Forward: how a UDP packet gets other addresses, in its own IP version or in the other one. Shared by both kinds of
// translation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "forward/packet.hpp"
#include "plan/address.hpp"

namespace evenhand::router {

/// The IPv6 address that has this IPv4 address behind a prefix of that length (RFC 6052, 2.2), and the inverse; nothing
/// if the address has another prefix.
[[nodiscard]] plan::IpAddress embed(const plan::IpAddress& prefix, unsigned length, const plan::IpAddress& ipv4);
[[nodiscard]] std::optional<plan::IpAddress> extract(const plan::IpAddress& prefix, unsigned length,
                                                     const plan::IpAddress& ipv6);

/// The UDP header and the rest of the packet.
struct UdpPart {
    std::byte* at = nullptr;  // null: the packet is not a whole UDP packet
    std::size_t octets = 0;
};
[[nodiscard]] UdpPart udp_of(const Packet& packet) noexcept;

/// Both addresses of a packet as they are on the other side.
struct TranslatedAddresses {
    plan::IpAddress source;
    plan::IpAddress destination;
};

/// A packet in the other IP version.
struct TranslatedHeader {
    TranslatedAddresses addresses;
    std::uint8_t class_change = 0;  // bits of the traffic class that are flipped
    bool has_checksum = true;       // of UDP; it is recomputed
};

/// From one IP version to the other (RFC 7915): the frame becomes 20 octets longer or shorter.
class HeaderTranslation {
   public:
    /// Octets of the frame afterwards. 0: it cannot be translated, because it is not a whole UDP packet, has IPv4
    /// options, or would have more than `room` octets.
    [[nodiscard]] static std::size_t octets_of(const Packet& packet, const UdpPart& udp, std::size_t room) noexcept;

    /// Overwrites a frame for which octets_of() is not 0.
    void write(std::byte* frame, const Packet& packet, const UdpPart& udp, const TranslatedHeader& header) noexcept;

   private:
    void write_ipv4(std::byte* ip, std::size_t udp_octets, std::uint8_t traffic_class, std::byte hops,
                    const TranslatedHeader& header) noexcept;
    static void write_ipv6(std::byte* ip, std::size_t udp_octets, std::uint8_t traffic_class, std::byte hops,
                           const TranslatedHeader& header) noexcept;

    std::uint16_t identification_ = 0;  // for IPv4 packets that may be fragmented
};

enum class Endpoint : std::uint8_t { source, destination };

/// Gives a whole UDP packet another source or destination of its own IP version. The checksums are adjusted (RFC 1624):
/// a wrong one stays wrong, and a missing one stays missing.
void rewrite(const Packet& packet, const UdpPart& udp, Endpoint endpoint, const plan::IpAddress& address,
             std::uint16_t port) noexcept;

/// Makes the UDP checksum wrong.
void spoil_checksum(std::byte* udp) noexcept;

}  // namespace evenhand::router
