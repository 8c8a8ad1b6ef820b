// SPDX-License-Identifier: Apache-2.0
// Stations 3 to 5: what each worker sends and expects in a trial, chosen before the start.
#pragma once

#include <memory>
#include <vector>

#include "run/direction_record.hpp"
#include "run/tester.hpp"
#include "run/timeline.hpp"

namespace evenhand::run {

/// One for each worker, in their order. Senders are made from what is sent in their direction, expectations from what
/// arrives there. `records` outlive them.
[[nodiscard]] std::vector<std::unique_ptr<WorkerTrial>> make_worker_trials(Tester& tester, const TrialRequest& request,
                                                                           const Timeline& time,
                                                                           double ticks_per_second,
                                                                           TrialRecords& records);

}  // namespace evenhand::run
