// SPDX-License-Identifier: Apache-2.0
// Stations 3 to 6, used while frames are sent: what the session observes of a trial, reports, and changes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "run/clean_watch.hpp"
#include "run/direction_record.hpp"
#include "run/early_stop.hpp"
#include "run/map_room.hpp"
#include "run/request.hpp"
#include "run/so_far.hpp"
#include "run/timeline.hpp"
#include "run/worker_trial.hpp"
#include "tally/result.hpp"

namespace evenhand::run {

/// Used by the session's thread some times a second, from the start of the workers to their end. Ends the sending early
/// where the request asks for that.
class TrialWatch {
   public:
    /// The parts of the trial that the watch needs. All of them outlive it. It settles the maps of `records`, moves the
    /// ends in `time`, and notes the start and an early end in `result`.
    struct Parts {
        const TrialRequest& request;
        const std::vector<std::unique_ptr<WorkerTrial>>& workers;
        TrialRecords& records;
        Timeline& time;
        tally::TrialResult& result;
        double ticks_per_second;
        CleanWatch* clean;  // null where the trial is not judged by its clean time
    };

    TrialWatch(const Parts& trial, TrialObserver& observer);

    /// Puts what has been counted so far into the progress.
    void count(Progress& progress);
    /// Whether sending is over, at its end or early.
    [[nodiscard]] bool is_sent();
    /// Notes when frame 0 was really due, where the request gives a time of day. Only the first call after the start
    /// has an effect.
    void note_start();

   private:
    /// The number of frames of each direction to which the trial is to be shortened; nothing if it goes on.
    [[nodiscard]] std::optional<std::uint64_t> early_end(Ticks now);
    [[nodiscard]] std::optional<std::uint64_t> early_end_of_clean(Ticks now, const EarlyStop::SentUntil& sent);
    [[nodiscard]] double ends_if_judged_s(Ticks now, double notice_s);
    /// Ends the sending of a trial that is judged by its clean time when there is enough of that.
    void end_when_clean(Ticks now);
    [[nodiscard]] double passed_s(Ticks now) const noexcept;
    /// Puts what is left out into the progress.
    void note_left_out(Progress& progress, Ticks now) const;
    /// Has each direction send that many frames in all.
    void end_after(std::uint64_t frames);

    Parts trial_;
    TrialObserver& observer_;
    SoFar so_far_;
    MapRoom room_;
    EarlyStop early_;
    std::optional<Progress::Failing> failing_;
    bool is_end_told_ = false;
    Ticks next_count_ = 0;  // when losses in clean time may be counted again
};

}  // namespace evenhand::run
