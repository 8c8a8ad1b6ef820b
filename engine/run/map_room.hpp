// SPDX-License-Identifier: Apache-2.0
// Station 6, used while frames are sent: makes room for the next frames in the record of a long trial.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "run/clean_watch.hpp"
#include "run/direction_record.hpp"
#include "run/load.hpp"
#include "run/request.hpp"
#include "run/sent_until.hpp"

namespace evenhand::run {

/// Settles the maps of a trial according to what was sent, not to what was due: a port that is slower than the schedule
/// by some ppm sends a day's frames seconds later, when the schedule would already have given them up.
class MapRoom {
   public:
    /// All of these outlive it. `clean`: null where the trial is not judged by its clean time.
    MapRoom(const TrialRequest& request, const std::vector<std::unique_ptr<WorkerTrial>>& trials, TrialRecords& records,
            CleanWatch* clean = nullptr)
        : request_{request}, loads_{by_direction(request)}, trials_{trials}, records_{records}, clean_{clean} {}

    /// To be called by one thread, some times a second.
    void make() {
        for (const auto direction : request_.directions) {
            auto& record = records_[direction];
            const auto tenth_end = [&](std::uint64_t tenths) {
                return record.share.count(frames_in_tenths(loads_[direction], tenths));
            };
            record.map.settle(sent_until(trials_, direction), [&](std::uint64_t last) {
                record.losses.take_arrivals(record.map, last);
                record.losses.take_missing(record.map, last, tenth_end);
                if (clean_ != nullptr) clean_->take(direction, record.map, last);
            });
        }
    }

   private:
    const TrialRequest& request_;
    plan::PerDirection<TrialRequest> loads_;
    const std::vector<std::unique_ptr<WorkerTrial>>& trials_;
    TrialRecords& records_;
    CleanWatch* clean_;
};

}  // namespace evenhand::run
