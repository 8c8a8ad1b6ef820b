// SPDX-License-Identifier: Apache-2.0
// Station 6, tally: what the workers counted in a trial becomes the result of a direction.
#pragma once

#include <memory>
#include <vector>

#include "run/tester.hpp"
#include "tally/losses.hpp"

namespace evenhand::run {

/// Of one direction, after its trial.
///
/// `map`: of the frames that came; of what it holds, frames that never left are marked here. `losses`: of what the map
/// has settled. `tracks`: nothing where delays were not asked for. `start`: when frame 0 was due. `sending_s`: how long
/// frames were to be sent at last.
[[nodiscard]] tally::DirectionResult sum_up(const Tester& tester, const TrialRequest& request,
                                            plan::Direction direction,
                                            const std::vector<std::unique_ptr<WorkerTrial>>& trials,
                                            tally::SequenceMap& map, tally::Losses& losses,
                                            const tally::DelayTracks* tracks, Ticks start, double ticks_per_second,
                                            double sending_s);

}  // namespace evenhand::run
