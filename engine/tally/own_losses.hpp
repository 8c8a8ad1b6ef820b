// SPDX-License-Identifier: Apache-2.0
// Station 6, tally: losses that cannot be charged to the DUT.
#pragma once

#include <cstdint>
#include <vector>

#include "tally/result.hpp"

namespace evenhand::tally {

/// How many lost frames of one direction the tester itself, or the host that it shares with the DUT, may have lost;
/// `reasons` gets why.
std::uint64_t own_losses(const TrialResult& result, const DirectionResult& d, std::vector<Reason>& reasons);

/// Whether any loss of the direction may be the tester's: a host that the DUT could not reach for want of an answer
/// loses all its frames, and a tester that sends PAUSE stops the DUT. `reasons` gets why.
bool is_anybodys_loss(const TrialResult& result, const DirectionResult& d, std::vector<Reason>& reasons);

}  // namespace evenhand::tally
