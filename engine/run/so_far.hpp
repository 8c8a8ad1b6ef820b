// SPDX-License-Identifier: Apache-2.0
// Station 6, tally, used while frames are sent: what a trial has sent, received and lost so far, for progress reports.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "pace/clock.hpp"
#include "plan/per_direction.hpp"
#include "run/direction_record.hpp"
#include "run/load.hpp"
#include "run/request.hpp"
#include "run/sent_until.hpp"
#include "run/worker_trial.hpp"
#include "tally/recent_latency.hpp"

namespace evenhand::run {

/// Reads what the workers publish, and the maps while receivers mark in them. It decides nothing, and no verdict
/// depends on it.
class SoFar {
   public:
    SoFar(const TrialRequest& request, const std::vector<std::unique_ptr<WorkerTrial>>& trials,
          const TrialRecords& records, pace::Ticks start, double ticks_per_second)
        : request_{request},
          loads_{by_direction(request)},
          trials_{trials},
          records_{records},
          start_{start},
          ticks_per_second_{ticks_per_second},
          had_left_{HadLeft{settles_after(request, ticks_per_second)},
                    HadLeft{settles_after(request, ticks_per_second)}},
          delays_read_at_{start} {}

    /// Counts what is known at `now`. Frames that are due after `sending_s` are not sent, since the trial ends earlier.
    void count(Progress& progress, pace::Ticks now, double sending_s);

   private:
    using RecentLatency = Progress::OfDirection::RecentLatency;

    [[nodiscard]] std::uint64_t settled(plan::Direction direction, pace::Ticks now, double sending_s) const noexcept;
    /// Reads the delays of the last moments about twice a second, as often as progress is reported.
    void read_delays(pace::Ticks now);
    [[nodiscard]] std::optional<RecentLatency> read_delays(plan::Direction direction);
    [[nodiscard]] std::vector<std::uint64_t> received_of_flows(plan::Direction direction) const;

    const TrialRequest& request_;
    plan::PerDirection<TrialRequest> loads_;
    const std::vector<std::unique_ptr<WorkerTrial>>& trials_;
    const TrialRecords& records_;
    pace::Ticks start_;
    double ticks_per_second_;
    plan::PerDirection<HadLeft> had_left_;
    plan::PerDirection<tally::MissingSoFar> lost_{};
    plan::PerDirection<tally::RecentLatency> recent_{};
    plan::PerDirection<std::optional<RecentLatency>> last_delays_{};
    pace::Ticks delays_read_at_;
    pace::Ticks reading_took_ = 0;
};

}  // namespace evenhand::run
