// SPDX-License-Identifier: Apache-2.0
#include "local/answerer.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "frame/checksum.hpp"
#include "frame/layout.hpp"
#include "neighbor/layout.hpp"
#include "neighbor/messages.hpp"

namespace evenhand::router {
namespace {

using frame::big;
using frame::load;
using frame::store;
using plan::IpAddress;
using plan::IpVersion;
using plan::MacAddress;
using V4 = frame::Layout<IpVersion::v4>;
using V6 = frame::Layout<IpVersion::v6>;

constexpr std::size_t eth = frame::ethernet_octets;
constexpr std::size_t least_octets = 60;  // without FCS
constexpr std::uint16_t good_sum = 0xFFFF;
constexpr std::size_t echo_octets = 8;  // header of ICMP and ICMPv6 echo
constexpr std::uint8_t sent_hop_limit = 64;

constexpr std::uint8_t protocol_icmp = 1;
constexpr std::uint8_t icmp_echo_reply = 0;
constexpr std::uint8_t icmp_echo_request = 8;

using neighbor::icmp6;
using neighbor::nd_flags;
using neighbor::nd_options;
constexpr std::uint8_t icmp6_echo_request = 128;
constexpr std::uint8_t icmp6_echo_reply = 129;

std::uint8_t octet(std::span<const std::byte> f, std::size_t at) { return static_cast<std::uint8_t>(f[at]); }

MacAddress mac_at(std::span<const std::byte> f, std::size_t at) {
    MacAddress mac;
    std::memcpy(mac.data(), f.data() + at, mac.size());
    return mac;
}

IpAddress ip_at(std::span<const std::byte> f, std::size_t at, IpVersion version) {
    IpAddress ip{.version = version};
    std::memcpy(ip.octets.data(), f.data() + at, plan::address_octets(version));
    return ip;
}

bool is_zero(const IpAddress& ip) {
    return std::ranges::all_of(ip.octets, [](auto o) { return o == 0; });
}

/// Whether one station can have this MAC.
bool is_station(const MacAddress& mac) { return (mac[0] & 1U) == 0 && mac != MacAddress{}; }

/// The checksum of the whole ICMPv6 message; also 0xFFFF if the checksum in it is right.
std::uint16_t icmp6_sum(const std::byte* f, std::size_t icmp_octets) {
    return frame::fold(frame::sum_octets(f + V6::source, 32 + icmp_octets) +
                       frame::pseudo_header_sum(frame::protocol_icmpv6, icmp_octets));
}

/// Sends the answer back to where the question came from. Not by the routing table: if the asker's MAC works in one
/// direction, it works in the other.
void turn_around(std::byte* f, const MacAddress& own, std::size_t address_at, std::size_t address_octets) {
    std::memcpy(f, f + 6, 6);
    std::memcpy(f + 6, own.data(), own.size());
    std::swap_ranges(f + address_at, f + address_at + address_octets, f + address_at + address_octets);
}

/// The port of a kernel interface does not pad what it sends, but on a wire frames must be padded.
std::size_t pad(std::span<std::byte> room, std::size_t octets) {
    if (octets >= least_octets || room.size() < least_octets) return octets;
    std::ranges::fill(room.subspan(octets, least_octets - octets), std::byte{0});
    return least_octets;
}

}  // namespace

LocalAnswerer::LocalAnswerer(std::vector<Interface> interfaces, NeighborTable& neighbors)
    : interfaces_{std::move(interfaces)}, neighbors_{neighbors} {}

std::size_t LocalAnswerer::handle(unsigned interface, std::span<std::byte> room, std::size_t octets,
                                  Ticks now) noexcept {
    const Interface& on = interfaces_[interface];
    if (octets < eth || octets > room.size() || !is_station(mac_at(room, 6))) {
        counters_.malformed.add();
        return 0;
    }
    const MacAddress to = mac_at(room, 0);
    if (to != on.mac && is_station(to)) {
        counters_.not_ours.add();
        return 0;
    }
    switch (big(load<std::uint16_t>(room.data() + 12))) {
        case frame::ethertype_arp: return handle_arp(on, room, octets, now);
        case frame::ethertype_ipv4: return handle_ipv4(on, room, octets);
        case frame::ethertype_ipv6: return handle_ipv6(on, room, octets, now);
        default: counters_.unsupported.add(); return 0;
    }
}

bool LocalAnswerer::owns(const Interface& on, const IpAddress& address) const noexcept {
    if (plan::is_link_local(address)) return on.owns(address);
    return std::ranges::any_of(interfaces_, [&](const Interface& i) { return i.owns(address); });
}

void LocalAnswerer::learn(const Interface& on, const IpAddress& neighbor, const MacAddress& mac, Ticks now,
                          Evidence evidence) noexcept {
    // The address of a duplicate address detection or an ARP probe does not belong to anybody yet; if it is an own
    // address, somebody claims it in error.
    if (!is_station(mac) || mac == on.mac || !is_unicast(neighbor) || !on.is_on_link(neighbor) || on.owns(neighbor))
        return;
    neighbors_.learn(on.number, neighbor, mac, now, evidence);
    counters_.learned.add();
}

std::size_t LocalAnswerer::handle_arp(const Interface& on, std::span<std::byte> room, std::size_t octets,
                                      Ticks now) noexcept {
    const auto frame = std::span<const std::byte>{room}.first(octets);
    const std::uint64_t head = octets < neighbor::arp_end ? 0 : big(load<std::uint64_t>(frame.data() + eth));
    const std::uint64_t operation = head ^ neighbor::arp_head;
    if (operation != neighbor::arp_request && operation != neighbor::arp_reply) {
        counters_.malformed.add();
        return 0;
    }
    const auto sender = neighbor::read_announcement(frame).value();
    if (!is_station(sender.mac)) {
        counters_.malformed.add();
        return 0;
    }
    const IpAddress target = ip_at(frame, neighbor::arp_target_ip, IpVersion::v4);
    const bool to_us = on.owns(target);
    if (operation == neighbor::arp_reply || !to_us) {
        counters_.told.add();
        // Only a reply to this MAC can answer a question of ours; a broadcast reply is an announcement (RFC 5227, 3).
        learn(on, sender.ip, sender.mac, now, to_us && mac_at(frame, 0) == on.mac ? answer_evidence : gossip_evidence);
        return 0;
    }
    learn(on, sender.ip, sender.mac, now, asker_evidence);
    counters_.arp_answers.add();
    const auto question = neighbor::read_question(frame).value();
    return pad(room, neighbor::write_answer(room, std::min(octets, least_octets), question, on.mac));
}

std::size_t LocalAnswerer::handle_ipv4(const Interface& on, std::span<std::byte> room, std::size_t octets) noexcept {
    std::byte* const f = room.data();
    if (octets < V4::ip + V4::ip_octets) {
        counters_.malformed.add();
        return 0;
    }
    const std::size_t version = octet(room, V4::ip) >> 4U;
    const std::size_t header_octets = 4 * std::size_t{octet(room, V4::ip) & 0x0FU};
    const std::size_t ip_octets = big(load<std::uint16_t>(f + V4::ip + 2));
    if (version != 4 || header_octets < V4::ip_octets || ip_octets < header_octets || V4::ip + ip_octets > octets) {
        counters_.malformed.add();
        return 0;
    }
    if (frame::fold(frame::sum_octets(f + V4::ip, header_octets)) != good_sum) {
        counters_.bad_checksum.add();
        return 0;
    }
    const IpAddress source = ip_at(room, V4::source, IpVersion::v4);
    if (mac_at(room, 0) != on.mac || !owns(on, ip_at(room, V4::destination, IpVersion::v4))) {
        counters_.not_ours.add();
        return 0;
    }
    constexpr std::uint16_t fragment_bits = 0x3FFF;  // more fragments, and the offset
    const bool fragment = (big(load<std::uint16_t>(f + V4::ip + 6)) & fragment_bits) != 0;
    if (header_octets != V4::ip_octets || fragment || octet(room, V4::ip + 9) != protocol_icmp) {
        counters_.unsupported.add();
        return 0;
    }
    constexpr std::size_t icmp = V4::ip + V4::ip_octets;
    const std::size_t icmp_octets = ip_octets - V4::ip_octets;
    if (icmp_octets < echo_octets || !is_unicast(source) || owns(on, source)) {
        counters_.malformed.add();
        return 0;
    }
    if (frame::fold(frame::sum_octets(f + icmp, icmp_octets)) != good_sum) {
        counters_.bad_checksum.add();
        return 0;
    }
    const bool echo = octet(room, icmp) == icmp_echo_request;
    if (!echo || f[icmp + 1] != std::byte{0}) {
        (echo ? counters_.malformed : counters_.unsupported).add();
        return 0;
    }
    turn_around(f, on.mac, V4::source, 4);
    f[V4::ip + 8] = std::byte{sent_hop_limit};
    store(f + V4::ipv4_checksum, std::uint16_t{0});
    store(f + V4::ipv4_checksum, frame::ip_checksum(frame::sum_octets(f + V4::ip, V4::ip_octets)));
    f[icmp] = std::byte{icmp_echo_reply};
    store(f + icmp + 2, std::uint16_t{0});
    store(f + icmp + 2, frame::ip_checksum(frame::sum_octets(f + icmp, icmp_octets)));
    counters_.echo_answers.add();
    return pad(room, V4::ip + ip_octets);
}

std::size_t LocalAnswerer::handle_ipv6(const Interface& on, std::span<std::byte> room, std::size_t octets,
                                       Ticks now) noexcept {
    const std::byte* const f = room.data();
    if (octets < icmp6) {
        counters_.malformed.add();
        return 0;
    }
    const std::size_t payload_octets = big(load<std::uint16_t>(f + V6::ip + 4));
    if (octet(room, V6::ip) >> 4U != 6 || icmp6 + payload_octets > octets) {
        counters_.malformed.add();
        return 0;
    }
    if (octet(room, V6::ip + 6) != frame::protocol_icmpv6) {
        (owns(on, ip_at(room, V6::destination, IpVersion::v6)) ? counters_.unsupported : counters_.not_ours).add();
        return 0;
    }
    if (payload_octets < echo_octets) {
        counters_.malformed.add();
        return 0;
    }
    if (icmp6_sum(f, payload_octets) != good_sum) {
        counters_.bad_checksum.add();
        return 0;
    }
    // The message ends with the payload, according to its length; a trailer of the frame does not belong to it.
    const std::size_t message_octets = icmp6 + payload_octets;
    const std::uint8_t type = octet(room, icmp6);
    if (type == icmp6_echo_request) return handle_echo_v6(on, room, message_octets);
    const bool discovery = type >= neighbor::nd_router_solicitation && type <= neighbor::nd_redirect;
    if (discovery && octet(room, V6::ip + 7) != neighbor::nd_hop_limit) {
        counters_.bad_hop_limit.add();
        return 0;
    }
    if (type == neighbor::nd_solicitation) return handle_solicitation(on, room, message_octets, now);
    if (type == neighbor::nd_advertisement) {
        handle_advertisement(on, std::span<const std::byte>{room}.first(message_octets), now);
        return 0;
    }
    counters_.unsupported.add();
    return 0;
}

std::size_t LocalAnswerer::handle_solicitation(const Interface& on, std::span<std::byte> room, std::size_t octets,
                                               Ticks now) noexcept {
    const auto frame = std::span<const std::byte>{room}.first(octets);
    const auto question = neighbor::read_question(frame);
    const IpAddress source = ip_at(frame, V6::source, IpVersion::v6);
    const IpAddress destination = ip_at(frame, V6::destination, IpVersion::v6);
    const auto announced = question ? neighbor::read_announcement(frame) : std::nullopt;
    // RFC 4861, 7.1.1: a duplicate address detection is sent to the group, and has no MAC option.
    const bool detection = is_zero(source);
    const bool to_group = question && destination == solicited_node_group(question->target);
    if (!question || !is_station(question->asker.mac) || !is_unicast(question->target) ||
        (detection ? announced || !to_group : !is_unicast(source))) {
        counters_.malformed.add();
        return 0;
    }
    if (!on.owns(question->target)) {
        counters_.told.add();
        return 0;
    }
    if (destination != question->target && !to_group) {
        counters_.not_ours.add();
        return 0;
    }
    if (room.size() < neighbor::solicitation_octets) {
        counters_.unsupported.add();
        return 0;
    }
    if (announced) learn(on, source, announced->mac, now, asker_evidence);
    counters_.nd_answers.add();
    return neighbor::write_answer(room, octets, *question, on.mac);
}

void LocalAnswerer::handle_advertisement(const Interface& on, std::span<const std::byte> frame, Ticks now) noexcept {
    const IpAddress source = ip_at(frame, V6::source, IpVersion::v6);
    const IpAddress destination = ip_at(frame, V6::destination, IpVersion::v6);
    const auto announced = neighbor::read_announcement(frame);
    // The answer to a probe may omit the MAC (RFC 4861, 4.4). Options without a MAC in them are broken, or irrelevant
    // here.
    const bool whole =
        announced ? is_station(announced->mac) : frame.size() == nd_options && frame[icmp6 + 1] == std::byte{0};
    const bool solicited = whole && (octet(frame, nd_flags) & neighbor::flag_solicited) != 0;
    const IpAddress target = whole ? ip_at(frame, neighbor::nd_target, IpVersion::v6) : IpAddress{};
    // RFC 4861, 7.1.2
    if (!whole || !is_unicast(source) || !is_unicast(target) || (solicited && !is_unicast(destination))) {
        counters_.malformed.add();
        return;
    }
    if (is_unicast(destination) && !on.owns(destination)) {
        counters_.not_ours.add();
        return;
    }
    counters_.told.add();
    if (announced) {
        learn(on, target, announced->mac, now,
              {.solicited = solicited, .overrides = (octet(frame, nd_flags) & neighbor::flag_override) != 0});
    } else if (solicited) {
        neighbors_.confirm(on.number, target, now);
        counters_.learned.add();
    }
}

std::size_t LocalAnswerer::handle_echo_v6(const Interface& on, std::span<std::byte> room, std::size_t octets) noexcept {
    std::byte* const f = room.data();
    const IpAddress source = ip_at(room, V6::source, IpVersion::v6);
    if (mac_at(room, 0) != on.mac || !owns(on, ip_at(room, V6::destination, IpVersion::v6))) {
        counters_.not_ours.add();
        return 0;
    }
    if (f[icmp6 + 1] != std::byte{0} || !is_unicast(source) || owns(on, source)) {
        counters_.malformed.add();
        return 0;
    }
    turn_around(f, on.mac, V6::source, 16);
    f[V6::ip + 7] = std::byte{sent_hop_limit};
    f[icmp6] = std::byte{icmp6_echo_reply};
    store(f + icmp6 + 2, std::uint16_t{0});
    store(f + icmp6 + 2, static_cast<std::uint16_t>(~icmp6_sum(f, octets - icmp6)));
    counters_.echo_answers.add();
    return pad(room, octets);
}

}  // namespace evenhand::router
