// SPDX-License-Identifier: Apache-2.0
// Station 6, tally, used while frames are sent: a trial that can no longer pass need not last to its end.
#pragma once

#include <cstdint>
#include <optional>

#include "pace/clock.hpp"
#include "plan/per_direction.hpp"
#include "run/direction_record.hpp"
#include "run/request.hpp"
#include "run/sent_until.hpp"
#include "tally/sequence_map.hpp"

namespace evenhand::run {

/// Counts frames that were overtaken. A frame is lost if it was due longer ago than the residual wait and the lateness
/// that a valid trial's frame may have, is not in the map, and a later frame of its direction has arrived since. Before
/// that it may be in a queue: the two seconds of RFC 2544 begin when the stream has ended, so that a silence does not
/// count, however long it lasts. Reads the maps while receivers mark in them.
class EarlyStop {
   public:
    /// The records outlive it.
    EarlyStop(const TrialRequest& request, const TrialRecords& records, pace::Ticks start, double ticks_per_second);

    /// How far this tester has sent its own frames of each direction: see sent_until(). By default all that are due.
    using SentUntil = plan::PerDirection<std::uint64_t>;
    static constexpr SentUntil all_due{HadLeft::all_due, HadLeft::all_due};

    /// How many of this tester's frames, of all directions, are lost by `now`.
    [[nodiscard]] std::uint64_t lost(pace::Ticks now, const SentUntil& sent = all_due) noexcept;
    /// How many frames the whole trial may lose, whichever of several testers sends them.
    [[nodiscard]] double allowed() const noexcept { return allowed_; }

    /// For a tester that is alone: how many frames a direction with the rate of the request shall send in all, if more
    /// is lost at `now` than the whole trial may lose; else nothing.
    [[nodiscard]] std::optional<std::uint64_t> look(pace::Ticks now, const SentUntil& sent = all_due) noexcept;

    /// How many frames such a direction sends in all if it ends as soon as it can, but not before `seconds` of the
    /// sending phase; nothing if the trial ends no later than that anyway. The last of these frames is due a little
    /// later than `now`, so that every worker learns of the end in time.
    [[nodiscard]] std::optional<std::uint64_t> end(pace::Ticks now, double seconds) const noexcept;

   private:
    [[nodiscard]] double passed_s(pace::Ticks now) const noexcept;
    /// Whether any frame from `first` on that was due before `due` has arrived.
    [[nodiscard]] static bool has_come_since(const tally::SequenceMap& map, std::uint64_t first,
                                             std::uint64_t due) noexcept;

    const TrialRequest& request_;
    const TrialRecords& records_;
    plan::PerDirection<std::uint64_t> frames_{};
    pace::Ticks start_;
    double ticks_per_second_;
    double allowed_ = 0;
    plan::PerDirection<HadLeft> had_left_;
    plan::PerDirection<tally::MissingSoFar> lost_{};
};

}  // namespace evenhand::run
