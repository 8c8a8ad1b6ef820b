// SPDX-License-Identifier: Apache-2.0
// Beside the stations: how the host disturbed a DUT that runs on it. Knows threads and CPUs, but not frames.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "pace/clock.hpp"

namespace evenhand::witness {

using pace::Ticks;

/// A time in which a CPU did not work for the watched threads.
struct Absence {
    Ticks end = 0;          // when it was found to be over, at most a few milliseconds late
    double longest_s = 0;   // an upper bound of its length
    double at_least_s = 0;  // a lower bound of its length
};

/// What the scheduler reports about a thread, in nanoseconds since it was created.
struct ThreadTimes {
    std::uint64_t ran_ns = 0;
    std::uint64_t waited_ns = 0;  // ready to run, but not running; counted when it runs again
};

/// Determines how long threads on one CPU waited for somebody who is none of them.
class WaitLedger {
   public:
    explicit WaitLedger(std::vector<ThreadTimes> first)
        : before_{std::move(first)}, others_ran_s_(before_.size(), 0), nobody_ran_s_(before_.size(), 0) {}

    /// The longest wait of a thread that ended since the last look, less the time that the other threads ran meanwhile;
    /// in seconds, 0 or more. `passed_s`: the time since the last look. An absence can be no longer than the time in
    /// which none of the threads ran: threads that take turns on a busy CPU wait for each other, also while they are
    /// looked at.
    [[nodiscard]] double look(const std::vector<ThreadTimes>& now, double passed_s);

   private:
    std::vector<ThreadTimes> before_;
    std::vector<double> others_ran_s_;  // for each thread, since its own times last changed
    std::vector<double> nobody_ran_s_;  // the same, including all of the time between the looks in which they changed
};

/// Two threads that waited through the same absence both show it: absences that overlap become one.
[[nodiscard]] std::vector<Absence> merge(std::vector<Absence> absences, double ticks_per_second);

/// What was seen on one CPU in some time.
struct CpuRecord {
    unsigned cpu = 0;
    double stolen_s = 0;  // nothing ran although a timer had expired: because of the hypervisor, or of interrupts
    double waited_s = 0;  // a watched thread was ready to run, but somebody else had the CPU
    std::vector<Absence> absences;

    [[nodiscard]] double longest_s() const noexcept;
};

/// An absence that fills this share of the DUT's ring may overrun it: the rest of the ring may have been taken by
/// frames that were in it when the CPU went away, by frames that the DUT holds elsewhere, and by unevenness of the
/// load.
inline constexpr double overrun_from_ring_share = 0.8;

/// Frames of a constant load that came to a DUT while its CPU was away for longer than `overrun_from_ring_share` of
/// `ring_s`, the time that the DUT's ring lasts at this load. All frames that came in such an absence count, since it
/// is unknown how full the ring was when it began. Absences form a series, and count together, if the DUT may still
/// have had work left from the one before: it is assumed to process, while it runs, as much again as arrives. Only the
/// time between `start` and `end` counts. The absences of a record are in the order of their ends.
[[nodiscard]] std::uint64_t frames_while_away(const std::vector<CpuRecord>& cpus, double ring_s, double rate_fps,
                                              Ticks start, Ticks end, double ticks_per_second) noexcept;

}  // namespace evenhand::witness
