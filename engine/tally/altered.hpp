// SPDX-License-Identifier: Apache-2.0
// Station 6, tally: frames that are not what was sent, and copies of frames: what it says of them.
#pragma once

#include <vector>

#include "tally/result.hpp"

namespace evenhand::tally {

/// Frames that came with another address, port, payload or length, that came damaged, and by which check, and that came
/// back to the port that had sent them. They are among the lost: reasons of a trial that fails, else notes.
void note_altered(const TrialResult& result, const DirectionResult& d, std::vector<Reason>& reasons);

/// Frames that came with another DSCP, ECN or flow label: a router may do that, so they are received.
void note_remarked(const TrialResult& result, const DirectionResult& d, std::vector<Reason>& notes);

/// Whether they are more than are allowed to; `reasons` gets why.
void judge_remarked(const TrialResult& result, const DirectionResult& d, std::vector<Reason>& reasons);

/// Copies show that something other than forwarding is going on: a DUT that duplicates, a loop, a mirrored port, a
/// capture that is replayed. On whichever port they come.
void judge_copies(const TrialResult& result, const DirectionResult& d, std::vector<Reason>& reasons);

}  // namespace evenhand::tally
