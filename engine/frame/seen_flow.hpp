// SPDX-License-Identifier: Apache-2.0
// Station 5, seen from the frame: the addresses and ports of one frame as it arrived, to show people what the DUT made
// of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "frame/layout.hpp"
#include "plan/address.hpp"

namespace evenhand::frame {

struct SeenFlow {
    std::uint64_t sequence = 0;  // number of the frame
    plan::IpAddress source;
    plan::IpAddress destination;
    std::uint16_t source_port = 0;
    std::uint16_t destination_port = 0;

    friend bool operator==(const SeenFlow&, const SeenFlow&) = default;
};

/// Reads a sound frame without VLAN tags.
[[nodiscard]] inline SeenFlow flow_of(const std::byte* frame, IpVersion version, std::uint64_t sequence) noexcept {
    const bool is_v4 = version == IpVersion::v4;
    const auto read = [&](std::size_t offset) {
        plan::IpAddress address{.version = version, .octets = {}};
        std::memcpy(address.octets.data(), frame + offset, plan::address_octets(version));
        return address;
    };
    const std::size_t ports = is_v4 ? Layout<IpVersion::v4>::udp : Layout<IpVersion::v6>::udp;
    return {.sequence = sequence,
            .source = read(is_v4 ? Layout<IpVersion::v4>::source : Layout<IpVersion::v6>::source),
            .destination = read(is_v4 ? Layout<IpVersion::v4>::destination : Layout<IpVersion::v6>::destination),
            .source_port = big(load<std::uint16_t>(frame + ports)),
            .destination_port = big(load<std::uint16_t>(frame + ports + 2))};
}

}  // namespace evenhand::frame
