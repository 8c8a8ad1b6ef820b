// SPDX-License-Identifier: Apache-2.0
// Stations 3 to 5: what each worker sends and expects in a trial, chosen before the start.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "run/tester.hpp"
#include "run/timeline.hpp"
#include "tally/delays.hpp"
#include "tally/sequence_map.hpp"
#include "tally/stream_order.hpp"

namespace evenhand::run {

/// What the receivers of a direction write together. By plan::Direction; outlives the trial.
struct TrialRecords {
    std::array<tally::SequenceMap, 2> maps;
    std::array<tally::StreamOrder, 2> orders;
    std::array<std::optional<tally::DelayTracks>, 2> delays;
};

/// By worker. Senders are made from what is sent in their direction, expectations from what arrives there.
[[nodiscard]] std::vector<std::unique_ptr<WorkerTrial>> make_worker_trials(Tester& tester, const TrialRequest& request,
                                                                           const Timeline& time,
                                                                           double ticks_per_second,
                                                                           TrialRecords& records);

}  // namespace evenhand::run
