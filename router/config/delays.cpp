// SPDX-License-Identifier: Apache-2.0
#include "config/delays.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "units.hpp"

namespace evenhand::router {
namespace {

using contract::ObjectReader;

constexpr double longest_us = 10e6;

StallConfig read_stall(ObjectReader r) {
    constexpr double longest_ms = 10e3;
    StallConfig stall;
    stall.every_ms = r.number("every_ms", 0, longest_ms, true);
    stall.for_ms = r.number("for_ms", 0, longest_ms, true);
    if (stall.for_ms >= stall.every_ms)
        r.refuse("for_ms", fmt::format("a stall of {} ms every {} ms", stall.for_ms, stall.every_ms),
                 "Make it shorter, or rarer.");
    stall.queue_frames = r.whole("queue_frames", 0, largest_ring);
    r.finish();
    return stall;
}

/// Frames per second that come out of the elements, or that the user expects to arrive.
struct DelayedLoad {
    double of_port = 0;
    double in_total = 0;
};

DelayedLoad delayed_load(const RouterConfig& config) {
    const auto ports = static_cast<double>(config.ports.size());
    if (config.delayed_load_fps)
        return {.of_port = *config.delayed_load_fps, .in_total = *config.delayed_load_fps * ports};
    if (!config.model) return {.of_port = usual_delayed_load_fps, .in_total = usual_delayed_load_fps * ports};
    const auto& elements = config.model->elements;
    const double served = static_cast<double>(elements.count) * elements.rate_fps;
    return {.of_port = served, .in_total = served};  // all of them may have arrived on one port
}

}  // namespace

void read_delays(ObjectReader& r, RouterConfig& config) {
    constexpr double largest_fps = 1e9;
    if (r.has("extra_delay_us")) config.extra_delay_us = r.number("extra_delay_us", 0, longest_us);
    if (r.has("longer_delay")) {
        auto longer = r.object("longer_delay");
        config.longer_delay = {.every = longer.whole("every", 1, std::numeric_limits<std::uint32_t>::max()),
                               .us = longer.number("us", 0, longest_us)};
        longer.finish();
    }
    if (r.has("delayed_load_fps")) config.delayed_load_fps = r.number("delayed_load_fps", 0, largest_fps, true);
    if (r.has("stall")) config.stall = read_stall(r.object("stall"));
    if (r.has("overdue_after_us")) config.overdue_after_us = r.number("overdue_after_us", 0, longest_us, true);
}

Room room_of(const RouterConfig& config) {
    const auto& longer = config.longer_delay;
    const double mean_delay_us =
        config.extra_delay_us + (longer.every == 0 ? 0 : longer.us / static_cast<double>(longer.every));
    const auto under_way = [&](double fps) {
        return static_cast<std::size_t>(std::ceil(fps * mean_delay_us / us_per_second));
    };
    const std::size_t served =
        config.model ? config.model->elements.count * (config.model->elements.queue_frames + 2) : 0;
    const DelayedLoad load = delayed_load(config);
    return {.of_port = served + under_way(load.of_port) + config.stall.queue_frames + largest_ring,
            .in_total =
                served + under_way(load.in_total) + config.ports.size() * (config.stall.queue_frames + largest_ring)};
}

}  // namespace evenhand::router
