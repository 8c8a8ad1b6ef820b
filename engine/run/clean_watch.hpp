// SPDX-License-Identifier: Apache-2.0
// Station 6, looked at while frames are sent, and once more afterwards: which part of a trial is judged.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "pace/clock.hpp"
#include "run/load.hpp"
#include "run/request.hpp"
#include "run/worker_trial.hpp"
#include "tally/clean_time.hpp"
#include "tally/result.hpp"
#include "tally/sequence_map.hpp"
#include "witness/absence.hpp"

namespace evenhand::run {

/// Gathers the lapses of all loops and of the DUT's CPUs, and counts what is missing of the frames that are judged. For
/// one thread, of a tester alone.
class CleanWatch {
   public:
    /// The absences of the DUT's CPUs that matter, as far as they are known now, in any order.
    using Absences = std::function<std::vector<witness::Absence>()>;

    /// All of it outlives the watch.
    CleanWatch(const TrialRequest& request, const std::vector<std::unique_ptr<WorkerTrial>>& workers, Absences absences,
               pace::Ticks start, double ticks_per_second);

    /// While frames are sent. Does nothing where the last look was so long that looking would become work: this thread
    /// may have its CPU from the DUT, whose absences it looks for.
    /// `is_ending`: the sending would end by what the last look found, so that a look sooner is worth more.
    void look(pace::Ticks now, bool is_ending = false);
    /// When all loops have ended, which sent for `sent_s`.
    void end(double sent_s);

    /// By the last look: when the sending may end, in seconds since frame 0 was due.
    [[nodiscard]] double ends_at_s() const noexcept { return ends_at_s_; }
    /// The same for a trial that loses no more than it may behind its lapses either: it passes.
    [[nodiscard]] double ends_if_passed_s() const noexcept { return ends_if_passed_s_; }
    /// Whether it does, of the frames that were due before `settled_s`.
    [[nodiscard]] bool passes_behind_lapses(const std::array<tally::SequenceMap, 2>& maps, double settled_s) const;
    /// Whether more frames of all directions are missing, as far as they are judged, than a trial of the wanted length
    /// may lose. Of frames that were due before `settled_s`.
    [[nodiscard]] bool has_failed(const std::array<tally::SequenceMap, 2>& maps, double settled_s) const;

    /// Counts the frames of a direction before `last`, from where the last call ended; the map still holds them.
    void take(plan::Direction direction, const tally::SequenceMap& map, std::uint64_t last);
    /// What is judged: after end(), and when all frames of all directions were taken.
    struct Judged {
        tally::TrialResult::Clean time;
        std::array<tally::DirectionResult::Clean, 2> counts;  // by plan::Direction
    };
    /// By the time in which the DUT had caught up. If there is too little of that, by all time behind lapses, if no
    /// more was lost there than may be: an even load for a DUT that has more in its queues than an even load leaves
    /// there is the harder one, so that what passes then passes.
    [[nodiscard]] Judged judged() const;

   private:
    using FrameRanges = std::vector<std::pair<std::uint64_t, std::uint64_t>>;  // first and last + 1, in order
    struct Taken {
        std::uint64_t end = 0;
        tally::DirectionResult::Clean clean;
        tally::DirectionResult::Clean behind_lapses;
    };
    [[nodiscard]] FrameRanges frames_of_parts(std::span<const tally::LeftOut> parts) const;
    [[nodiscard]] tally::TrialResult::Clean time_without(const std::vector<tally::LeftOut>& parts) const;
    [[nodiscard]] std::uint64_t lost(const std::array<tally::SequenceMap, 2>& maps, double settled_s,
                                     tally::DirectionResult::Clean Taken::* counts, const FrameRanges& without) const;
    [[nodiscard]] double allowed_frames() const noexcept;
    [[nodiscard]] double seconds(pace::Ticks at) const noexcept {
        return static_cast<double>(static_cast<std::int64_t>(at - start_)) / ticks_per_second_;
    }
    void gather(double since_s);
    /// Of frames that were due before then.
    void find_left_out(double known_until_s);
    [[nodiscard]] double greatest_delay_s() const noexcept;
    /// Those of the frames first .. last-1 that are not in these ranges.
    [[nodiscard]] static tally::DirectionResult::Clean count(const tally::SequenceMap& map, std::uint64_t first,
                                                             std::uint64_t last, const FrameRanges& without);

    const TrialRequest& request_;
    const std::vector<std::unique_ptr<WorkerTrial>>& workers_;
    Absences absences_;
    pace::Ticks start_;
    double ticks_per_second_;
    tally::CleanTime clean_;
    std::vector<std::pair<const LapseLog*, tally::LapseKind>> logs_;
    std::vector<std::size_t> gathered_;  // of each log
    FrameRanges left_out_;
    FrameRanges lapsed_;
    std::array<Taken, 2> taken_{};  // by direction
    pace::Ticks looked_at_ = 0;
    pace::Ticks look_took_ = 0;
    double ends_at_s_ = 0;
    double ends_if_passed_s_ = 0;
    double sent_s_ = 0;
};

}  // namespace evenhand::run
