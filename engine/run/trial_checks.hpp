// SPDX-License-Identifier: Apache-2.0
// Before a trial: whether this tester can do the requested trial. If it cannot, nothing is sent.
#pragma once

#include <cstdint>

#include "run/request.hpp"
#include "run/tester.hpp"

namespace evenhand::run {

/// Throws Fault{bad_rate, bad_request, not_resolved, no_device, too_late}, which says what to request instead.
void check_trial(const Tester& tester, const TrialRequest& request);

/// Seconds until the time of day at which frame 0 is due; below 0 if it has passed.
[[nodiscard]] double until_start_s(std::int64_t start_at_unix_ns);

/// To be called immediately before sending. Throws Fault{too_late} if frame 0 is due now, or was due already.
void check_is_ready(const TrialRequest& request);

}  // namespace evenhand::run
