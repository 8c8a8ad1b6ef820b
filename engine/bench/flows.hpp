// SPDX-License-Identifier: Apache-2.0
// Bench: 64 flows of one plan, each with a DSCP, and every other one with a port of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "frame/mix.hpp"

namespace evenhand::bench {

[[nodiscard]] inline frame::MixedPlans flows_of(std::size_t frame_size) {
    std::vector<frame::FrameClass> classes;
    std::vector<std::uint8_t> cycle;
    for (std::size_t c = 0; c < frame::FrameMix::most_classes; ++c) {
        classes.push_back({.frame_size = frame_size, .name = std::to_string(c)});
        classes.back().fields.dscp = static_cast<std::uint8_t>(c);
        if (c % 2 == 1) classes.back().fields.destination_port = static_cast<std::uint16_t>(2000 + c);
        cycle.push_back(static_cast<std::uint8_t>(c));
    }
    return {.mix = {classes, cycle}, .other_plan = {}};
}

}  // namespace evenhand::bench
