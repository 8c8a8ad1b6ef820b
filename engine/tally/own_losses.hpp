// SPDX-License-Identifier: Apache-2.0
// Station 6, tally: losses that cannot be charged to the DUT.
#pragma once

#include <cstdint>
#include <vector>

#include "tally/result.hpp"

namespace evenhand::tally {

/// What may explain lost frames, once for each fact, whoever of several testers noticed it:
///
/// - own_losses(): what a tester lost of its own frames after they had left the DUT, or counted wrongly. No other
///   tester's frame can have been among them.
/// - untimed_losses(): of these, what nobody knows the time of; in a trial that is judged by its clean time all others
///   are lapses (clean_time.hpp).
/// - late_bursts(): frames that came to the DUT as bursts. The DUT is the same for all testers, and whose frames its
///   queues had no room for then, nobody knows.
/// - away_losses(): frames that came to the DUT while this host had taken its CPU: all testers' alike, and noticed by
///   whichever of them watches that CPU.
///
/// Each returns how many frames that may be, and `reasons` gets why.
std::uint64_t untimed_losses(const TrialResult& result, const DirectionResult& d, std::vector<Reason>& reasons);
std::uint64_t own_losses(const TrialResult& result, const DirectionResult& d, std::vector<Reason>& reasons);
std::uint64_t late_bursts(const TrialResult& result, const DirectionResult& d, std::vector<Reason>& reasons);
/// `whole`: of all testers together; d.away_frames are of all their frames.
std::uint64_t away_losses(const TrialResult& whole, const DirectionResult& d, std::vector<Reason>& reasons);

/// Whether any loss of a tester's direction may be its own: a host that the DUT could not reach for want of an answer
/// loses all its frames, and a tester that sends PAUSE stops the DUT. `reasons` gets why.
bool is_anybodys_loss(const TrialResult& result, const DirectionResult& d, std::vector<Reason>& reasons);

}  // namespace evenhand::tally
