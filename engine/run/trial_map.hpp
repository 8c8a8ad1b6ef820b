// SPDX-License-Identifier: Apache-2.0
// Station 6: the sequence map of a direction, and how the workers that receive it share it.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "plan/plan.hpp"
#include "run/load.hpp"
#include "run/memory.hpp"
#include "run/request.hpp"
#include "run/worker_trial.hpp"
#include "tally/sequence_map.hpp"

namespace evenhand::run {

class Tester;

/// How many of the first `workers` workers receive on this side. For the next worker this is its place among the
/// receiving workers, and the number of its part of the map.
[[nodiscard]] inline unsigned receiving_workers_before(const OpenRequest& request, plan::Side side,
                                                       std::size_t workers) {
    const auto receives = [&](const WorkerRequest& worker) {
        return std::ranges::any_of(worker.receivers, [&](const auto& queue) { return queue.side == side; });
    };
    return static_cast<unsigned>(std::ranges::count_if(std::span{request.workers}.first(workers), receives));
}

/// How many frames the map of a direction holds, unless the trial has fewer. A frame may be held up by at least 3.8 s,
/// almost twice as long as RFC 2544 has a tester wait, or by as long as this request waits, if that is longer.
/// `of_direction`: see of_direction().
[[nodiscard]] inline std::uint64_t held_frames(const TrialRequest& of_direction) {
    constexpr double least_s = 3.8;
    return tally::SequenceMap::held_for(std::max(least_s, settles_after_s(of_direction)) * peak_fps(of_direction));
}

/// Workers that count bursts have parts of their own, so that cores do not wait for each other. If frames are recorded
/// in more detail than a count and a delay in the histogram, receivers share the map, since each must know at once that
/// another one had the frame before. Throws std::bad_alloc.
[[nodiscard]] tally::SequenceMap make_map(const Tester& tester, const TrialRequest& request, plan::Direction direction);

/// How much memory the maps of a trial need.
struct MapMemory {
    std::uint64_t frames = 0;  // of a direction
    std::uint64_t octets = 0;
    unsigned most_parts = 1;
};
[[nodiscard]] MapMemory map_memory(const Tester& tester, const TrialRequest& request);

/// Throws Fault{no_memory} if that is more than what is available.
inline void check_map_memory(const MapMemory& needed, std::uint64_t available_octets) {
    check_fits(fmt::format("the record of {} frames a direction", needed.frames), needed.octets, available_octets,
               "trial",
               fmt::format("Shorten the trial, lower the rate{}, or end other programs.",
                           needed.most_parts > 1 ? ", receive on fewer CPUs" : ""));
}

/// Brings the parts of a map together, after the trial. A frame that came to several workers is a duplicate in all but
/// the first of them. It is not known which of a worker's queues it came to: it is taken from the first of them.
inline void take_back_copies(const std::vector<std::unique_ptr<WorkerTrial>>& trials, plan::Direction direction,
                             tally::SequenceMap& map) noexcept {
    map.bring_together();
    for (const auto& trial : trials) {
        std::uint64_t taken = 0;
        for (const auto& reception : trial->receptions) {
            if (reception.direction == direction)
                taken += reception.tally->take_back(map.copies(reception.part) - taken);
        }
    }
}

}  // namespace evenhand::run
