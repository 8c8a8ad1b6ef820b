// SPDX-License-Identifier: Apache-2.0
// Station 5, seen from the frame: an ICMP error that quotes a test frame says why the DUT did not forward it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "frame/reader.hpp"

namespace evenhand::frame {

struct IcmpError {
    IpVersion version = IpVersion::v4;
    std::uint8_t type = 0;
    std::uint8_t code = 0;
    std::uint32_t mtu =
        0;  // packet too big: what the next hop takes; 0 for all other errors, and where the DUT does not say
    /// Addresses of the quoted packet, in network order, as pointers into the frame.
    IpVersion quoted_version = IpVersion::v4;
    const std::byte* source = nullptr;
    const std::byte* destination = nullptr;
    std::optional<Tag> tag;  // of the quoted frame, if so much of it is quoted
};

/// Reads ICMP errors (RFC 792, RFC 1191: destination unreachable, source quench, redirect, time exceeded, parameter
/// problem) and ICMPv6 errors (RFC 4443: types 1 to 4). Nothing for other frames, and for errors that quote anything
/// but a UDP packet, as test frames are. Never reads beyond `octets`, which excludes FCS and VLAN tags.
[[nodiscard]] std::optional<IcmpError> read_icmp_error(const std::byte* frame, std::size_t octets) noexcept;

}  // namespace evenhand::frame
