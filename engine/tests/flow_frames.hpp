// SPDX-License-Identifier: Apache-2.0
// For tests of flows: mixes whose classes are flows, and their frames, made without the code that is tested.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mix_rig.hpp"
#include "octets.hpp"

namespace evenhand::tests {

/// 64 flows, or fewer: each DSCP once, a port of its own for every other one.
[[nodiscard]] inline frame::MixedPlans flows_of(std::size_t count, std::size_t frame_size, IpVersion version,
                                                bool has_sizes = false) {
    std::vector<frame::FrameClass> classes;
    std::vector<std::uint8_t> cycle;
    for (std::size_t c = 0; c < count; ++c) {
        frame::FrameClass of{.frame_size = frame_size + (has_sizes ? 3 * c : 0), .name = "flow " + std::to_string(c)};
        of.fields.traffic_class = static_cast<std::uint8_t>(4 * (c % 64) + (3 * c + 1) % 4);
        if (version == IpVersion::v6) of.fields.flow_label = static_cast<std::uint32_t>(0xFFFFF - c);
        of.fields.vlan_priority = static_cast<std::uint8_t>(c % 8);
        if (c % 2 == 1) of.fields.destination_port = static_cast<std::uint16_t>(2000 + c);
        if (c % 4 == 3) of.fields.source_port = static_cast<std::uint16_t>(65535 - c);
        classes.push_back(of);
        for (std::size_t n = 0; n <= c % 3; ++n) cycle.push_back(static_cast<std::uint8_t>(c));
    }
    return {.mix = {classes, cycle}, .other_plan = {}};
}

/// Frame k, made without the code that is tested: as the plan has it, field after field written over, and both sums
/// computed anew.
template <IpVersion V>
[[nodiscard]] Octets by_hand(const plan::AddressPlan& p, const frame::MixedPlans& mixed, std::uint64_t k) {
    using L = frame::Layout<V>;
    const auto& c = mixed.mix.classes()[mixed.mix.class_of(k)];
    Octets octets(c.frame_size - frame::fcs_octets);
    frame::write_pattern(V, octets);
    const auto shape = frame::make_template(
        p, c.frame_size, {.direction = Direction::forward, .stream = 0, .trial = trial}, left_mac, dut_mac);
    std::byte* const at = octets.data();
    frame::TestFrameSource{shape, plan::FlowDraw{p, Direction::forward, 1}, {.first = k, .stride = 1}}.write_next(
        {&at, 1}, 7);
    if constexpr (V == IpVersion::v4) {
        octets[L::ip + 1] = std::byte{c.fields.traffic_class};
        octets[L::ip + 10] = octets[L::ip + 11] = std::byte{0};
        const auto sum = frame::fold(frame::sum_octets(at + L::ip, L::ip_octets));
        frame::store(at + L::ip + 10, static_cast<std::uint16_t>(~sum));
    } else {
        const std::uint32_t word = 6U << 28U | std::uint32_t{c.fields.traffic_class} << 20U | c.fields.flow_label;
        for (unsigned i = 0; i < 4; ++i) octets[L::ip + i] = static_cast<std::byte>(word >> (24 - 8 * i));
    }
    const auto put_port = [&](std::size_t where, std::optional<std::uint16_t> port) {
        if (port) frame::store(at + where, frame::big(*port));
    };
    put_port(L::udp, c.fields.source_port);
    put_port(L::udp + 2, c.fields.destination_port);
    octets[L::udp_checksum] = octets[L::udp_checksum + 1] = std::byte{0};
    const auto udp = frame::fold(frame::sum_octets(at + L::source, octets.size() - L::source) +
                                 frame::pseudo_header_sum(frame::protocol_udp, octets.size() - L::udp));
    const auto inverted = static_cast<std::uint16_t>(~udp);
    frame::store(at + L::udp_checksum, inverted == 0 ? std::uint16_t{0xFFFF} : inverted);
    return octets;
}

}  // namespace evenhand::tests
