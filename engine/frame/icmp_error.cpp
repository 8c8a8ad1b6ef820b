// SPDX-License-Identifier: Apache-2.0
#include "frame/icmp_error.hpp"

#include <algorithm>
#include <array>

namespace evenhand::frame {
namespace {

constexpr std::uint8_t protocol_icmp = 1;
constexpr std::size_t icmp_octets = 8;  // before the quoted packet, in both versions

std::uint8_t octet(const std::byte* at) noexcept { return static_cast<std::uint8_t>(*at); }

/// Where in the frame the quoted packet begins.
struct Quote {
    const std::byte* begin = nullptr;
    std::size_t octets = 0;
};

std::optional<Quote> read_ipv4(const std::byte* packet, std::size_t octets, IcmpError& error) noexcept {
    constexpr std::size_t least = 20;
    constexpr std::array<std::uint8_t, 5> errors{3, 4, 5, 11, 12};
    constexpr std::uint8_t unreachable = 3;
    constexpr std::uint8_t fragmentation_needed = 4;
    if (octets < least || octet(packet) >> 4U != 4 || octet(packet + 9) != protocol_icmp) return std::nullopt;
    const std::size_t head = std::size_t{4} * (octet(packet) & 15U);
    if (head < least || octets < head + icmp_octets) return std::nullopt;
    const std::byte* const icmp = packet + head;
    error.type = octet(icmp), error.code = octet(icmp + 1);
    if (std::ranges::find(errors, error.type) == errors.end()) return std::nullopt;
    if (error.type == unreachable && error.code == fragmentation_needed) error.mtu = big(load<std::uint16_t>(icmp + 6));
    return Quote{.begin = icmp + icmp_octets, .octets = octets - head - icmp_octets};
}

std::optional<Quote> read_ipv6(const std::byte* packet, std::size_t octets, IcmpError& error) noexcept {
    constexpr std::size_t head = 40;
    constexpr std::uint8_t too_big = 2;
    constexpr std::uint8_t last_error = 4;
    if (octets < head + icmp_octets || octet(packet) >> 4U != 6 || octet(packet + 6) != protocol_icmpv6)
        return std::nullopt;
    const std::byte* const icmp = packet + head;
    error.type = octet(icmp), error.code = octet(icmp + 1);
    if (error.type == 0 || error.type > last_error) return std::nullopt;
    if (error.type == too_big) error.mtu = big(load<std::uint32_t>(icmp + 4));
    return Quote{.begin = icmp + icmp_octets, .octets = octets - head - icmp_octets};
}

/// Reads addresses and tag of the quoted packet, which a translator may have changed to the other IP version. False if
/// the packet is not UDP.
bool read_quote(const Quote& quote, IcmpError& error) noexcept {
    if (quote.octets == 0) return false;
    error.quoted_version = octet(quote.begin) >> 4U == 4 ? IpVersion::v4 : IpVersion::v6;
    const bool is_v4 = error.quoted_version == IpVersion::v4;
    const std::size_t head = is_v4 ? 20 : 40;  // a test frame has neither options nor extension headers
    if (quote.octets < head + udp_octets || octet(quote.begin + (is_v4 ? 9 : 6)) != protocol_udp) return false;
    error.source = quote.begin + (is_v4 ? 12 : 8);
    error.destination = error.source + plan::address_octets(error.quoted_version);
    const std::byte* const tag = quote.begin + head + udp_octets;
    if (quote.octets < head + udp_octets + tag_octets || big(load<std::uint32_t>(tag)) >> 8U != tag_magic) return true;
    const TagNumbers numbers = numbers_at(tag);
    error.tag = Tag{.trial = big(load<std::uint16_t>(tag + tag_trial)),
                    .direction = (octet(tag + tag_stream) & direction_bit) != 0 ? plan::Direction::reverse
                                                                                : plan::Direction::forward,
                    .stream = numbers.stream,
                    .sequence = numbers.sequence,
                    .time_ticks = numbers.time_ticks};
    return true;
}

}  // namespace

std::optional<IcmpError> read_icmp_error(const std::byte* frame, std::size_t octets) noexcept {
    if (octets < ethernet_octets) return std::nullopt;
    const auto type = big(load<std::uint16_t>(frame + 12));
    if (type != ethertype_ipv4 && type != ethertype_ipv6) return std::nullopt;
    IcmpError error;
    error.version = type == ethertype_ipv4 ? IpVersion::v4 : IpVersion::v6;
    const std::byte* const packet = frame + ethernet_octets;
    const auto quote = error.version == IpVersion::v4 ? read_ipv4(packet, octets - ethernet_octets, error)
                                                      : read_ipv6(packet, octets - ethernet_octets, error);
    return quote && read_quote(*quote, error) ? std::optional{error} : std::nullopt;
}

}  // namespace evenhand::frame
