// SPDX-License-Identifier: Apache-2.0
#include "frame/reader.hpp"

namespace evenhand::frame {

std::optional<FrameFault> damage_of(const std::byte* frame, std::size_t octets, IpVersion version) noexcept {
    if (is_intact(frame, octets, version)) return std::nullopt;
    if (version == IpVersion::v4) {
        using L = Layout<IpVersion::v4>;
        constexpr std::uint8_t version_and_length = 0x45;
        constexpr std::uint16_t fragment_bits = 0x3FFF;
        if (static_cast<std::uint8_t>(frame[L::ip]) != version_and_length ||
            static_cast<std::uint8_t>(frame[L::ip + 9]) != protocol_udp)
            return FrameFault::header;
        if ((big(load<std::uint16_t>(frame + L::ip + 6)) & fragment_bits) != 0) return FrameFault::fragment;
        if (big(load<std::uint16_t>(frame + L::ip + 2)) != octets - L::ip ||
            big(load<std::uint16_t>(frame + L::udp_length)) != octets - L::udp)
            return FrameFault::length;
        constexpr std::uint16_t good = 0xFFFF;
        return fold(sum_octets(frame + L::ip, L::ip_octets)) != good ? FrameFault::header_checksum
                                                                     : FrameFault::udp_checksum;
    }
    using L = Layout<IpVersion::v6>;
    constexpr unsigned version_6 = 6;
    constexpr std::uint8_t fragment_header = 44;
    const auto next = static_cast<std::uint8_t>(frame[L::ip + 6]);
    if (next == fragment_header) return FrameFault::fragment;
    if (static_cast<unsigned>(frame[L::ip]) >> 4U != version_6 || next != protocol_udp) return FrameFault::header;
    if (big(load<std::uint16_t>(frame + L::ip + 4)) != octets - L::udp ||
        big(load<std::uint16_t>(frame + L::udp_length)) != octets - L::udp)
        return FrameFault::length;
    return FrameFault::udp_checksum;
}

}  // namespace evenhand::frame
