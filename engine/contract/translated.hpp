// SPDX-License-Identifier: Apache-2.0
// Contract: the results of a DUT that translates or keeps state, for the frames of a direction; written and read back.
#pragma once

#include "contract/reply_parts.hpp"
#include "contract/request_parts.hpp"
#include "tally/result.hpp"

namespace evenhand::contract {

/// Adds nothing for other DUTs.
void add_translation(Ordered& json, const tally::DirectionResult& d);

/// Reads them from a reply that is to be judged together with others.
void read_translation(ObjectReader& r, tally::DirectionResult& d);

}  // namespace evenhand::contract
