// SPDX-License-Identifier: Apache-2.0
// Stations 3 to 6, looked at while frames are sent: what the session sees of a trial, tells, and changes.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "frame/share.hpp"
#include "run/clean_watch.hpp"
#include "run/early_stop.hpp"
#include "run/map_room.hpp"
#include "run/request.hpp"
#include "run/so_far.hpp"
#include "run/timeline.hpp"
#include "run/worker_trial.hpp"
#include "tally/losses.hpp"
#include "tally/result.hpp"
#include "tally/sequence_map.hpp"

namespace evenhand::run {

/// From the start of the workers to their end, some times a second, for the session's thread. Ends the sending early
/// where that is asked for.
class TrialWatch {
   public:
    /// What a trial consists of; by plan::Direction where there are two. All of it outlives the watch, which settles
    /// `maps`, moves the ends in `time`, and notes the start and an early end in `result`.
    struct Trial {
        const TrialRequest& request;
        const std::vector<std::unique_ptr<WorkerTrial>>& workers;
        std::array<tally::SequenceMap, 2>& maps;
        std::array<tally::Losses, 2>& losses;
        const std::array<frame::TesterShare, 2>& shares;
        Timeline& time;
        tally::TrialResult& result;
        double ticks_per_second;
        CleanWatch* clean;  // where it is judged by its clean time
    };

    TrialWatch(const Trial& trial, TrialObserver& observer) noexcept;

    /// Puts what has been counted so far into the progress.
    void count(Progress& progress);
    /// Whether sending is over, be it early.
    [[nodiscard]] bool is_sent();
    /// When frame 0 was really due, where that was asked for by the time of day; the first call after it counts.
    void note_start();

   private:
    /// The frames of each direction to which the trial is to be shortened, if it is.
    [[nodiscard]] std::optional<std::uint64_t> early_end(Ticks now);
    [[nodiscard]] std::optional<std::uint64_t> early_end_of_clean(Ticks now, const EarlyStop::SentUntil& sent);
    [[nodiscard]] bool passes_behind_lapses(Ticks now, double notice_s);
    /// The sending of a trial that is judged by its clean time ends when there is enough of it.
    void end_when_clean(Ticks now);
    [[nodiscard]] double passed_s(Ticks now) const noexcept;
    /// Of each direction so many frames are sent.
    void end_after(std::uint64_t frames);

    Trial trial_;
    TrialObserver& observer_;
    SoFar so_far_;
    MapRoom room_;
    EarlyStop early_;
    std::optional<Progress::Failing> failing_;
    bool is_end_told_ = false;
    Ticks next_count_ = 0;  // of what is lost in clean time
};

}  // namespace evenhand::run
