// SPDX-License-Identifier: Apache-2.0
// Beside the stations: what the host did to a DUT that lives on it. Knows threads and CPUs, not frames.
#pragma once

#include <cstdint>
#include <vector>

#include "pace/clock.hpp"

namespace evenhand::witness {

using pace::Ticks;

/// Some time in which a CPU did not work for those it was watched for.
struct Absence {
    Ticks end = 0;          // when it was seen to be over, a few milliseconds late at the most
    double longest_s = 0;   // it cannot have lasted longer
    double at_least_s = 0;  // and not shorter
};

/// What was seen of one CPU in some time.
struct CpuRecord {
    unsigned cpu = 0;
    double stolen_s = 0;  // nothing ran there that a timer should have started: the hypervisor, or interrupts
    double waited_s = 0;  // a watched thread was ready to run and somebody else had the CPU
    std::vector<Absence> absences;

    [[nodiscard]] double longest_s() const noexcept;
};

/// Frames of a constant load that came to a DUT while its CPU was away for longer than `ring_s`, the time that the DUT's ring lasts at this
/// load: all that came in such an absence, since nobody knows how full the ring was when it began. Only what lies between `start` and `end`
/// counts.
[[nodiscard]] std::uint64_t frames_while_away(const std::vector<CpuRecord>& cpus, double ring_s, double rate_fps, Ticks start, Ticks end, double ticks_per_second) noexcept;

}  // namespace evenhand::witness
