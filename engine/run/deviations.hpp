// SPDX-License-Identifier: Apache-2.0
// Where a requested trial departs from the standards. Each deviation is reported.
#pragma once

#include <cstdint>
#include <vector>

#include "run/request.hpp"

namespace evenhand::run {

/// Where the hosts are, and whether the DUT was sent learning frames for them before the trials.
enum class Hosts : std::uint8_t { behind_gateways, on_the_link, learnt_before };

[[nodiscard]] std::vector<tally::Deviation> deviations_of(const TrialRequest& request, Hosts hosts);

}  // namespace evenhand::run
