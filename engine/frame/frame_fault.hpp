// SPDX-License-Identifier: Apache-2.0
// Station 5, seen from the frame: the ways in which a frame with our tag can differ from the one that was sent.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace evenhand::frame {

/// In the order in which they are looked for; a frame counts under the first one that it has. Those up to `number` mean
/// that the frame was damaged or came to the wrong place; the others, that it is sound but not what was sent.
enum class FrameFault : std::uint8_t {
    header,  // IP version, options, protocol, identification or flags
    length,  // of the IP or UDP header
    fragment,
    header_checksum,  // IPv4's
    udp_checksum,
    destination_mac,  // not that of the tester's port
    hop_limit,        // none left, or more than was sent
    number,           // no frame with this number was sent
    address,          // not that of the sent frame with this number
    port,             // a UDP port is not that of the sent frame with this number
    payload           // an octet behind the UDP header is not that of the sent frame
};
constexpr std::size_t damages = static_cast<std::size_t>(FrameFault::number) + 1;

/// The contract's names for the faults up to `number`, in their order.
inline constexpr std::array<const char*, damages> damage_names{
    "header", "length", "fragment", "header_checksum", "udp_checksum", "destination_mac", "hop_limit", "number"};

}  // namespace evenhand::frame
