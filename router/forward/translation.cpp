// SPDX-License-Identifier: Apache-2.0
#include "forward/translation.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "frame/checksum.hpp"
#include "frame/layout.hpp"

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

/// Whether the first `length` bits are those of the network.
bool is_in(const IpAddress& address, const IpAddress& network, unsigned length) noexcept {
    const std::size_t whole = length / 8;
    if (std::memcmp(address.octets.data(), network.octets.data(), whole) != 0) return false;
    const unsigned bits = length % 8;
    if (bits == 0) return true;
    return (address.octets[whole] ^ network.octets[whole]) >> (8 - bits) == 0;
}

/// The network with the bits behind the prefix of `from`, which has as many.
IpAddress with_suffix(IpAddress network, unsigned length, const IpAddress& from, unsigned from_length) noexcept {
    const std::size_t end = plan::address_octets(network.version);
    const std::size_t from_end = plan::address_octets(from.version);
    const std::size_t whole = length / 8;
    const std::size_t from_whole = from_length / 8;
    for (std::size_t back = 1; back <= std::min(end - whole, from_end - from_whole); ++back) {
        // Only the octet in which the prefix ends has bits of both.
        const bool is_mixed = end - back == whole && length % 8 != 0;
        const auto mask = static_cast<std::uint8_t>(is_mixed ? 0xFFU >> length % 8 : 0xFFU);
        auto& octet = network.octets[end - back];
        octet = static_cast<std::uint8_t>((octet & ~mask) | (from.octets[from_end - back] & mask));
    }
    return network;
}

/// The sum that the UDP checksum of a packet without one complements.
std::uint16_t udp_checksum_of(const std::byte* addresses, std::size_t address_octets, std::span<const std::byte> udp) {
    return frame::udp_checksum(frame::sum_octets(addresses, 2 * address_octets) +
                               frame::sum_octets(udp.data(), udp.size()) +
                               frame::pseudo_header_sum(frame::protocol_udp, udp.size()));
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
    if (!is_in(ipv6, prefix, length)) return std::nullopt;
    IpAddress address{.version = plan::IpVersion::v4};
    std::size_t at = length / 8;
    for (std::size_t i = 0; i < 4; ++i, ++at) {
        if (at == zero_octet) ++at;
        address.octets[i] = ipv6.octets[at];
    }
    return address;
}

std::optional<IpAddress> Translator::to_ipv4(const IpAddress& ipv6) const noexcept {
    for (const auto& mapping : options_.mappings) {
        if (is_in(ipv6, mapping.ipv6, mapping.ipv6_length))
            return with_suffix(mapping.ipv4, mapping.ipv4_length, ipv6, mapping.ipv6_length);
    }
    return extract(options_.prefix, options_.prefix_length, ipv6);
}

std::optional<IpAddress> Translator::to_ipv6(const IpAddress& ipv4) const noexcept {
    for (const auto& mapping : options_.mappings) {
        if (is_in(ipv4, mapping.ipv4, mapping.ipv4_length))
            return with_suffix(mapping.ipv6, mapping.ipv6_length, ipv4, mapping.ipv4_length);
    }
    return embed(options_.prefix, options_.prefix_length, ipv4);
}

bool Translator::is_for(const Packet& packet) const noexcept {
    const IpAddress destination = read_address(packet.destination, packet.version);
    const bool is_v6 = packet.version == IpVersion::v6;
    // The hosts of the mappings are those of the IPv6 side: IPv4 packets to them are translated, IPv6 packets are not.
    const bool is_mapped = std::ranges::any_of(options_.mappings, [&](const AddressMapping& mapping) {
        return is_v6 ? is_in(destination, mapping.ipv6, mapping.ipv6_length)
                     : is_in(destination, mapping.ipv4, mapping.ipv4_length);
    });
    return is_v6 ? !is_mapped && is_in(destination, options_.prefix, options_.prefix_length) : is_mapped;
}

std::optional<TranslatedAddresses> Translator::addresses_of(const Packet& packet) noexcept {
    const IpAddress source = read_address(packet.source, packet.version);
    const IpAddress destination = read_address(packet.destination, packet.version);
    const bool is_v6 = packet.version == IpVersion::v6;
    const auto from = is_v6 ? to_ipv4(source) : to_ipv6(source);
    const auto to = is_v6 ? to_ipv4(destination) : to_ipv6(destination);
    if (!from || !to) {
        ++counters_.refused_frames;
        return std::nullopt;
    }
    return TranslatedAddresses{.source = *from, .destination = *to};
}

/// The source of another host: the frame still comes back to the tester, who must see it.
void Translator::spoil(TranslatedAddresses& addresses) noexcept {
    if (options_.wrong_address_every == 0 || counters_.translated_frames % options_.wrong_address_every != 0) return;
    auto& last = addresses.source.octets[plan::address_octets(addresses.source.version) - 1];
    last ^= 1U;
    ++counters_.wrong_address_frames;
}

std::uint8_t Translator::traffic_class(std::uint8_t sent) noexcept {
    if (options_.traffic_class_every == 0 || counters_.translated_frames % options_.traffic_class_every != 0)
        return sent;
    ++counters_.traffic_class_frames;
    return sent ^ 0x20U;
}

std::size_t Translator::translate(std::span<std::byte> room, std::size_t octets) noexcept {
    std::byte* const frame = room.data();
    const Packet packet = read_packet(frame, octets);
    std::byte* const ip = frame + frame::ethernet_octets;
    const bool is_v6 = packet.version == IpVersion::v6;
    const std::size_t header = is_v6 ? ipv6_octets : std::size_t{4} * (detail::octet(ip) & 0xFU);
    const std::uint8_t protocol = detail::octet(ip + (is_v6 ? 6 : 9));
    const std::size_t udp_octets =
        is_v6 ? std::size_t{big(load<std::uint16_t>(ip + 4))} : std::size_t{big(load<std::uint16_t>(ip + 2))} - header;
    const std::size_t new_header = is_v6 ? ipv4_octets : ipv6_octets;
    const std::size_t new_octets = frame::ethernet_octets + new_header + udp_octets;
    const bool is_udp = packet.ports != nullptr && protocol == frame::protocol_udp && udp_octets >= frame::udp_octets;
    if (!is_udp || (!is_v6 && header != ipv4_octets) || new_octets > room.size()) {
        ++counters_.refused_frames;
        return 0;
    }
    auto addresses = addresses_of(packet);
    if (!addresses) return 0;
    ++counters_.translated_frames;
    spoil(*addresses);

    const std::uint8_t sent_class =
        is_v6 ? static_cast<std::uint8_t>(big(load<std::uint16_t>(ip)) >> 4U) : detail::octet(ip + 1);
    const std::uint8_t its_class = traffic_class(sent_class);
    const std::byte hops = ip[is_v6 ? 7 : 8];
    std::byte* const udp = ip + new_header;
    std::memmove(udp, ip + header, udp_octets);
    std::memset(ip, 0, new_header);
    store(udp + udp_checksum_at, std::uint16_t{0});
    if (is_v6) {
        constexpr std::size_t longest_fragmentable = 1260;  // RFC 7915, 5.1
        const std::size_t total = new_header + udp_octets;
        store(frame + 12, big(frame::ethertype_ipv4));
        ip[0] = std::byte{0x45};
        ip[1] = static_cast<std::byte>(its_class);
        store(ip + 2, big(static_cast<std::uint16_t>(total)));
        if (total > longest_fragmentable) {
            store(ip + 6, big(frame::dont_fragment));
        } else {
            store(ip + 4, big(++identification_));
        }
        ip[8] = hops;
        ip[9] = std::byte{frame::protocol_udp};
        std::memcpy(ip + 12, addresses->source.octets.data(), 4);
        std::memcpy(ip + 16, addresses->destination.octets.data(), 4);
        store(ip + 10, frame::ip_checksum(frame::sum_octets(ip, ipv4_octets)));
        store(udp + udp_checksum_at, udp_checksum_of(ip + 12, 4, {udp, udp_octets}));
    } else {
        store(frame + 12, big(frame::ethertype_ipv6));
        store(ip, big(static_cast<std::uint16_t>(0x6000U | static_cast<unsigned>(its_class) << 4U)));
        store(ip + 4, big(static_cast<std::uint16_t>(udp_octets)));
        ip[6] = std::byte{frame::protocol_udp};
        ip[7] = hops;
        std::memcpy(ip + 8, addresses->source.octets.data(), 16);
        std::memcpy(ip + 24, addresses->destination.octets.data(), 16);
        if (options_.no_checksum_every != 0 && counters_.translated_frames % options_.no_checksum_every == 0) {
            ++counters_.no_checksum_frames;
        } else {
            store(udp + udp_checksum_at, udp_checksum_of(ip + 8, 16, {udp, udp_octets}));
        }
    }
    return new_octets;
}

}  // namespace evenhand::router
