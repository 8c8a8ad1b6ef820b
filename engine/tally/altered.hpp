// SPDX-License-Identifier: Apache-2.0
// Station 6, tally: frames that arrived changed, and copies of frames: what the verdict says of them.
#pragma once

#include <vector>

#include "tally/result.hpp"

namespace evenhand::tally {

/// Frames that arrived with another address, port, payload or length, that arrived damaged (and which check failed), or
/// that came back to the port that had sent them. They count as lost; a trial that fails gets them as reasons, any
/// other trial as notes.
void note_altered(const TrialResult& result, const DirectionResult& d, std::vector<Reason>& reasons);

/// Frames that arrived with another DSCP, ECN or flow label: a router may change these, so they count as received.
void note_remarked(const TrialResult& result, const DirectionResult& d, std::vector<Reason>& notes);

/// Adds a reason if there are more of them than allowed.
void judge_remarked(const TrialResult& result, const DirectionResult& d, std::vector<Reason>& reasons);

/// Copies, on whichever port they arrive, show that something other than forwarding is going on: a DUT that duplicates,
/// a loop, a mirrored port, or a capture that is replayed.
void judge_copies(const TrialResult& result, const DirectionResult& d, std::vector<Reason>& reasons);

}  // namespace evenhand::tally
