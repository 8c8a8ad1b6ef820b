// SPDX-License-Identifier: Apache-2.0
// Station 6, tally: losses that are not the DUT's.
#pragma once

#include <cstdint>
#include <vector>

#include "tally/result.hpp"

namespace evenhand::tally {

/// What may explain lost frames. Each fact counts once, whichever of several testers noticed it:
///
/// - own_losses(): frames of its own that a tester lost after they had left the DUT, or counted wrongly. No other
///   tester's frame can be among them.
/// - untimed_losses(): those of own_losses() whose time is unknown. In a trial that is judged by its clean time, all
///   others are lapses (clean_time.hpp).
/// - late_bursts(): frames that came to the DUT as bursts. All testers share the DUT, and it is unknown whose frames
/// its
///   queues had no room for.
/// - away_losses(): frames, of any tester, that came to the DUT while this machine had taken its CPU away, as noticed
/// by   the tester that watches that CPU.
///
/// Each returns how many frames that may be, and adds the reason to `reasons`.
std::uint64_t untimed_losses(const TrialResult& result, const DirectionResult& d, std::vector<Reason>& reasons);
std::uint64_t own_losses(const TrialResult& result, const DirectionResult& d, std::vector<Reason>& reasons);
std::uint64_t late_bursts(const TrialResult& result, const DirectionResult& d, std::vector<Reason>& reasons);
/// `whole`: all testers together; d.away_frames counts all their frames.
std::uint64_t away_losses(const TrialResult& whole, const DirectionResult& d, std::vector<Reason>& reasons);

/// Whether any loss of a tester's direction may be the tester's own: a host that the DUT could not reach because it got
/// no answer loses all its frames, and a tester that sends PAUSE stops the DUT. Adds the reason to `reasons`.
bool is_anybodys_loss(const TrialResult& result, const DirectionResult& d, std::vector<Reason>& reasons);

}  // namespace evenhand::tally
