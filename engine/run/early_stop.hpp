// SPDX-License-Identifier: Apache-2.0
// Station 6, tally, looked at while frames are sent: a trial that can no longer pass need not last to its end.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "frame/share.hpp"
#include "pace/clock.hpp"
#include "run/request.hpp"
#include "run/sent_until.hpp"
#include "tally/sequence_map.hpp"

namespace evenhand::run {

/// Counts what was overtaken: a frame that was due longer ago than the residual wait, and than a valid trial's frame
/// may be overdue, is not in the map, and a later frame of its direction has come since. Before that it may stand in a
/// queue: the two seconds of RFC 2544 begin when the stream has ended, so a silence is not counted, however long it
/// lasts. Reads the maps while receivers mark in them.
class EarlyStop {
   public:
    /// `shares`: the tester's own frames of each direction, by whose places the maps count.
    EarlyStop(const TrialRequest& request, const std::array<tally::SequenceMap, 2>& maps, pace::Ticks start,
              double ticks_per_second, const std::array<frame::TesterShare, 2>& shares = {}) noexcept;

    /// Of each direction, how far this tester has sent its own frames: see sent_until(). All that is due, if nothing
    /// else is said.
    using SentUntil = std::array<std::uint64_t, 2>;
    static constexpr SentUntil all_due{HadLeft::all_due, HadLeft::all_due};

    /// How many of this tester's frames are lost by `now`, of all directions.
    [[nodiscard]] std::uint64_t lost(pace::Ticks now, const SentUntil& sent = all_due) noexcept;
    /// How many frames the whole trial may lose, whoever of several testers sends them.
    [[nodiscard]] double allowed() const noexcept { return allowed_; }

    /// Of a tester alone: how many frames each direction shall send in all, if more is lost at `now` than the whole
    /// trial may lose; else nothing.
    [[nodiscard]] std::optional<std::uint64_t> look(pace::Ticks now, const SentUntil& sent = all_due) noexcept;

    /// How many frames each direction sends in all if it ends as soon as it can, but not before `seconds` of the
    /// sending phase; nothing if that is no sooner than the trial ends anyway. The last of them is due a little later
    /// than `now`, so that every worker hears of it before.
    [[nodiscard]] std::optional<std::uint64_t> end(pace::Ticks now, double seconds) const noexcept;

   private:
    [[nodiscard]] double passed_s(pace::Ticks now) const noexcept;
    /// Whether any frame from `first` on that was due before `due` has come.
    [[nodiscard]] static bool has_come_since(const tally::SequenceMap& map, std::uint64_t first,
                                             std::uint64_t due) noexcept;

    const TrialRequest& request_;
    const std::array<tally::SequenceMap, 2>& maps_;
    std::array<frame::TesterShare, 2> shares_;  // by direction
    pace::Ticks start_;
    double ticks_per_second_;
    double allowed_;
    std::array<HadLeft, 2> had_left_;            // by direction
    std::array<tally::MissingSoFar, 2> lost_{};  // by direction
};

}  // namespace evenhand::run
