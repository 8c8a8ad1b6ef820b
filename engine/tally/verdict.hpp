// SPDX-License-Identifier: Apache-2.0
// Station 6, tally: PASS, FAIL or INVALID (D5). It sees counts only, never the DUT (SEED-07).
#pragma once

#include <span>

#include "tally/result.hpp"

namespace evenhand::tally {

/// Sets verdict and reasons of a result whose counts are complete.
///
/// A stalled sender catches up with a burst. Frames that leave late are never easier for a device than evenly spaced
/// frames: it idles in the gap, and its queues are fuller after the burst. So a PASS is right even with overdue frames
/// within the limits, while a FAIL needs a loss that they cannot explain.
///
/// INVALID if the tester did not offer the intended load (rate, spacing, drained ring), if its clock or a link failed,
/// or if it was stopped. Otherwise PASS if the loss ratio is within the limit. Otherwise FAIL, unless the tester's own
/// lapses could explain so much of the loss that the rest would have passed: frames that left overdue (a burst follows
/// a stall, and the device may have dropped as many as were in it), frames that its own ring or buffers missed, and
/// frames that may have overrun the ring in a poll gap. Then INVALID. The same holds for frames that came to a DUT on
/// this machine while the host had taken its CPU away, which is no fault of the DUT's.
void judge(TrialResult& result);

/// The same for a trial that several testers made together. `whole` has the sums, and reasons that are already known,
/// which make it INVALID; `parts` has what each tester counted. A tester's own faults are judged by its part, and the
/// reason has its name; losses are judged by the sums. What a tester itself lost explains no other tester's loss; what
/// happened at the DUT explains the losses of all of them, once: see own_losses.hpp.
void judge(TrialResult& whole, std::span<const TrialResult> parts);

}  // namespace evenhand::tally
