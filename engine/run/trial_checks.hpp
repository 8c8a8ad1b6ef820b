// SPDX-License-Identifier: Apache-2.0
// Before a trial: whether this tester can do the requested trial. If it cannot, nothing is sent.
#pragma once

#include <cstdint>
#include <optional>

#include "run/request.hpp"
#include "run/tester.hpp"

namespace evenhand::run {

/// When frame 0 is due, by CLOCK_MONOTONIC; nothing: soon. To be called once, when the request has come: the time of
/// day may jump afterwards, and a start read from it again would be hours away or over.
[[nodiscard]] std::optional<std::int64_t> steered_start_ns(const TrialRequest& request);

/// Throws Fault{bad_rate, bad_request, not_resolved, no_device, too_late}, which says what to request instead.
void check_trial(const Tester& tester, const TrialRequest& request, std::optional<std::int64_t> steered_start_ns);

/// Seconds until CLOCK_MONOTONIC shows this; below 0 if it has passed.
[[nodiscard]] double until_s(std::int64_t steered_ns);

/// To be called immediately before sending. Throws Fault{too_late} if frame 0 is due now, or was due already.
void check_is_ready(const TrialRequest& request, std::optional<std::int64_t> steered_start_ns);

}  // namespace evenhand::run
