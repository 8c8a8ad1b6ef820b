// SPDX-License-Identifier: Apache-2.0
#include "tally/tally.hpp"

#include <algorithm>

namespace evenhand::tally {

void ReceiverTally::add(const ReceiverTally& other) noexcept {
    received_frames += other.received_frames;
    duplicated_frames += other.duplicated_frames;
    reordered_frames += other.reordered_frames;
    late_frames += other.late_frames;
    late_by_gap_frames += other.late_by_gap_frames;
    corrupted_frames += other.corrupted_frames;
    wrong_length_frames += other.wrong_length_frames;
    foreign_frames += other.foreign_frames;
    stale_frames += other.stale_frames;
    neighbor_frames += other.neighbor_frames;
    max_poll_gap = std::max(max_poll_gap, other.max_poll_gap);
    gap_excess += other.gap_excess;
    for (std::size_t c = 0; c < received_of_class.size(); ++c) received_of_class[c] += other.received_of_class[c];
    latency.add(other.latency);
}

}  // namespace evenhand::tally
