// SPDX-License-Identifier: Apache-2.0
// Station 5, seen from the frame: the ways in which a frame with our tag can be another than the one that was sent.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace evenhand::frame {

/// In the order in which they are looked for: a frame has the first of them. Those up to `number` are of frames that
/// are damaged or come to the wrong place; the others of sound ones that are not what was sent.
enum class FrameFault : std::uint8_t {
    header,  // IP version, options, protocol, identification or flags
    length,  // of the IP or UDP header
    fragment,
    header_checksum,  // IPv4's
    udp_checksum,
    destination_mac,  // not that of the tester's port
    hop_limit,        // none left, or more than was sent
    number,           // no frame with this number was sent
    address,          // not that of the frame with this number
    port,             // the same of a UDP port
    payload           // the same of an octet behind the UDP header
};
constexpr std::size_t damages = static_cast<std::size_t>(FrameFault::number) + 1;

/// Of those up to `number`, in their order: the names in the contract.
inline constexpr std::array<const char*, damages> damage_names{
    "header", "length", "fragment", "header_checksum", "udp_checksum", "destination_mac", "hop_limit", "number"};

}  // namespace evenhand::frame
