// SPDX-License-Identifier: Apache-2.0
// Station 6, tally: what is recorded of each direction while a trial runs.
#pragma once

#include <optional>

#include "frame/share.hpp"
#include "plan/per_direction.hpp"
#include "tally/delays.hpp"
#include "tally/losses.hpp"
#include "tally/sequence_map.hpp"
#include "tally/stream_order.hpp"

namespace evenhand::run {

/// The record of one direction in one trial. The receivers of the direction write `map`, `delays` and `order`; the
/// session's thread settles `map` and takes `losses` from it. Outlives the workers' trials.
struct DirectionRecord {
    frame::TesterShare share;                  // the frames that this tester sends; the map and the losses count these
    tally::SequenceMap map;                    // which of them have arrived
    tally::Losses losses;                      // of those that the map has settled
    std::optional<tally::DelayTracks> delays;  // where the trial is asked for delays of single frames
    tally::StreamOrder order;                  // used where the direction has several receive queues
};

using TrialRecords = plan::PerDirection<DirectionRecord>;

}  // namespace evenhand::run
