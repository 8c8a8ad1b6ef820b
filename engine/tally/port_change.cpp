// SPDX-License-Identifier: Apache-2.0
#include "tally/port_change.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace evenhand::tally {
namespace {

bool is_read(std::uint64_t before, std::uint64_t after) {
    return after >= before && is_count(before) && is_count(after);
}

}  // namespace

bool is_count(std::uint64_t value) noexcept {
    return value <= std::uint64_t{std::numeric_limits<std::int64_t>::max()} &&
           value != std::numeric_limits<std::uint32_t>::max();
}

PortChange change_of(const PortCounters& before, const PortCounters& after) {
    PortChange change;
    if (!before.is_read || !after.is_read) change.problem = "the driver did not report them";
    const auto of = [&](const char* name, std::uint64_t PortCounters::* counter) -> std::uint64_t {
        if (is_read(before.*counter, after.*counter)) return after.*counter - before.*counter;
        if (!change.problem)
            change.problem = fmt::format("{} went from {} to {}", name, before.*counter, after.*counter);
        return 0;
    };
    change.received_frames = of("received_frames", &PortCounters::received_frames);
    change.transmitted_frames = of("transmitted_frames", &PortCounters::transmitted_frames);
    change.receive_errors = of("receive_errors", &PortCounters::receive_errors);
    const auto ring_full = of("missed_frames", &PortCounters::missed_frames);
    const auto no_buffer = of("no_buffer_frames", &PortCounters::no_buffer_frames);
    change.dropped_answers = after.dropped_answers - std::min(before.dropped_answers, after.dropped_answers);
    // Each extended statistic is independent: if one cannot be read, the others are still used.
    if (is_read(before.pause_frames, after.pause_frames))
        change.pause_frames = after.pause_frames - before.pause_frames;
    if (change.problem) return change;
    const auto take = [&](std::uint64_t frames, const std::string& by) {
        if (frames == 0) return;
        change.missed_by += fmt::format("{}{} {}", change.missed_by.empty() ? "" : ", ", by, frames);
        change.missed_frames = std::max(change.missed_frames, frames);
    };
    take(ring_full, "imissed");
    take(no_buffer, "rx_nombuf");
    for (std::size_t i = 0; i < std::min(before.hidden_drops.size(), after.hidden_drops.size()); ++i) {
        const auto& drop = after.hidden_drops[i];
        if (drop.name == before.hidden_drops[i].name && is_read(before.hidden_drops[i].frames, drop.frames))
            take(drop.frames - before.hidden_drops[i].frames, drop.name);
    }
    if (before.seen_frames && after.seen_frames) {
        change.seen_frames = *after.seen_frames - std::min(*before.seen_frames, *after.seen_frames);
        // PAUSE and damaged frames may be in the port's count, but no receiver sees them.
        const std::uint64_t accounted = change.seen_frames + change.pause_frames + change.receive_errors;
        change.unseen_frames = change.received_frames - std::min(change.received_frames, accounted);
    }
    return change;
}

}  // namespace evenhand::tally
