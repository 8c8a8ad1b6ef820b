// SPDX-License-Identifier: Apache-2.0
// Station 6, tally: PASS, FAIL or INVALID (D5). Sees counts only, never the DUT (SEED-07).
#pragma once

#include <span>

#include "tally/result.hpp"

namespace evenhand::tally {

/// Sets verdict and reasons of a result whose counts are complete.
///
/// A stalled sender catches up with a burst. Frames that come late are never easier for a device than frames that come
/// evenly: it idles in the gap, and its queues are fuller after the burst. So a PASS stays true with overdue frames
/// within the limits, while a FAIL needs a loss that they cannot explain.
///
/// INVALID if the tester did not offer the load it was asked for (rate, spacing, drained ring), if its clock or a link
/// failed, or if it was stopped. Else PASS if the loss ratio is within the limit. Else FAIL, unless the tester's own
/// lapses could explain so much of the loss that the rest would have passed: frames that left overdue (a burst follows
/// a stall, and the device may have dropped as many as were in it), frames that its own ring or buffers missed, and
/// frames that may have overrun the ring in a poll gap. Then INVALID. The same holds for frames that came to a DUT on
/// this host while the host had taken its CPU away: that is the host's doing, not the DUT's.
void judge(TrialResult& result);

/// The same of a trial that several testers made together. `whole` has the sums, and reasons that are known already,
/// which make it INVALID; `parts` what each tester counted. What is a tester's own is judged by its part and says its
/// name; losses are judged by those of all. What a tester itself lost explains no other tester's loss; what came to the
/// DUT explains that of all of them, once: see own_losses.hpp.
void judge(TrialResult& whole, std::span<const TrialResult> parts);

}  // namespace evenhand::tally
