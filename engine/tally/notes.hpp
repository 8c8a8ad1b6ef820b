// SPDX-License-Identifier: Apache-2.0
// Station 6, tally: what a reader should know about a trial, although the verdict does not depend on it.
#pragma once

#include <vector>

#include "tally/result.hpp"

namespace evenhand::tally {

/// How much of a trial is judged, and what is left out.
void note_clean_time(const TrialResult& result, std::vector<Reason>& notes);
/// Adds a reason if so little time is clean that the whole trial was judged, and it did not pass.
void judge_clean_time(const TrialResult& result, std::vector<Reason>& reasons);

/// PAUSE frames that stopped the sender: a PASS may hide frames that waited in the tester.
void note_flow_control(const TrialResult& result, const DirectionResult& d, std::vector<Reason>& notes);

/// More was offered than the receiving line carries, so that in the long run a part is lost, however fast the DUT is.
void note_overload(const TrialResult& result, const DirectionResult& d, std::vector<Reason>& notes);

/// A device that forwards without lowering the hop limit is not a router (RFC 1812, 5.3.1; RFC 8200, 3), although its
/// frames arrive.
void note_hop_limit(const TrialResult& result, const DirectionResult& d, std::vector<Reason>& notes);

/// Sets `queue_filling` of each direction, with a note, for valid trials of an even load: bursts fill queues in any
/// case, and in an invalid trial the tester itself may have caused the delays.
void note_queue_fillings(TrialResult& result);

/// Frames that were translated wrongly: a defect of another kind than being slow.
void note_mistranslated(const TrialResult& result, const DirectionResult& d, std::vector<Reason>& notes);

/// Why the DUT did not forward frames, according to its ICMP errors, and what to do about it, for each port that got
/// any.
void note_icmp_errors(const TrialResult& result, std::vector<Reason>& notes);

/// Links that the tester itself took down and up, since it was asked to: what was lost then is lost all the same.
void note_link_switches(const TrialResult& result, std::vector<Reason>& notes);

/// Frames that another engine sent: each of several testers must have a part of the device to itself.
void note_strayed(const TrialResult& result, const DirectionResult& d, std::vector<Reason>& notes);

}  // namespace evenhand::tally
