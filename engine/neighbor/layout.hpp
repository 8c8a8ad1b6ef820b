// SPDX-License-Identifier: Apache-2.0
// Neighbours: where the fields of ARP (RFC 826) and neighbour discovery (RFC 4861) are in a frame, and their values.
#pragma once

#include <cstddef>
#include <cstdint>

#include "frame/layout.hpp"

namespace evenhand::neighbor {

constexpr std::size_t arp = frame::ethernet_octets;
constexpr std::size_t arp_operation = arp + 6;
constexpr std::size_t arp_sender_mac = arp + 8;
constexpr std::size_t arp_sender_ip = arp + 14;
constexpr std::size_t arp_target_mac = arp + 18;
constexpr std::size_t arp_target_ip = arp + 24;
constexpr std::size_t arp_end = arp + 28;
constexpr std::uint64_t arp_head =
    0x0001080006040000;  // the first 8 octets: hardware Ethernet, protocol IPv4, lengths 6 and 4, without the operation
constexpr std::uint16_t arp_request = 1;
constexpr std::uint16_t arp_reply = 2;

constexpr std::size_t icmp6 = frame::Layout<frame::IpVersion::v6>::ip + frame::Layout<frame::IpVersion::v6>::ip_octets;
constexpr std::size_t nd_flags = icmp6 + 4;  // of an advertisement
constexpr std::size_t nd_target = icmp6 + 8;
constexpr std::size_t nd_options = icmp6 + 24;
constexpr std::uint8_t nd_hop_limit = 255;  // a frame with another value has crossed a router (RFC 4861, 7.1)
constexpr std::uint8_t nd_router_solicitation = 133;
constexpr std::uint8_t nd_solicitation = 135;
constexpr std::uint8_t nd_advertisement = 136;
constexpr std::uint8_t nd_redirect = 137;
constexpr std::uint8_t option_source_link = 1;
constexpr std::uint8_t option_target_link = 2;
constexpr std::uint8_t flag_router = 0x80;
constexpr std::uint8_t flag_solicited = 0x40;
constexpr std::uint8_t flag_override = 0x20;

}  // namespace evenhand::neighbor
