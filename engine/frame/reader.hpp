// SPDX-License-Identifier: Apache-2.0
// Station 5, seen from the frame: what a received frame is. Test frames are recognised by the tag alone (R2544-40).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "frame/checksum.hpp"
#include "frame/frame_fault.hpp"
#include "frame/layout.hpp"
#include "plan/plan.hpp"

namespace evenhand::frame {

/// The fields of a tag that identify a frame.
struct TagNumbers {
    std::uint8_t stream;
    std::uint64_t sequence;
    std::uint64_t time_ticks;  // low 48 bits
};

struct Tag {
    std::uint16_t trial;
    plan::Direction direction;
    std::uint8_t stream;
    std::uint64_t sequence;
    std::uint64_t time_ticks;

    [[nodiscard]] TagNumbers numbers() const noexcept {
        return {.stream = stream, .sequence = sequence, .time_ticks = time_ticks};
    }
};

enum class FrameKind : std::uint8_t { test, neighbor, foreign };

/// First look at a frame without FCS of any length and content; never reads beyond `octets`.
struct FirstLook {
    FrameKind kind = FrameKind::foreign;
    IpVersion version = IpVersion::v4;
    Tag tag{};
};

/// Reads the numbers of a tag that begins at `tag`.
[[nodiscard, gnu::always_inline]] inline TagNumbers numbers_at(const std::byte* tag) noexcept {
    constexpr unsigned unused_bits = 16;
    const std::uint64_t time = big(load<std::uint64_t>(tag + tag_time - 2)) & time_mask;
    const auto stream = static_cast<unsigned>(tag[tag_stream]) & ~unsigned{direction_bit};
    return {.stream = static_cast<std::uint8_t>(stream ^ time_check(time)),
            .sequence = big(load<std::uint64_t>(tag + tag_sequence)) >> unused_bits,
            .time_ticks = time};
}

namespace detail {
template <IpVersion V>
[[nodiscard]] inline bool read_tag(const std::byte* frame, std::size_t octets, FirstLook& look) noexcept {
    using L = Layout<V>;
    if (octets < L::tag_end) return false;
    const std::byte* const tag = frame + L::tag;
    if (big(load<std::uint32_t>(tag)) >> 8U != tag_magic) return false;
    look.kind = FrameKind::test;
    look.version = V;
    const TagNumbers numbers = numbers_at(tag);
    const auto stream = static_cast<std::uint8_t>(tag[tag_stream]);
    look.tag = {.trial = big(load<std::uint16_t>(tag + tag_trial)),
                .direction = (stream & direction_bit) != 0 ? plan::Direction::reverse : plan::Direction::forward,
                .stream = numbers.stream,
                .sequence = numbers.sequence,
                .time_ticks = numbers.time_ticks};
    return true;
}

[[nodiscard]] inline bool is_neighbor_discovery(const std::byte* frame, std::size_t octets) noexcept {
    constexpr std::size_t icmpv6 = ethernet_octets + 40;
    constexpr int first_nd_type = 133;  // router solicitation .. redirect
    constexpr int last_nd_type = 137;
    if (octets <= icmpv6 || static_cast<std::uint8_t>(frame[ethernet_octets + 6]) != protocol_icmpv6) return false;
    const int type = static_cast<int>(frame[icmpv6]);
    return type >= first_nd_type && type <= last_nd_type;
}
}  // namespace detail

[[nodiscard]] inline FirstLook look_at(const std::byte* frame, std::size_t octets) noexcept {
    FirstLook look;
    if (octets < ethernet_octets) return look;
    switch (big(load<std::uint16_t>(frame + 12))) {
        case ethertype_ipv4: (void)detail::read_tag<IpVersion::v4>(frame, octets, look); break;
        case ethertype_ipv6:
            if (!detail::read_tag<IpVersion::v6>(frame, octets, look) && detail::is_neighbor_discovery(frame, octets))
                look.kind = FrameKind::neighbor;
            break;
        case ethertype_arp: look.kind = FrameKind::neighbor; break;
        default: break;
    }
    return look;
}

/// Whether the traffic class (DSCP and ECN) or the flow label differ from what is sent, which is 0. A router may set
/// both (RFC 2474, RFC 6437).
[[nodiscard]] inline bool is_remarked(const std::byte* frame, IpVersion version) noexcept {
    constexpr std::uint32_t class_and_label = 0x0FFFFFFF;
    return version == IpVersion::v4
               ? frame[Layout<IpVersion::v4>::ip + 1] != std::byte{0}
               : (big(load<std::uint32_t>(frame + Layout<IpVersion::v6>::ip)) & class_and_label) != 0;
}

/// Whether the frame is consistent: checksums (UDP over addresses, ports and payload, and the IPv4 header's), version,
/// lengths and protocol; and whether it is a whole packet, not a fragment. The tag must have been read. Always inlined:
/// it runs once for each frame, and a call costs some 13 instructions.
[[nodiscard, gnu::always_inline]] inline bool is_intact(const std::byte* frame, std::size_t octets,
                                                        IpVersion version) noexcept {
    constexpr std::uint16_t good = 0xFFFF;
    if (version == IpVersion::v4) {
        using L = Layout<IpVersion::v4>;
        constexpr std::uint8_t version_and_length = 0x45;  // no options
        constexpr std::uint16_t fragment_bits = 0x3FFF;    // more fragments, and the offset
        if (static_cast<std::uint8_t>(frame[L::ip]) != version_and_length ||
            big(load<std::uint16_t>(frame + L::ip + 2)) != octets - L::ip ||
            (big(load<std::uint16_t>(frame + L::ip + 6)) & fragment_bits) != 0 ||
            static_cast<std::uint8_t>(frame[L::ip + 9]) != protocol_udp ||
            big(load<std::uint16_t>(frame + L::udp_length)) != octets - L::udp) {
            return false;
        }
        const std::uint64_t udp =
            sum_octets(frame + L::source, octets - L::source) + pseudo_header_sum(protocol_udp, octets - L::udp);
        return fold(udp) == good && fold(sum_octets(frame + L::ip, L::ip_octets)) == good;
    }
    using L = Layout<IpVersion::v6>;
    // In an IPv6 header, no checksum covers anything but the addresses.
    const std::uint32_t length_and_next = big(load<std::uint32_t>(frame + L::ip + 4)) >> 8U;
    constexpr unsigned version_6 = 6;
    if (length_and_next != ((octets - L::udp) << 8U | protocol_udp) ||
        static_cast<unsigned>(frame[L::ip]) >> 4U != version_6 ||
        big(load<std::uint16_t>(frame + L::udp_length)) != octets - L::udp) {
        return false;
    }
    return fold(sum_octets(frame + L::source, octets - L::source) + pseudo_header_sum(protocol_udp, octets - L::udp)) ==
           good;
}

/// Which part of that is wrong; nothing if none is.
[[nodiscard]] std::optional<FrameFault> damage_of(const std::byte* frame, std::size_t octets,
                                                  IpVersion version) noexcept;

}  // namespace evenhand::frame
