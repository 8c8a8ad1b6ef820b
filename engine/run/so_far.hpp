// SPDX-License-Identifier: Apache-2.0
// Station 6, tally, looked at while frames are sent: what a trial has sent, received and lost so far, for whoever
// watches it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "pace/clock.hpp"
#include "run/load.hpp"
#include "run/request.hpp"
#include "run/sent_until.hpp"
#include "run/worker_trial.hpp"
#include "tally/sequence_map.hpp"

namespace evenhand::run {

/// Reads what the workers publish, and the maps while receivers mark in them; it decides nothing, and no verdict
/// depends on it.
class SoFar {
   public:
    SoFar(const TrialRequest& request, const std::vector<std::unique_ptr<WorkerTrial>>& trials,
          const std::array<tally::SequenceMap, 2>& maps, const std::array<frame::TesterShare, 2>& shares,
          pace::Ticks start, double ticks_per_second) noexcept
        : request_{request},
          trials_{trials},
          maps_{maps},
          shares_{shares},
          start_{start},
          ticks_per_second_{ticks_per_second},
          had_left_{HadLeft{settles_after(request, ticks_per_second)},
                    HadLeft{settles_after(request, ticks_per_second)}} {}

    /// Of the time `now`; frames that are due after `sending_s` are not sent, since the trial ends earlier.
    void count(Progress& progress, pace::Ticks now, double sending_s) noexcept;

   private:
    [[nodiscard]] std::uint64_t settled(pace::Ticks now, double sending_s) const noexcept;

    const TrialRequest& request_;
    const std::vector<std::unique_ptr<WorkerTrial>>& trials_;
    const std::array<tally::SequenceMap, 2>& maps_;
    const std::array<frame::TesterShare, 2>& shares_;
    pace::Ticks start_;
    double ticks_per_second_;
    std::array<HadLeft, 2> had_left_;
    std::array<tally::MissingSoFar, 2> lost_{};
};

}  // namespace evenhand::run
