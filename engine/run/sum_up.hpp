// SPDX-License-Identifier: Apache-2.0
// Station 6, tally: what the workers counted in a trial becomes the result of a direction.
#pragma once

#include <memory>
#include <vector>

#include "run/direction_record.hpp"
#include "run/tester.hpp"

namespace evenhand::run {

/// The result of one direction, when its trial is over.
///
/// Completes `record`: frames of the map that were never sent are marked in it, and the losses are taken to the end.
/// `start`: when frame 0 was due. `sending_s`: for how long frames were to be sent in the end.
[[nodiscard]] tally::DirectionResult sum_up(const Tester& tester, const TrialRequest& request,
                                            plan::Direction direction,
                                            const std::vector<std::unique_ptr<WorkerTrial>>& trials,
                                            DirectionRecord& record, Ticks start, double ticks_per_second,
                                            double sending_s, unsigned ring_frames);

}  // namespace evenhand::run
