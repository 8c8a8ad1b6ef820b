// SPDX-License-Identifier: Apache-2.0
// Tally: the frame counts of receivers, each once: its name in the contract, where a receiver keeps it, and where the
// result of a direction has it. All code that adds up, writes or reads such counts uses this list.
#pragma once

#include <array>
#include <cstdint>

#include "tally/result.hpp"
#include "tally/tally.hpp"

namespace evenhand::tally {

struct ReceptionCount {
    const char* name;
    std::uint64_t ReceiverTally::* tally;
    std::uint64_t DirectionResult::* result;
};

/// In the order in which results have them.
inline constexpr std::array reception_counts{
    ReceptionCount{"received_frames", &ReceiverTally::received_frames, &DirectionResult::received_frames},
    ReceptionCount{"duplicated_frames", &ReceiverTally::duplicated_frames, &DirectionResult::duplicated_frames},
    ReceptionCount{"reordered_frames", &ReceiverTally::reordered_frames, &DirectionResult::reordered_frames},
    ReceptionCount{"late_frames", &ReceiverTally::late_frames, &DirectionResult::late_frames},
    ReceptionCount{"late_by_gap_frames", &ReceiverTally::late_by_gap_frames, &DirectionResult::late_by_gap_frames},
    ReceptionCount{"corrupted_frames", &ReceiverTally::corrupted_frames, &DirectionResult::corrupted_frames},
    ReceptionCount{"wrong_length_frames", &ReceiverTally::wrong_length_frames, &DirectionResult::wrong_length_frames},
    ReceptionCount{"wrong_address_frames", &ReceiverTally::wrong_address_frames,
                   &DirectionResult::wrong_address_frames},
    ReceptionCount{"wrong_port_frames", &ReceiverTally::wrong_port_frames, &DirectionResult::wrong_port_frames},
    ReceptionCount{"wrong_payload_frames", &ReceiverTally::wrong_payload_frames,
                   &DirectionResult::wrong_payload_frames},
    ReceptionCount{"remarked_frames", &ReceiverTally::remarked_frames, &DirectionResult::remarked_frames},
    ReceptionCount{"foreign_frames", &ReceiverTally::foreign_frames, &DirectionResult::foreign_frames},
    ReceptionCount{"returned_frames", &ReceiverTally::returned_frames, &DirectionResult::returned_frames},
    ReceptionCount{"stale_frames", &ReceiverTally::stale_frames, &DirectionResult::stale_frames},
    ReceptionCount{"strayed_frames", &ReceiverTally::strayed_frames, &DirectionResult::strayed_frames},
    ReceptionCount{"unrecorded_frames", &ReceiverTally::unrecorded_frames, &DirectionResult::unrecorded_frames},
    ReceptionCount{"wrong_time_frames", &ReceiverTally::wrong_time_frames, &DirectionResult::wrong_time_frames},
    ReceptionCount{"neighbor_frames", &ReceiverTally::neighbor_frames, &DirectionResult::neighbor_frames},
};

}  // namespace evenhand::tally
