// SPDX-License-Identifier: Apache-2.0
#include "neighbor/messages.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "frame/checksum.hpp"
#include "frame/layout.hpp"
#include "neighbor/layout.hpp"

namespace evenhand::neighbor {
namespace {

using frame::big;
using frame::load;
using frame::store;
using plan::IpAddress;
using plan::IpVersion;
using plan::MacAddress;

constexpr std::size_t eth = frame::ethernet_octets;
using V6 = frame::Layout<IpVersion::v6>;
constexpr std::size_t ip6_source = V6::source;
constexpr std::size_t ip6_destination = V6::destination;

void put(std::byte* at, std::span<const std::uint8_t> octets) { std::memcpy(at, octets.data(), octets.size()); }

MacAddress get_mac(const std::byte* at) {
    MacAddress mac;
    std::memcpy(mac.data(), at, mac.size());
    return mac;
}

IpAddress get_ip(const std::byte* at, IpVersion version) {
    IpAddress ip{.version = version};
    std::memcpy(ip.octets.data(), at, plan::address_octets(version));
    return ip;
}

void write_ethernet(std::byte* f, const MacAddress& to, const MacAddress& from, std::uint16_t type) {
    put(f, to);
    put(f + 6, from);
    store(f + 12, big(type));
}

void write_icmpv6_checksum(std::byte* f, std::size_t icmp_octets) {
    store(f + icmp6 + 2, std::uint16_t{0});
    const std::uint64_t sum = frame::sum_octets(f + ip6_source, 32 + icmp_octets) +
                              frame::pseudo_header_sum(frame::protocol_icmpv6, icmp_octets);
    store(f + icmp6 + 2, frame::udp_checksum(sum));
}

bool is_ethertype(std::span<const std::byte> f, std::uint16_t type) {
    return f.size() >= eth && load<std::uint16_t>(f.data() + 12) == big(type);
}

bool is_arp(std::span<const std::byte> f) {
    return is_ethertype(f, frame::ethertype_arp) && f.size() >= arp_end &&
           (big(load<std::uint64_t>(f.data() + eth)) & ~std::uint64_t{0xFFFF}) == arp_head;
}

/// Options of length 0 or beyond the packet's end make the whole packet invalid (RFC 4861, 4.6).
bool are_options_whole(std::span<const std::byte> options) {
    while (!options.empty()) {
        const std::size_t octets = options.size() < 2 ? 0 : 8 * static_cast<std::size_t>(options[1]);
        if (octets == 0 || octets > options.size()) return false;
        options = options.subspan(octets);
    }
    return true;
}

/// Whether this is a neighbour message of this type that is valid by RFC 4861, 7.1.
bool is_nd(std::span<const std::byte> f, std::uint8_t type) {
    if (!is_ethertype(f, frame::ethertype_ipv6) || f.size() < nd_options) return false;
    const std::size_t icmp_octets = big(load<std::uint16_t>(f.data() + eth + 4));
    if (f[eth + 6] != std::byte{frame::protocol_icmpv6} || f[eth + 7] != std::byte{nd_hop_limit} ||
        f[icmp6] != std::byte{type} || f[icmp6 + 1] != std::byte{0})
        return false;
    if (icmp_octets < nd_options - icmp6 || icmp6 + icmp_octets > f.size()) return false;
    const std::uint64_t sum = frame::sum_octets(f.data() + ip6_source, 32 + icmp_octets) +
                              frame::pseudo_header_sum(frame::protocol_icmpv6, icmp_octets);
    return frame::fold(sum) == 0xFFFF && are_options_whole(f.subspan(nd_options, icmp6 + icmp_octets - nd_options));
}

/// The link-layer address option of this type in a valid message.
std::optional<MacAddress> find_option(std::span<const std::byte> f, std::uint8_t type) {
    const std::size_t end = icmp6 + big(load<std::uint16_t>(f.data() + eth + 4));
    for (std::size_t at = nd_options; at < end; at += 8 * static_cast<std::size_t>(f[at + 1])) {
        if (f[at] == std::byte{type}) return get_mac(f.data() + at + 2);
    }
    return std::nullopt;
}

bool is_zero(const IpAddress& ip) {
    return std::ranges::all_of(ip.octets, [](auto octet) { return octet == 0; });
}

}  // namespace

std::size_t write_arp_request(std::span<std::byte> f, const Party& sender, const IpAddress& target) {
    constexpr MacAddress everyone{0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    std::ranges::fill(f.first(arp_octets), std::byte{0});
    write_ethernet(f.data(), everyone, sender.mac, frame::ethertype_arp);
    store(f.data() + eth, big(arp_head | arp_request));
    put(f.data() + arp_sender_mac, sender.mac);
    put(f.data() + arp_sender_ip, sender.ip.bytes());
    put(f.data() + arp_target_mac, everyone);
    put(f.data() + arp_target_ip, target.bytes());
    return arp_octets;
}

std::size_t write_neighbor_solicitation(std::span<std::byte> f, const Party& sender, const IpAddress& target) {
    std::ranges::fill(f.first(solicitation_octets), std::byte{0});
    const auto& t = target.octets;
    const std::array<std::uint8_t, 16> group{0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, t[13], t[14], t[15]};
    write_ethernet(f.data(), {0x33, 0x33, 0xff, t[13], t[14], t[15]}, sender.mac, frame::ethertype_ipv6);
    f[eth] = std::byte{0x60};
    store(f.data() + eth + 4, big(static_cast<std::uint16_t>(solicitation_octets - icmp6)));
    f[eth + 6] = std::byte{frame::protocol_icmpv6};
    f[eth + 7] = std::byte{nd_hop_limit};
    put(f.data() + ip6_source, sender.ip.bytes());
    put(f.data() + ip6_destination, group);
    f[icmp6] = std::byte{nd_solicitation};
    put(f.data() + nd_target, target.bytes());
    f[nd_options] = std::byte{option_source_link};
    f[nd_options + 1] = std::byte{1};
    put(f.data() + nd_options + 2, sender.mac);
    write_icmpv6_checksum(f.data(), solicitation_octets - icmp6);
    return solicitation_octets;
}

std::size_t write_announcement(std::span<std::byte> f, const Party& owner) {
    if (owner.ip.version == IpVersion::v4) return write_arp_request(f, owner, owner.ip);
    // An unsolicited advertisement is the same as the answer to a duplicate address detection.
    const Question detection{.asker = {.ip = {.version = IpVersion::v6}}, .target = owner.ip};
    return write_answer(f, 0, detection, owner.mac, false);
}

std::optional<Question> read_question(std::span<const std::byte> f) noexcept {
    if (is_arp(f)) {
        if (load<std::uint16_t>(f.data() + arp_operation) != big(arp_request)) return std::nullopt;
        return Question{
            .asker = {.mac = get_mac(f.data() + arp_sender_mac), .ip = get_ip(f.data() + arp_sender_ip, IpVersion::v4)},
            .target = get_ip(f.data() + arp_target_ip, IpVersion::v4)};
    }
    if (!is_nd(f, nd_solicitation)) return std::nullopt;
    // Without the option, which a unicast probe may leave out, the asker is the frame's sender.
    return Question{.asker = {.mac = find_option(f, option_source_link).value_or(get_mac(f.data() + 6)),
                              .ip = get_ip(f.data() + ip6_source, IpVersion::v6)},
                    .target = get_ip(f.data() + nd_target, IpVersion::v6)};
}

std::size_t write_answer(std::span<std::byte> room, std::size_t octets, const Question& question,
                         const MacAddress& owner, bool is_router) noexcept {
    std::byte* const f = room.data();
    if (question.target.version == IpVersion::v4) {
        write_ethernet(f, question.asker.mac, owner, frame::ethertype_arp);
        store(f + arp_operation, big(arp_reply));
        put(f + arp_sender_mac, owner);
        put(f + arp_sender_ip, question.target.bytes());
        put(f + arp_target_mac, question.asker.mac);
        put(f + arp_target_ip, question.asker.ip.bytes());
        return std::min(octets, arp_octets);  // padding behind the question does not belong to the answer
    }
    constexpr std::size_t answer_octets = solicitation_octets;
    if (room.size() < answer_octets) return 0;
    // The answer to a duplicate address detection goes to all nodes, unsolicited (RFC 4861, 7.2.4).
    const bool detection = is_zero(question.asker.ip);
    constexpr std::array<std::uint8_t, 16> all_nodes{0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
    write_ethernet(f, detection ? MacAddress{0x33, 0x33, 0, 0, 0, 1} : question.asker.mac, owner,
                   frame::ethertype_ipv6);
    std::fill(f + eth, f + answer_octets, std::byte{0});
    f[eth] = std::byte{0x60};
    store(f + eth + 4, big(static_cast<std::uint16_t>(answer_octets - icmp6)));
    f[eth + 6] = std::byte{frame::protocol_icmpv6};
    f[eth + 7] = std::byte{nd_hop_limit};
    put(f + ip6_source, question.target.bytes());
    put(f + ip6_destination, detection ? std::span<const std::uint8_t>{all_nodes} : question.asker.ip.bytes());
    f[icmp6] = std::byte{nd_advertisement};
    f[nd_flags] =
        static_cast<std::byte>(flag_override | (detection ? 0U : flag_solicited) | (is_router ? flag_router : 0U));
    put(f + nd_target, question.target.bytes());
    f[nd_options] = std::byte{option_target_link};
    f[nd_options + 1] = std::byte{1};
    put(f + nd_options + 2, owner);
    write_icmpv6_checksum(f, answer_octets - icmp6);
    return answer_octets;
}

std::optional<Party> read_announcement(std::span<const std::byte> f) noexcept {
    if (is_arp(f))
        return Party{.mac = get_mac(f.data() + arp_sender_mac), .ip = get_ip(f.data() + arp_sender_ip, IpVersion::v4)};
    if (is_nd(f, nd_advertisement)) {
        const auto mac = find_option(f, option_target_link);
        if (!mac) return std::nullopt;
        return Party{.mac = *mac, .ip = get_ip(f.data() + nd_target, IpVersion::v6)};
    }
    if (is_nd(f, nd_solicitation)) {
        const auto mac = find_option(f, option_source_link);
        if (!mac) return std::nullopt;
        return Party{.mac = *mac, .ip = get_ip(f.data() + ip6_source, IpVersion::v6)};
    }
    return std::nullopt;
}

}  // namespace evenhand::neighbor
