// SPDX-License-Identifier: Apache-2.0
// Station 6, looked at while frames are sent: room in the record of a long trial for what comes next.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "frame/share.hpp"
#include "run/clean_watch.hpp"
#include "run/load.hpp"
#include "run/request.hpp"
#include "run/sent_until.hpp"
#include "tally/losses.hpp"
#include "tally/sequence_map.hpp"

namespace evenhand::run {

/// Settles the maps of a trial by what has left, and not by what is due: a port that is slower than the schedule by
/// some ppm has a day's frames seconds later, when the schedule would have given them up.
class MapRoom {
   public:
    /// By direction; `shares` are the tester's own frames, by whose places the maps count. All outlive it.
    MapRoom(const TrialRequest& request, const std::vector<std::unique_ptr<WorkerTrial>>& trials,
            std::array<tally::SequenceMap, 2>& maps, std::array<tally::Losses, 2>& losses,
            const std::array<frame::TesterShare, 2>& shares, CleanWatch* clean = nullptr) noexcept
        : request_{request}, trials_{trials}, maps_{maps}, losses_{losses}, shares_{shares}, clean_{clean} {}

    /// Some times a second, for one thread.
    void make() {
        for (const auto direction : request_.directions) {
            const auto i = static_cast<std::size_t>(direction);
            const auto tenth_end = [&](std::uint64_t tenths) {
                return shares_[i].count(frames_in_tenths(request_, tenths));
            };
            maps_[i].settle(sent_until(trials_, direction), [&](std::uint64_t last) {
                losses_[i].take_arrivals(maps_[i], last);
                losses_[i].take_missing(maps_[i], last, tenth_end);
                if (clean_ != nullptr) clean_->take(direction, maps_[i], last);
            });
        }
    }

   private:
    const TrialRequest& request_;
    const std::vector<std::unique_ptr<WorkerTrial>>& trials_;
    std::array<tally::SequenceMap, 2>& maps_;
    std::array<tally::Losses, 2>& losses_;
    const std::array<frame::TesterShare, 2>& shares_;
    CleanWatch* clean_;
};

}  // namespace evenhand::run
