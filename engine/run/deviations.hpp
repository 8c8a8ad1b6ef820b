// SPDX-License-Identifier: Apache-2.0
// Where a trial, as it is asked for, departs from the documents. None is silent.
#pragma once

#include <vector>

#include "run/request.hpp"

namespace evenhand::run {

/// `is_direct`: the hosts are on the link, not behind gateways.
[[nodiscard]] std::vector<tally::Deviation> deviations_of(const TrialRequest& request, bool is_direct);

}  // namespace evenhand::run
