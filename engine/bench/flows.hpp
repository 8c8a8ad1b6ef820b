// SPDX-License-Identifier: Apache-2.0
// Bench: mixes. 64 flows of one plan, each with a DSCP, and every other one with a port of its own; three sizes; both
// IP versions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "frame/mix.hpp"
#include "gateway_plan.hpp"

namespace evenhand::bench {

[[nodiscard]] inline frame::MixedPlans flows_of(std::size_t frame_size) {
    std::vector<frame::FrameClass> classes;
    std::vector<std::uint8_t> cycle;
    for (std::size_t c = 0; c < frame::FrameMix::most_classes; ++c) {
        classes.push_back({.frame_size = frame_size, .name = std::to_string(c)});
        classes.back().fields.traffic_class = static_cast<std::uint8_t>(4 * c);
        if (c % 2 == 1) classes.back().fields.destination_port = static_cast<std::uint16_t>(2000 + c);
        cycle.push_back(static_cast<std::uint8_t>(c));
    }
    return {.mix = {classes, cycle}, .other_plan = {}};
}

/// Seven small frames to four of 594 octets and one of 1,518: 362 octets in the mean, with `smallest` of 64.
[[nodiscard]] inline frame::MixedPlans sizes_of(std::size_t smallest) {
    return {.mix = {{{.frame_size = smallest}, {.frame_size = 594}, {.frame_size = 1518}},
                    {0, 1, 0, 0, 1, 0, 2, 0, 1, 0, 0, 1}},
            .other_plan = {}};
}

/// Frames of one size, half of them of the other IP version.
[[nodiscard]] inline frame::MixedPlans both_versions(plan::IpVersion first, std::size_t frame_size) {
    const auto other = first == plan::IpVersion::v4 ? plan::IpVersion::v6 : plan::IpVersion::v4;
    return {
        .mix = {{{.plan = 0, .frame_size = frame_size}, {.plan = 1, .frame_size = frame_size}}, {0, 1}},
        .other_plan = gateway_plan(other),
    };
}

}  // namespace evenhand::bench
