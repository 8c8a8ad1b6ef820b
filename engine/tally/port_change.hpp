// SPDX-License-Identifier: Apache-2.0
// Station 6, tally: what a port counted during a trial, if its counters can be believed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tally/result.hpp"

namespace evenhand::tally {

struct PortChange {
    /// Why the counts mean nothing, such as "received_frames went from 7 to 3"; nothing if they do.
    std::optional<std::string> problem;
    std::uint64_t transmitted_frames = 0;
    std::uint64_t receive_errors = 0;
    /// Frames that the port had and the tester did not get: by a full ring, for want of a buffer, by an extended
    /// statistic, or because it counted more than the receivers saw. Two of these may count the same frame, so this is
    /// the largest of them and no sum.
    std::uint64_t missed_frames = 0;
    std::string missed_by;  // which of the counters said so, for people
    /// Counted by the port, seen by no receiver.
    std::uint64_t unseen_frames = 0;
    std::uint64_t received_frames = 0;
    std::uint64_t seen_frames = 0;
    std::uint64_t pause_frames = 0;
    std::uint64_t dropped_answers = 0;
};

/// What a counter can read. Not all ones, as of a device that has gone, and nothing below zero, as of a driver that
/// subtracts more than it has counted.
[[nodiscard]] bool is_count(std::uint64_t value) noexcept;

/// A counter that goes backwards (or wraps), or reads what is no count, is not read.
[[nodiscard]] PortChange change_of(const PortCounters& before, const PortCounters& after);

}  // namespace evenhand::tally
