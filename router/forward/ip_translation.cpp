// SPDX-License-Identifier: Apache-2.0
#include "forward/ip_translation.hpp"

#include <cstring>

#include "frame/checksum.hpp"
#include "frame/layout.hpp"
#include "tables/interface.hpp"

namespace evenhand::router {
namespace {

using frame::big;
using frame::load;
using frame::store;
using plan::IpAddress;

constexpr std::size_t ipv4_octets = 20;
constexpr std::size_t ipv6_octets = 40;
constexpr std::size_t udp_checksum_at = 6;
/// Bits 64 to 71 of an address with an IPv4 address in it are zero (RFC 6052, 2.2).
constexpr std::size_t zero_octet = 8;

std::byte* ip_header(const Packet& packet) noexcept {
    return packet.source - (packet.version == IpVersion::v6 ? 8 : 12);
}

std::size_t header_octets(const Packet& packet) noexcept {
    return packet.version == IpVersion::v6 ? ipv6_octets : std::size_t{4} * (detail::octet(ip_header(packet)) & 0xFU);
}

/// The sum whose complement is the UDP checksum, for a packet without one.
std::uint16_t udp_checksum_of(const std::byte* addresses, std::size_t address_octets, std::span<const std::byte> udp) {
    return frame::udp_checksum(frame::sum_octets(addresses, 2 * address_octets) +
                               frame::sum_octets(udp.data(), udp.size()) +
                               frame::pseudo_header_sum(frame::protocol_udp, udp.size()));
}

/// The sum whose complement is the new checksum, when words with the sum `from` have been replaced by words with the
/// sum `to` (RFC 1624, equation 3).
std::uint64_t changed_sum(std::uint16_t checksum, std::uint64_t from, std::uint64_t to) noexcept {
    const auto complement = [](std::uint16_t word) { return std::uint64_t{static_cast<std::uint16_t>(~word)}; };
    return complement(checksum) + complement(frame::fold(from)) + frame::fold(to);
}

}  // namespace

IpAddress embed(const IpAddress& prefix, unsigned length, const IpAddress& ipv4) {
    IpAddress address = prefix;
    std::size_t at = length / 8;
    for (std::size_t i = 0; i < 4; ++i, ++at) {
        if (at == zero_octet) address.octets[at++] = 0;
        address.octets[at] = ipv4.octets[i];
    }
    return address;
}

std::optional<IpAddress> extract(const IpAddress& prefix, unsigned length, const IpAddress& ipv6) {
    if (!is_in_prefix(ipv6, prefix, length)) return std::nullopt;
    IpAddress address{.version = plan::IpVersion::v4};
    std::size_t at = length / 8;
    for (std::size_t i = 0; i < 4; ++i, ++at) {
        if (at == zero_octet) ++at;
        address.octets[i] = ipv6.octets[at];
    }
    return address;
}

UdpPart udp_of(const Packet& packet) noexcept {
    if (packet.ports == nullptr) return {};
    const std::byte* const ip = ip_header(packet);
    const bool is_v6 = packet.version == IpVersion::v6;
    const std::size_t octets = is_v6 ? std::size_t{big(load<std::uint16_t>(ip + 4))}
                                     : std::size_t{big(load<std::uint16_t>(ip + 2))} - header_octets(packet);
    if (detail::octet(ip + (is_v6 ? 6 : 9)) != frame::protocol_udp || octets < frame::udp_octets) return {};
    return {.at = packet.ports, .octets = octets};
}

std::size_t HeaderTranslation::octets_of(const Packet& packet, const UdpPart& udp, std::size_t room) noexcept {
    const bool is_v6 = packet.version == IpVersion::v6;
    if (udp.at == nullptr || (!is_v6 && header_octets(packet) != ipv4_octets)) return 0;
    const std::size_t octets = frame::ethernet_octets + (is_v6 ? ipv4_octets : ipv6_octets) + udp.octets;
    return octets <= room ? octets : 0;
}

void HeaderTranslation::write(std::byte* frame, const Packet& packet, const UdpPart& udp,
                              const TranslatedHeader& header) noexcept {
    std::byte* const ip = frame + frame::ethernet_octets;
    const bool is_v6 = packet.version == IpVersion::v6;
    const std::uint8_t sent_class =
        is_v6 ? static_cast<std::uint8_t>(big(load<std::uint16_t>(ip)) >> 4U) : detail::octet(ip + 1);
    const auto traffic_class = static_cast<std::uint8_t>(sent_class ^ header.class_change);
    const std::byte hops = ip[is_v6 ? 7 : 8];
    const std::size_t new_octets = is_v6 ? ipv4_octets : ipv6_octets;
    std::byte* const new_udp = ip + new_octets;
    std::memmove(new_udp, udp.at, udp.octets);
    std::memset(ip, 0, new_octets);
    store(new_udp + udp_checksum_at, std::uint16_t{0});
    store(frame + 12, big(is_v6 ? frame::ethertype_ipv4 : frame::ethertype_ipv6));
    if (is_v6) {
        write_ipv4(ip, udp.octets, traffic_class, hops, header);
    } else {
        write_ipv6(ip, udp.octets, traffic_class, hops, header);
    }
    if (header.has_checksum) {
        const std::size_t address_octets = is_v6 ? 4 : 16;
        store(new_udp + udp_checksum_at,
              udp_checksum_of(new_udp - 2 * address_octets, address_octets, {new_udp, udp.octets}));
    }
}

void HeaderTranslation::write_ipv4(std::byte* ip, std::size_t udp_octets, std::uint8_t traffic_class, std::byte hops,
                                   const TranslatedHeader& header) noexcept {
    constexpr std::size_t longest_fragmentable = 1260;  // RFC 7915, 5.1
    const std::size_t total = ipv4_octets + udp_octets;
    ip[0] = std::byte{0x45};
    ip[1] = static_cast<std::byte>(traffic_class);
    store(ip + 2, big(static_cast<std::uint16_t>(total)));
    if (total > longest_fragmentable) {
        store(ip + 6, big(frame::dont_fragment));
    } else {
        store(ip + 4, big(++identification_));
    }
    ip[8] = hops;
    ip[9] = std::byte{frame::protocol_udp};
    std::memcpy(ip + 12, header.addresses.source.octets.data(), 4);
    std::memcpy(ip + 16, header.addresses.destination.octets.data(), 4);
    store(ip + 10, frame::ip_checksum(frame::sum_octets(ip, ipv4_octets)));
}

void HeaderTranslation::write_ipv6(std::byte* ip, std::size_t udp_octets, std::uint8_t traffic_class, std::byte hops,
                                   const TranslatedHeader& header) noexcept {
    store(ip, big(static_cast<std::uint16_t>(0x6000U | static_cast<unsigned>(traffic_class) << 4U)));
    store(ip + 4, big(static_cast<std::uint16_t>(udp_octets)));
    ip[6] = std::byte{frame::protocol_udp};
    ip[7] = hops;
    std::memcpy(ip + 8, header.addresses.source.octets.data(), 16);
    std::memcpy(ip + 24, header.addresses.destination.octets.data(), 16);
}

void rewrite(const Packet& packet, const UdpPart& udp, Endpoint endpoint, const IpAddress& address,
             std::uint16_t port) noexcept {
    const std::size_t octets = plan::address_octets(packet.version);
    const bool is_source = endpoint == Endpoint::source;
    std::byte* const address_at = is_source ? packet.source : packet.destination;
    std::byte* const port_at = udp.at + (is_source ? 0 : 2);
    const std::uint64_t old_address = frame::sum_short(address_at, octets);
    const std::uint64_t old_port = load<std::uint16_t>(port_at);
    std::memcpy(address_at, address.octets.data(), octets);
    store(port_at, big(port));
    const std::uint64_t new_address = frame::sum_short(address_at, octets);
    const std::uint64_t new_port = load<std::uint16_t>(port_at);
    if (packet.version == IpVersion::v4) {
        std::byte* const at = ip_header(packet) + 10;
        store(at, frame::ip_checksum(changed_sum(load<std::uint16_t>(at), old_address, new_address)));
    }
    std::byte* const at = udp.at + udp_checksum_at;
    const auto checksum = load<std::uint16_t>(at);
    if (checksum != 0)
        store(at, frame::udp_checksum(changed_sum(checksum, old_address + old_port, new_address + new_port)));
}

void spoil_checksum(std::byte* udp) noexcept {
    constexpr std::uint16_t change = 0x5555;
    const auto checksum = load<std::uint16_t>(udp + udp_checksum_at);
    // The result must not be 0, which means that there is no checksum.
    store(udp + udp_checksum_at, static_cast<std::uint16_t>(checksum == change ? checksum << 1U : checksum ^ change));
}

}  // namespace evenhand::router
