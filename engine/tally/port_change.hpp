// SPDX-License-Identifier: Apache-2.0
// Station 6, tally: what a port counted during a trial, if its counters are plausible.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tally/result.hpp"

namespace evenhand::tally {

struct PortChange {
    /// Why the counts are not plausible, such as "received_frames went from 7 to 3"; nothing if they are.
    std::optional<std::string> problem;
    std::uint64_t transmitted_frames = 0;
    std::uint64_t receive_errors = 0;
    /// Frames that reached the port but not the tester, according to a full ring, a missing buffer, an extended
    /// statistic, or the difference between its count and that of the receivers. Two of these may count the same frame,
    /// so this is their maximum and not their sum.
    std::uint64_t missed_frames = 0;
    std::string missed_by;  // the counter that had the maximum, for people
    /// Frames that the port counted and no receiver saw.
    std::uint64_t unseen_frames = 0;
    std::uint64_t received_frames = 0;
    std::uint64_t seen_frames = 0;
    std::uint64_t pause_frames = 0;
    std::uint64_t dropped_answers = 0;
};

/// Whether a counter can have this value: not all ones, as read from a device that is gone, and not negative, as from a
/// driver that subtracts more than it has counted.
[[nodiscard]] bool is_count(std::uint64_t value) noexcept;

/// A counter that goes backwards (or wraps), or has an impossible value, is treated as not readable.
[[nodiscard]] PortChange change_of(const PortCounters& before, const PortCounters& after);

}  // namespace evenhand::tally
