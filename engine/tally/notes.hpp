// SPDX-License-Identifier: Apache-2.0
// Station 6, tally: what a reader should know of a trial although the verdict does not depend on it.
#pragma once

#include <vector>

#include "tally/result.hpp"

namespace evenhand::tally {

/// How much of a trial is judged, and what is left out, if anything is.
void note_clean_time(const TrialResult& result, std::vector<Reason>& notes);
/// A reason if so little is clean that the whole trial was judged, and not well enough.
void judge_clean_time(const TrialResult& result, std::vector<Reason>& reasons);

/// PAUSE frames that stopped the sender: a PASS may hide frames that waited in the tester.
void note_flow_control(const TrialResult& result, const DirectionResult& d, std::vector<Reason>& notes);

/// A device that forwards without lowering the hop limit is not a router (RFC 1812, 5.3.1; RFC 8200, 3), although its
/// frames arrive.
void note_hop_limit(const TrialResult& result, const DirectionResult& d, std::vector<Reason>& notes);

/// Sets `queue_filling` of each direction, with a note, for valid trials of an even load: bursts fill queues anyway,
/// and a tester that spoiled the trial may have made the delays itself.
void note_queue_fillings(TrialResult& result);

/// Frames that a translator got wrong, which is another defect than being slow.
void note_mistranslated(const TrialResult& result, const DirectionResult& d, std::vector<Reason>& notes);

/// Why the DUT did not forward frames, as it says itself, and what to do: on each port to which it said so.
void note_icmp_errors(const TrialResult& result, std::vector<Reason>& notes);

/// Frames of another engine: each of several testers has its own part of the device.
void note_strayed(const TrialResult& result, const DirectionResult& d, std::vector<Reason>& notes);

}  // namespace evenhand::tally
