// SPDX-License-Identifier: Apache-2.0
// Station 6, tally: frames whose delays do not count because the tester sent them late.
#pragma once

#include <vector>

#include "tally/result.hpp"

namespace evenhand::tally {

/// INVALID if so many frames of the sample are missing that it is no longer the sample that was asked for. A trial of
/// several testers is judged as a whole, since each has sent a part of the sample.
void judge_left_out(const TrialResult& result, const DirectionResult& d, std::vector<Reason>& reasons);

/// Adds a note that says how many are missing, if they are few enough.
void note_left_out(const TrialResult& result, const DirectionResult& d, std::vector<Reason>& notes);

}  // namespace evenhand::tally
