// SPDX-License-Identifier: Apache-2.0
// Forward: determines what a received frame is, without reading beyond its end, and changes what a router changes in
// it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "frame/checksum.hpp"
#include "frame/layout.hpp"
#include "plan/address.hpp"

namespace evenhand::router {

using frame::IpVersion;

enum class PacketKind : std::uint8_t {
    unicast,    // IPv4 or IPv6, well formed, to a unicast address: to be forwarded, or for the router
    control,    // ARP, or IPv6 multicast: for the local answerer
    ignored,    // another ethertype, or an IPv4 multicast or broadcast: a router does not forward them
    malformed,  // truncated, bad version, length or checksum (RFC 1812, 5.2.2)
    martian     // source or destination that must not be forwarded (RFC 1812, 5.3.7; RFC 4291, 2.5.3 and 2.5.6)
};

struct Packet {
    PacketKind kind = PacketKind::ignored;
    IpVersion version = IpVersion::v4;
    std::byte* source = nullptr;  // of the two addresses; the destination follows the source
    std::byte* destination = nullptr;
    std::byte* ports = nullptr;  // UDP or TCP ports of an unfragmented packet
};

namespace detail {

constexpr std::uint8_t protocol_tcp = 6;
constexpr std::size_t least_ipv4_octets = 20;
constexpr std::size_t ipv6_octets = 40;

[[nodiscard]] inline std::uint8_t octet(const std::byte* at) noexcept { return static_cast<std::uint8_t>(*at); }

[[nodiscard]] inline Packet read_ipv4(std::byte* frame, std::size_t octets) noexcept {
    Packet packet{.kind = PacketKind::malformed, .version = IpVersion::v4};
    std::byte* const ip = frame + frame::ethernet_octets;
    const std::size_t room = octets - frame::ethernet_octets;
    if (room < least_ipv4_octets) return packet;
    const std::size_t header = std::size_t{4} * (octet(ip) & 0xFU);
    const std::size_t total = frame::big(frame::load<std::uint16_t>(ip + 2));
    if (octet(ip) >> 4U != 4 || header < least_ipv4_octets || header > room || total < header || total > room)
        return packet;
    if (frame::fold(frame::sum_octets(ip, header)) != 0xFFFF) return packet;
    packet.source = ip + 12;
    packet.destination = ip + 16;
    const std::uint8_t to = octet(packet.destination);
    const std::uint8_t from = octet(packet.source);
    constexpr std::uint8_t first_multicast = 224;
    if (to >= first_multicast) {
        packet.kind = PacketKind::ignored;
        return packet;
    }
    if (to == 0 || to == 127 || from == 127 || from >= first_multicast ||
        frame::load<std::uint32_t>(packet.source) == 0) {
        packet.kind = PacketKind::martian;
        return packet;
    }
    packet.kind = PacketKind::unicast;
    constexpr std::uint16_t fragment_bits = 0x3FFF;  // more fragments, and the offset
    const bool is_fragment = (frame::big(frame::load<std::uint16_t>(ip + 6)) & fragment_bits) != 0;
    const std::uint8_t protocol = octet(ip + 9);
    if (!is_fragment && (protocol == frame::protocol_udp || protocol == protocol_tcp) && total >= header + 4)
        packet.ports = ip + header;
    return packet;
}

[[nodiscard]] inline Packet read_ipv6(std::byte* frame, std::size_t octets) noexcept {
    Packet packet{.kind = PacketKind::malformed, .version = IpVersion::v6};
    std::byte* const ip = frame + frame::ethernet_octets;
    const std::size_t room = octets - frame::ethernet_octets;
    if (room < ipv6_octets || octet(ip) >> 4U != 6) return packet;
    const std::size_t payload = frame::big(frame::load<std::uint16_t>(ip + 4));
    if (payload > room - ipv6_octets) return packet;
    packet.source = ip + 8;
    packet.destination = ip + 24;
    constexpr std::uint8_t multicast = 0xFF;
    if (octet(packet.source) == multicast) {
        packet.kind = PacketKind::martian;
        return packet;
    }
    if (octet(packet.destination) == multicast) {
        packet.kind = PacketKind::control;
        return packet;
    }
    const auto is_below_two = [](const std::byte* address) {  // ::, and ::1
        return (frame::load<std::uint64_t>(address) |
                (frame::load<std::uint64_t>(address + 8) & ~(std::uint64_t{1} << 56U))) == 0;
    };
    if (is_below_two(packet.destination) || is_below_two(packet.source)) {
        // A duplicate address detection is sent from ::, but to a multicast group.
        packet.kind = PacketKind::martian;
        return packet;
    }
    packet.kind = PacketKind::unicast;
    const std::uint8_t next_header = octet(ip + 6);
    if ((next_header == frame::protocol_udp || next_header == protocol_tcp) && payload >= 4)
        packet.ports = ip + ipv6_octets;
    return packet;
}

}  // namespace detail

/// Accepts any octets of any length, without FCS.
[[nodiscard]] inline Packet read_packet(std::byte* frame, std::size_t octets) noexcept {
    Packet packet;
    if (octets < frame::ethernet_octets) {
        packet.kind = PacketKind::malformed;
        return packet;
    }
    switch (frame::big(frame::load<std::uint16_t>(frame + 12))) {
        case frame::ethertype_ipv4: return detail::read_ipv4(frame, octets);
        case frame::ethertype_ipv6: return detail::read_ipv6(frame, octets);
        case frame::ethertype_arp: packet.kind = PacketKind::control; return packet;
        default: return packet;
    }
}

/// Whether the packet is never forwarded, because one of its addresses is link-local (RFC 4291, 2.5.6).
[[nodiscard]] inline bool stays_on_link(const Packet& packet) noexcept {
    const auto is_local = [](const std::byte* address) {
        return plan::is_link_local(detail::octet(address), detail::octet(address + 1));
    };
    return packet.version == IpVersion::v6 && (is_local(packet.destination) || is_local(packet.source));
}

[[nodiscard]] inline plan::IpAddress read_address(const std::byte* at, IpVersion version) noexcept {
    plan::IpAddress address{.version = version};
    std::memcpy(address.octets.data(), at, plan::address_octets(version));
    return address;
}

/// Reduces the hop limit by one. False if the packet may not be forwarded (RFC 1812, 5.3.1; RFC 8200, 3); then it is
/// unchanged. The packet is unicast.
[[nodiscard]] inline bool take_hop(std::byte* frame, IpVersion version) noexcept {
    std::byte* const ip = frame + frame::ethernet_octets;
    std::byte* const hops = ip + (version == IpVersion::v4 ? 8 : 7);
    const std::uint8_t left = detail::octet(hops);
    if (left <= 1) return false;
    *hops = static_cast<std::byte>(left - 1);
    if (version == IpVersion::v4) {
        // RFC 1624: the word with the TTL is smaller by 0x0100, so the complement of the sum is larger by that.
        const std::uint32_t sum = frame::big(frame::load<std::uint16_t>(ip + 10)) + 0x0100U;
        frame::store(ip + 10, frame::big(static_cast<std::uint16_t>(sum + static_cast<std::uint32_t>(sum >= 0xFFFFU))));
    }
    return true;
}

inline void write_macs(std::byte* frame, const plan::MacAddress& destination, const plan::MacAddress& source) noexcept {
    std::memcpy(frame, destination.data(), destination.size());
    std::memcpy(frame + destination.size(), source.data(), source.size());
}

}  // namespace evenhand::router
