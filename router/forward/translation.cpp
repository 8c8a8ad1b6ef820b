// SPDX-License-Identifier: Apache-2.0
#include "forward/translation.hpp"

#include <algorithm>

#include "tables/interface.hpp"

namespace evenhand::router {
namespace {

using plan::IpAddress;

/// The network, followed by the bits behind the prefix of `from`, of which there are as many.
IpAddress with_suffix(IpAddress network, unsigned length, const IpAddress& from, unsigned from_length) noexcept {
    const std::size_t end = plan::address_octets(network.version);
    const std::size_t from_end = plan::address_octets(from.version);
    const std::size_t whole = length / 8;
    const std::size_t from_whole = from_length / 8;
    for (std::size_t back = 1; back <= std::min(end - whole, from_end - from_whole); ++back) {
        // Only the octet in which the prefix ends has bits of both addresses.
        const bool is_mixed = end - back == whole && length % 8 != 0;
        const auto mask = static_cast<std::uint8_t>(is_mixed ? 0xFFU >> length % 8 : 0xFFU);
        auto& octet = network.octets[end - back];
        octet = static_cast<std::uint8_t>((octet & ~mask) | (from.octets[from_end - back] & mask));
    }
    return network;
}

}  // namespace

std::optional<IpAddress> Translator::to_ipv4(const IpAddress& ipv6) const noexcept {
    for (const auto& mapping : options_.mappings) {
        if (!mapping.is_behind_prefix && is_in_prefix(ipv6, mapping.ipv6, mapping.ipv6_length))
            return with_suffix(mapping.ipv4, mapping.ipv4_length, ipv6, mapping.ipv6_length);
    }
    return extract(options_.prefix, options_.prefix_length, ipv6);
}

std::optional<IpAddress> Translator::to_ipv6(const IpAddress& ipv4) const noexcept {
    for (const auto& mapping : options_.mappings) {
        if (!mapping.is_behind_prefix && is_in_prefix(ipv4, mapping.ipv4, mapping.ipv4_length))
            return with_suffix(mapping.ipv6, mapping.ipv6_length, ipv4, mapping.ipv4_length);
    }
    return embed(options_.prefix, options_.prefix_length, ipv4);
}

bool Translator::is_of_ipv6_side(const IpAddress& address, const AddressMapping& mapping) const noexcept {
    if (address.version == IpVersion::v4) return is_in_prefix(address, mapping.ipv4, mapping.ipv4_length);
    if (!mapping.is_behind_prefix) return is_in_prefix(address, mapping.ipv6, mapping.ipv6_length);
    const auto ipv4 = extract(options_.prefix, options_.prefix_length, address);
    return ipv4 && is_in_prefix(*ipv4, mapping.ipv4, mapping.ipv4_length);
}

bool Translator::is_for(const Packet& packet) const noexcept {
    const IpAddress destination = read_address(packet.destination, packet.version);
    const bool is_v6 = packet.version == IpVersion::v6;
    // The hosts of the mappings are those of the IPv6 side: IPv4 packets to them are translated, IPv6 packets are not.
    const bool is_mapped = std::ranges::any_of(
        options_.mappings, [&](const AddressMapping& mapping) { return is_of_ipv6_side(destination, mapping); });
    return is_v6 ? !is_mapped && is_in_prefix(destination, options_.prefix, options_.prefix_length) : is_mapped;
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

/// Another host's source address, so that the frame still comes back to the tester, who must notice it. The IPv4
/// address becomes the next or the previous one, wherever it is in the IPv6 address.
void Translator::spoil(TranslatedAddresses& addresses, const Packet& packet) noexcept {
    if (options_.wrong_address_every == 0 || counters_.translated_frames % options_.wrong_address_every != 0) return;
    if (packet.version == IpVersion::v6) {
        addresses.source.octets[3] ^= 1U;
    } else {
        IpAddress other = read_address(packet.source, packet.version);
        other.octets[3] ^= 1U;
        addresses.source = to_ipv6(other).value_or(addresses.source);
    }
    ++counters_.wrong_address_frames;
}

std::uint8_t Translator::class_change() noexcept {
    if (options_.traffic_class_every == 0 || counters_.translated_frames % options_.traffic_class_every != 0) return 0;
    ++counters_.traffic_class_frames;
    return 0x20U;
}

bool Translator::has_checksum(IpVersion from) noexcept {
    if (from == IpVersion::v6 || options_.no_checksum_every == 0 ||
        counters_.translated_frames % options_.no_checksum_every != 0)
        return true;
    ++counters_.no_checksum_frames;
    return false;
}

std::size_t Translator::translate(std::span<std::byte> room, std::size_t octets) noexcept {
    const Packet packet = read_packet(room.data(), octets);
    const UdpPart udp = udp_of(packet);
    const std::size_t new_octets = HeaderTranslation::octets_of(packet, udp, room.size());
    if (new_octets == 0) {
        ++counters_.refused_frames;
        return 0;
    }
    auto addresses = addresses_of(packet);
    if (!addresses) return 0;
    ++counters_.translated_frames;
    spoil(*addresses, packet);
    const std::uint8_t change = class_change();
    headers_.write(room.data(), packet, udp,
                   {.addresses = *addresses, .class_change = change, .has_checksum = has_checksum(packet.version)});
    return new_octets;
}

}  // namespace evenhand::router
