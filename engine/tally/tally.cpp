// SPDX-License-Identifier: Apache-2.0
#include "tally/tally.hpp"

#include <algorithm>

namespace evenhand::tally {

void ReceiverTally::add(const ReceiverTally& other) noexcept {
    received_frames += other.received_frames;
    left_out_frames += other.left_out_frames;
    first_hop_limit = std::max(first_hop_limit, other.first_hop_limit);
    duplicated_frames += other.duplicated_frames;
    reordered_frames += other.reordered_frames;
    late_frames += other.late_frames;
    late_by_gap_frames += other.late_by_gap_frames;
    corrupted_frames += other.corrupted_frames;
    for (std::size_t i = 0; i < mistranslated_frames.size(); ++i)
        mistranslated_frames[i] += other.mistranslated_frames[i];
    wrong_length_frames += other.wrong_length_frames;
    foreign_frames += other.foreign_frames;
    stale_frames += other.stale_frames;
    strayed_frames += other.strayed_frames;
    unrecorded_frames += other.unrecorded_frames;
    wrong_time_frames += other.wrong_time_frames;
    max_ahead = std::max(max_ahead, other.max_ahead);
    max_before_start = std::max(max_before_start, other.max_before_start);
    neighbor_frames += other.neighbor_frames;
    max_poll_gap = std::max(max_poll_gap, other.max_poll_gap);
    for (std::size_t share = 0; share < gap_excess.size(); ++share) gap_excess[share] += other.gap_excess[share];
    for (std::size_t c = 0; c < received_of_class.size(); ++c) received_of_class[c] += other.received_of_class[c];
    latency.add(other.latency);
    delay_by_slice.add(other.delay_by_slice);
}

}  // namespace evenhand::tally
