// SPDX-License-Identifier: Apache-2.0
#include "tally/tally.hpp"

#include <algorithm>

#include "tally/reception_counts.hpp"

namespace evenhand::tally {

void ReceiverTally::add(const ReceiverTally& other) noexcept {
    for (const auto& count : reception_counts) this->*count.tally += other.*count.tally;
    left_out_frames += other.left_out_frames;
    first_hop_limit = std::max(first_hop_limit, other.first_hop_limit);
    constexpr auto other_flow = static_cast<std::size_t>(frame::TranslationFault::address_or_port);
    if (other.mistranslated_frames[other_flow] != 0 &&
        (mistranslated_frames[other_flow] == 0 || other.first_mistranslated.sequence < first_mistranslated.sequence))
        first_mistranslated = other.first_mistranslated;
    for (std::size_t i = 0; i < mistranslated_frames.size(); ++i)
        mistranslated_frames[i] += other.mistranslated_frames[i];
    for (std::size_t i = 0; i < corrupted_by.size(); ++i) corrupted_by[i] += other.corrupted_by[i];
    max_ahead = std::max(max_ahead, other.max_ahead);
    max_before_start = std::max(max_before_start, other.max_before_start);
    max_poll_gap = std::max(max_poll_gap, other.max_poll_gap);
    for (std::size_t share = 0; share < gap_excess.size(); ++share) gap_excess[share] += other.gap_excess[share];
    for (std::size_t c = 0; c < received_of_class.size(); ++c) received_of_class[c] += other.received_of_class[c];
    if (flows.empty()) flows.resize(other.flows.size());
    for (std::size_t c = 0; c < other.flows.size(); ++c) flows[c].add(other.flows[c]);
    latency.add(other.latency);
    delay_by_slice.add(other.delay_by_slice);
}

}  // namespace evenhand::tally
