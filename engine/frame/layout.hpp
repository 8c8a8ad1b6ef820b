// SPDX-License-Identifier: Apache-2.0
// Station 2, frame: where each field of a test frame is. The only place that knows offsets.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "plan/address.hpp"

namespace evenhand::frame {

using plan::IpVersion;

constexpr std::size_t fcs_octets = 4;  // frame sizes include the FCS; buffers do not hold it
constexpr std::size_t ethernet_octets = 14;
constexpr std::size_t udp_octets = 8;
constexpr std::size_t tag_octets = 18;            // what a 64-byte IPv4 and an 84-byte IPv6 frame leave (R2544-33)
constexpr std::size_t largest_frame_size = 9216;  // jumbo frames (R8219-01, R5180-09)
constexpr std::size_t largest_usual_frame_size = 1518;  // what every port accepts without being configured

constexpr std::uint16_t ethertype_ipv4 = 0x0800;
constexpr std::uint16_t ethertype_arp = 0x0806;
constexpr std::uint16_t ethertype_ipv6 = 0x86DD;
constexpr std::uint8_t protocol_udp = 17;
constexpr std::uint8_t protocol_icmpv6 = 58;
constexpr std::uint16_t dont_fragment = 0x4000;  // flag of IPv4
constexpr std::uint8_t sent_ttl = 10;            // RFC 2544 C.2.6.4; also IPv6's hop limit

/// Offsets from the first octet of the frame, without VLAN tags.
template <IpVersion V>
struct Layout {
    static constexpr std::size_t ip = ethernet_octets;
    static constexpr std::size_t ip_octets = V == IpVersion::v4 ? 20 : 40;
    static constexpr std::size_t ipv4_checksum = ip + 10;  // IPv4 only
    static constexpr std::size_t source = ip + (V == IpVersion::v4 ? 12 : 8);
    static constexpr std::size_t destination = source + plan::address_octets(V);
    static constexpr std::size_t udp = ip + ip_octets;
    static constexpr std::size_t udp_length = udp + 4;
    static constexpr std::size_t udp_checksum = udp + 6;
    static constexpr std::size_t tag = udp + udp_octets;  // right after the UDP header (R8219-08)
    static constexpr std::size_t tag_end = tag + tag_octets;
    static constexpr std::size_t smallest_frame_size = tag_end + fcs_octets;
};
static_assert(Layout<IpVersion::v4>::smallest_frame_size == 64);
static_assert(Layout<IpVersion::v6>::smallest_frame_size == 84);

/// Where the two octets of a host number are in a frame. Addresses begin at even offsets.
struct HostPlace {
    std::size_t high = 0;
    std::size_t low = 0;

    [[nodiscard]] constexpr bool is_word() const noexcept { return high % 2 == 0 && low == high + 1; }
};

/// The hop limit (IPv4: time to live) of a frame without VLAN tags.
[[nodiscard]] inline std::uint8_t hop_limit_of(const std::byte* frame, IpVersion version) noexcept {
    return static_cast<std::uint8_t>(
        frame[version == IpVersion::v4 ? Layout<IpVersion::v4>::ip + 8 : Layout<IpVersion::v6>::ip + 7]);
}

// The tag, 18 octets in network order:
//   0-2   magic     0xE5 0xE4 0x01; the last is the version of this layout
//   3-4   trial     1..65535; 0 in previews and in learning
//   5     stream    bit 7: direction (0 forward, 1 reverse); bits 0-6: stream of the direction, exclusive-or the check
//                   of the time
//   6-11  sequence  number of the frame in its direction, from 0
//   12-17 time      tick counter of the sender when the frame was built, low 48 bits
constexpr std::uint32_t tag_magic = 0xE5E401;
constexpr std::size_t tag_trial = 3;
constexpr std::size_t tag_stream = 5;
constexpr std::size_t tag_sequence = 6;
constexpr std::size_t tag_time = 12;
constexpr std::uint64_t sequence_mask = (std::uint64_t{1} << 48U) - 1;
constexpr std::uint64_t time_mask = sequence_mask;
constexpr std::uint8_t direction_bit = 0x80;
constexpr std::size_t most_streams = 128;

/// Seven bits that are combined with the stream in a tag. Everything else in a frame is known to the receiver but its
/// time; this check finds a time that was altered even if the checksums were recomputed. It differs whenever one bit,
/// or any bits of one octet, differ.
[[nodiscard]] constexpr std::uint8_t time_check(std::uint64_t time) noexcept {
    constexpr std::uint64_t word = 0xFFFF;
    constexpr unsigned bits = 7;
    const std::uint64_t folded = (time ^ time >> 16U ^ time >> 32U) & word;
    return static_cast<std::uint8_t>((folded ^ folded >> bits ^ folded >> 2 * bits) & 0x7FU);
}

/// Unaligned access in memory order; `big` turns a host number into network order and back.
template <class T>
[[nodiscard]] inline T load(const std::byte* at) noexcept {
    T value;
    std::memcpy(&value, at, sizeof value);
    return value;
}
template <class T>
inline void store(std::byte* at, T value) noexcept {
    std::memcpy(at, &value, sizeof value);
}
static_assert(std::endian::native == std::endian::little,
              "big() and the tag reader are written for little-endian CPUs");
[[nodiscard]] constexpr std::uint16_t big(std::uint16_t v) noexcept { return __builtin_bswap16(v); }
[[nodiscard]] constexpr std::uint32_t big(std::uint32_t v) noexcept { return __builtin_bswap32(v); }
[[nodiscard]] constexpr std::uint64_t big(std::uint64_t v) noexcept { return __builtin_bswap64(v); }

}  // namespace evenhand::frame
