// SPDX-License-Identifier: Apache-2.0
// Station 6, used while frames are sent and once more afterwards: determines which part of a trial is judged.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "pace/clock.hpp"
#include "plan/per_direction.hpp"
#include "run/direction_record.hpp"
#include "run/flow_limits.hpp"
#include "run/load.hpp"
#include "run/request.hpp"
#include "run/worker_trial.hpp"
#include "tally/clean_time.hpp"
#include "tally/result.hpp"
#include "tally/sequence_map.hpp"
#include "tally/steady_loss.hpp"
#include "witness/absence.hpp"

namespace evenhand::run {

/// Gathers the lapses of all loops and of the DUT's CPUs, and counts the missing ones of the frames that are judged.
/// Used by one thread, for a tester that is alone.
class CleanWatch {
   public:
    /// Returns the absences of the DUT's CPUs that matter, as far as they are known now, in any order.
    using Absences = std::function<std::vector<witness::Absence>()>;

    /// What a trial that passes may be judged without, where too little of it is without the parts in which the DUT had
    /// not caught up: its lapses alone, or also the time after each of them in which the DUT's queue may be full.
    enum class Outside : std::uint8_t { lapses, strain };
    static constexpr std::array both_outside{Outside::lapses, Outside::strain};

    /// All arguments outlive the watch; `mixes`: those of FlowLimits.
    CleanWatch(const TrialRequest& request, const std::vector<std::unique_ptr<WorkerTrial>>& workers, Absences absences,
               pace::Ticks start, double ticks_per_second, const FlowLimits::Mixes& mixes = {});

    /// To be called while frames are sent. Does nothing if the last look took so long that looking would take too large
    /// a share of time: this thread may run on a CPU of the DUT, whose absences it looks for. `is_ending`: the sending
    /// would end according to the last look, so that it is worth looking sooner.
    void look(pace::Ticks now, bool is_ending = false);
    /// To be called when all loops have ended; they sent for `sent_s`.
    void end(double sent_s);

    /// The parts that the last look left out, in order.
    [[nodiscard]] const std::vector<tally::LeftOut>& left_out() const noexcept { return clean_.left_out(); }
    /// According to the last look: when the sending may end, in seconds since frame 0 was due.
    [[nodiscard]] double ends_at_s() const noexcept { return ends_at_s_; }
    /// The same if the trial is judged outside these parts: since it passes there, or loses frames there all the time.
    [[nodiscard]] double ends_if_judged_s(Outside outside) const noexcept { return passing(outside).ends_at_s; }
    /// Whether it does, among the frames that were due before `settled_s`.
    [[nodiscard]] bool passes(Outside outside, const TrialRecords& records, double settled_s) const;
    /// Whether more of the judged frames of all directions are missing than a trial of the wanted length may lose, in
    /// all or of a flow with a limit of its own, among the frames that were due before `settled_s`.
    [[nodiscard]] bool has_failed(const TrialRecords& records, double settled_s) const;

    /// Whether frames are lost all the time outside lapses, among those that were due before `settled_s`: then the DUT
    /// is overloaded, whether or not it has caught up.
    [[nodiscard]] bool loses_steadily(const TrialRecords& records, double settled_s);

    /// Counts the frames of a direction below `last`, from where the last call ended; the map still holds them.
    void take(plan::Direction direction, const tally::SequenceMap& map, std::uint64_t last);
    /// What is judged. Valid after end(), when all frames of all directions were taken.
    struct Judged {
        tally::TrialResult::Clean time;
        plan::PerDirection<JudgedFrames> counts;
    };
    /// Judged is the time in which the DUT had caught up. If that is too little, all time outside lapses, or outside
    /// lapses and strain, is judged if no more was lost there than may be: an even load is harder for a DUT that has
    /// more frames in its queues than an even load leaves there, so that a pass there is a pass. The former is judged,
    /// too, if frames are lost there all the time.
    [[nodiscard]] Judged judged() const;

   private:
    using FrameRanges = std::vector<std::pair<std::uint64_t, std::uint64_t>>;  // first and last + 1, in order
    using RangesByDirection = plan::PerDirection<FrameRanges>;
    struct Taken {
        std::uint64_t end = 0;
        JudgedFrames clean;
        std::array<JudgedFrames, both_outside.size()> outside;  // by place_of()
    };
    struct Passing {
        RangesByDirection without;
        double ends_at_s = 0;
    };
    [[nodiscard]] RangesByDirection frames_of_parts(std::span<const tally::LeftOut> parts) const;
    [[nodiscard]] tally::TrialResult::Clean time_without(const std::vector<tally::LeftOut>& parts) const;
    /// Whether more is lost outside these ranges than a trial of the wanted length may lose. `counts_of`: the counts of
    /// frames that were taken from there.
    template <class CountsOf>
    [[nodiscard]] bool is_too_much_lost(const TrialRecords& records, double settled_s, CountsOf counts_of,
                                        const RangesByDirection& without) const;
    [[nodiscard]] const std::vector<tally::LeftOut>& parts(Outside outside) const noexcept {
        return outside == Outside::lapses ? clean_.lapsed() : clean_.strained();
    }
    [[nodiscard]] static std::size_t place_of(Outside outside) noexcept { return static_cast<std::size_t>(outside); }
    [[nodiscard]] const Passing& passing(Outside outside) const noexcept { return passing_.at(place_of(outside)); }
    [[nodiscard]] double seconds(pace::Ticks at) const noexcept {
        return static_cast<double>(static_cast<std::int64_t>(at - start_)) / ticks_per_second_;
    }
    void gather(double since_s);
    /// Considers frames that were due before `known_until_s`.
    void find_left_out(double known_until_s);
    [[nodiscard]] double greatest_delay_s() const noexcept;
    /// How much will have to be left out, at least, of the time of which delays are not known yet: all until now if the
    /// DUT has not caught up by then, otherwise the lapses.
    [[nodiscard]] double left_out_later_s(double known_until_s, double now_s) const noexcept;
    /// Counts the losses in the windows of a direction that end before frame `last`, from where the last call ended.
    void count_windows(plan::Direction direction, const tally::SequenceMap& map, std::uint64_t last);
    /// Counts those of the frames first .. last-1 that are in none of these ranges.
    [[nodiscard]] JudgedFrames count(plan::Direction direction, const tally::SequenceMap& map, std::uint64_t first,
                                     std::uint64_t last, const FrameRanges& without) const;

    const TrialRequest& request_;
    plan::PerDirection<TrialRequest> loads_;
    const std::vector<std::unique_ptr<WorkerTrial>>& workers_;
    Absences absences_;
    pace::Ticks start_;
    double ticks_per_second_;
    tally::CleanTime clean_;
    FlowLimits limits_;
    std::vector<std::pair<const LapseLog*, tally::LapseKind>> logs_;
    std::vector<std::size_t> gathered_;  // entries of each log
    RangesByDirection left_out_;
    std::array<Passing, both_outside.size()> passing_;
    plan::PerDirection<Taken> taken_{};
    tally::SteadyLoss losses_;
    plan::PerDirection<std::size_t> windows_{};  // how many of a direction are counted
    pace::Ticks looked_at_ = 0;
    pace::Ticks look_took_ = 0;
    double ends_at_s_ = 0;
    double sent_s_ = 0;
};

}  // namespace evenhand::run
