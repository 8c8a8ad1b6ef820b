// SPDX-License-Identifier: Apache-2.0
#include "run/trial_map.hpp"

#include <algorithm>

#include "run/tester.hpp"

namespace evenhand::run {
namespace {

using plan::Direction;
using tally::SequenceMap;

unsigned receiving_workers(const Tester& tester, Direction direction) {
    const auto& open = tester.request();
    return receiving_workers_before(open, plan::receiving_side(direction), open.workers.size());
}

unsigned parts_of(const Tester& tester, const TrialRequest& request, Direction direction) {
    const auto& plan = tester.plan(0);
    const bool is_counted_alone = request.delays || tester.has_mix() || plan.has_state || plan.is_translated();
    return is_counted_alone ? 1 : receiving_workers(tester, direction);
}

}  // namespace

SequenceMap make_map(const Tester& tester, const TrialRequest& request, Direction direction) {
    const auto own = of_direction(request, direction);
    const auto frames = tester.share(request, direction).count(frames_of(own));
    const unsigned parts = parts_of(tester, request, direction);
    if (parts > 1) return SequenceMap::apart(frames, parts, held_frames(own));
    return {frames, receiving_workers(tester, direction) > 1, held_frames(own)};
}

MapMemory map_memory(const Tester& tester, const TrialRequest& request) {
    MapMemory needed{.frames = frames_of(request)};
    for (const auto direction : request.directions) {
        const unsigned parts = parts_of(tester, request, direction);
        const auto own = of_direction(request, direction);
        const auto frames = tester.share(request, direction).count(frames_of(own));
        needed.octets += SequenceMap::octets(frames, parts, held_frames(own));
        needed.most_parts = std::max(needed.most_parts, parts);
    }
    return needed;
}

}  // namespace evenhand::run
