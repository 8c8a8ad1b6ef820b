// SPDX-License-Identifier: Apache-2.0
// Station 6, tally, looked at while frames are sent: a trial that can no longer pass need not last to its end.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "pace/clock.hpp"
#include "run/request.hpp"
#include "tally/sequence_map.hpp"

namespace evenhand::run {

/// Counts what was overtaken: a frame that was due longer ago than the residual wait, and than a valid trial's frame
/// may be overdue, is not in the map, and a later frame of its direction has come since. Before that it may stand in a
/// queue: the two seconds of RFC 2544 begin when the stream has ended, so a silence is not counted, however long it
/// lasts. Reads the maps while receivers mark in them.
class EarlyStop {
   public:
    EarlyStop(const TrialRequest& request, const std::array<tally::SequenceMap, 2>& maps, pace::Ticks start,
              double ticks_per_second) noexcept;

    /// How many frames each direction shall send in all, if more is lost at `now` than the whole trial may lose; else
    /// nothing. The last of them is due a little later than `now`, so that every worker hears of it before.
    [[nodiscard]] std::optional<std::uint64_t> look(pace::Ticks now) noexcept;

   private:
    /// Whether any frame from `first` on that was due before `due` has come.
    [[nodiscard]] static bool has_come_since(const tally::SequenceMap& map, std::uint64_t first,
                                             std::uint64_t due) noexcept;

    const TrialRequest& request_;
    const std::array<tally::SequenceMap, 2>& maps_;
    pace::Ticks start_;
    double ticks_per_second_;
    double allowed_;
    std::array<tally::MissingSoFar, 2> lost_{};  // by direction
};

}  // namespace evenhand::run
