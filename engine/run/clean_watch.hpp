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

    /// While frames are sent. Some milliseconds of each look at the most: it does nothing where the last one was so
    /// long that looking would become work.
    void look(pace::Ticks now);
    /// When all loops have ended, which sent for `sent_s`.
    void end(double sent_s);

    /// By the last look: when the sending may end, in seconds since frame 0 was due.
    [[nodiscard]] double ends_at_s() const noexcept { return ends_at_s_; }
    /// Whether more frames of all directions are missing, as far as they are judged, than a trial of the wanted length
    /// may lose. Of frames that were due before `settled_s`.
    [[nodiscard]] bool has_failed(const std::array<tally::SequenceMap, 2>& maps, double settled_s) const;

    /// Counts the frames of a direction before `last`, from where the last call ended; the map still holds them.
    void take(plan::Direction direction, const tally::SequenceMap& map, std::uint64_t last);
    /// Of all that was taken.
    [[nodiscard]] tally::DirectionResult::Clean counts(plan::Direction direction) const noexcept {
        return taken_[static_cast<std::size_t>(direction)].counts;
    }
    /// After end().
    [[nodiscard]] tally::TrialResult::Clean result() const;

   private:
    struct Taken {
        std::uint64_t end = 0;
        tally::DirectionResult::Clean counts;
    };
    [[nodiscard]] double seconds(pace::Ticks at) const noexcept {
        return static_cast<double>(static_cast<std::int64_t>(at - start_)) / ticks_per_second_;
    }
    void gather(double since_s);
    /// Of frames that were due before then.
    void find_left_out(double known_until_s);
    [[nodiscard]] double greatest_delay_s() const noexcept;
    /// Those of the frames first .. last-1 that are judged.
    [[nodiscard]] tally::DirectionResult::Clean count(const tally::SequenceMap& map, std::uint64_t first,
                                                      std::uint64_t last) const;

    const TrialRequest& request_;
    const std::vector<std::unique_ptr<WorkerTrial>>& workers_;
    Absences absences_;
    pace::Ticks start_;
    double ticks_per_second_;
    tally::CleanTime clean_;
    std::vector<std::pair<const LapseLog*, tally::LapseKind>> logs_;
    std::vector<std::size_t> gathered_;                              // of each log
    std::vector<std::pair<std::uint64_t, std::uint64_t>> left_out_;  // first and last + 1 of frames, in order
    std::array<Taken, 2> taken_{};                                   // by direction
    pace::Ticks next_look_ = 0;
    double ends_at_s_ = 0;
    double sent_s_ = 0;
};

}  // namespace evenhand::run
