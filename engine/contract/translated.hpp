// SPDX-License-Identifier: Apache-2.0
// Contract: what a DUT that translates, or keeps state, made of the frames of a direction; written and read back.
#pragma once

#include "contract/reply_parts.hpp"
#include "contract/request_parts.hpp"
#include "tally/result.hpp"

namespace evenhand::contract {

/// Nothing of other DUTs.
void add_translation(Ordered& json, const tally::DirectionResult& d);

/// Of a reply that comes back to be judged with others.
void read_translation(ObjectReader& r, tally::DirectionResult& d);

}  // namespace evenhand::contract
