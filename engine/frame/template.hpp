// SPDX-License-Identifier: Apache-2.0
// Station 2, frame: what all frames of one stream share.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "frame/layout.hpp"
#include "plan/plan.hpp"

namespace evenhand::frame {

/// What identifies a stream's frames besides their flow.
struct StreamIdentity {
    plan::Direction direction = plan::Direction::forward;
    std::uint8_t stream = 0;
    std::uint16_t trial = 0;
};

/// The place of the host number in an address of this range that begins at `address_at`.
[[nodiscard]] inline HostPlace host_place(const plan::HostRange& range, std::size_t address_at) {
    return {.high = address_at + range.offset, .low = address_at + range.low_offset()};
}

/// Octets 0 .. tag_end of a frame whose varying fields are zero, and the checksum sums of exactly these octets.
struct FrameTemplate {
    static constexpr std::size_t room = 80;  // tag_end of IPv6; IPv4 uses 60

    alignas(64) std::array<std::byte, room> head{};
    IpVersion version = IpVersion::v4;
    std::size_t octets = 0;     // of the whole frame without FCS
    std::uint64_t ip_sum = 0;   // IPv4 header
    std::uint64_t udp_sum = 0;  // pseudo-header, UDP header and all payload
    HostPlace source;
    HostPlace destination;
    bool has_network_octets = false;  // whether the networks' numbers have octets of their own
    std::size_t source_network_at = 0;
    std::size_t destination_network_at = 0;
    /// Whether all octets of both addresses vary. In IPv4 these are two words each, at the places of a host number and
    /// of a network's.
    bool has_whole_addresses = false;

    /// Whether both host numbers are whole words of a checksum.
    [[nodiscard]] bool has_words() const noexcept { return source.is_word() && destination.is_word(); }
};

/// The smallest frame, with FCS, that has room for headers and tag.
[[nodiscard]] constexpr std::size_t smallest_frame_size(IpVersion version) noexcept {
    return version == IpVersion::v4 ? Layout<IpVersion::v4>::smallest_frame_size
                                    : Layout<IpVersion::v6>::smallest_frame_size;
}

/// Throws Fault{bad_frame_size} below 64 (IPv4) or 84 (IPv6) or above 9216 octets with FCS (R2544-04, R5180-10,
/// R8219-01). `where`: the key of the request that has the frame size.
void check_frame_size(IpVersion version, std::size_t frame_size, const std::string& where = "frame_size");

/// Throws Fault{bad_frame_size} where a frame of this size, which counts the tags of the side that sends it, is longer
/// than 9216 octets on a link. `longest`: what it has there, with tags and tunnels, and as the DUT translates it.
void check_length(std::size_t frame_size, std::size_t longest, const std::string& where);

/// The format of RFC 2544 C.2.6.4 with computed lengths (R2544-31, R2544-32) and the tag of layout.hpp; IPv4 has DF set
/// where the DUT translates. `frame_size`: of the frames as they are sent, with FCS. `pattern`: the IP version whose
/// write_pattern() the transmit buffers hold, if that is not the frames' own: an IPv6 frame then continues IPv4's
/// pattern where its own headers end.
[[nodiscard]] FrameTemplate make_template(const plan::AddressPlan& plan, std::size_t frame_size,
                                          StreamIdentity identity, plan::MacAddress source_mac,
                                          plan::MacAddress destination_mac,
                                          std::optional<IpVersion> pattern = std::nullopt);

/// The octet right behind the tag of a frame of `version` in a buffer that has the pattern for frames of `pattern`;
/// each following octet is greater by 1.
[[nodiscard]] constexpr std::uint8_t first_of_pattern(IpVersion version, IpVersion pattern) noexcept {
    const auto tag_end = [](IpVersion v) {
        return v == IpVersion::v4 ? Layout<IpVersion::v4>::tag_end : Layout<IpVersion::v6>::tag_end;
    };
    return static_cast<std::uint8_t>(tag_end(version) - tag_end(pattern));
}

/// The same for frames as they arrive where a router forwards; the MACs are zero.
[[nodiscard]] FrameTemplate make_arriving_template(IpVersion version, const plan::HostPair& hosts,
                                                   std::size_t frame_size, StreamIdentity identity,
                                                   std::uint8_t first_of_pattern);

/// Writes the octets behind the tag: 00 01 02 ... repeating. They are the same for all frames of a size, so they are
/// written once into every transmit buffer.
void write_pattern(IpVersion version, std::span<std::byte> frame);

}  // namespace evenhand::frame
