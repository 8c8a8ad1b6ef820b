// SPDX-License-Identifier: Apache-2.0
// Beside the stations: what the host did to a DUT that lives on it. Knows threads and CPUs, not frames.
#pragma once

#include <cstdint>
#include <utility>
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

/// What the scheduler says of a thread, in nanoseconds since it was made.
struct ThreadTimes {
    std::uint64_t ran_ns = 0;
    std::uint64_t waited_ns = 0;  // ready to run, but not running; counted when it runs again
};

/// Tells, of threads on one CPU, how long they waited for somebody who is none of them.
class WaitLedger {
   public:
    explicit WaitLedger(std::vector<ThreadTimes> first)
        : before_{std::move(first)}, others_ran_s_(before_.size(), 0), nobody_ran_s_(before_.size(), 0) {}

    /// The longest wait of a thread that ended since the last look, less what the other threads ran meanwhile; in
    /// seconds, 0 or more. `passed_s`: since the last look. No wait can have been an absence for longer than none of
    /// the threads ran: threads that take turns on a busy CPU wait for each other, also while we look.
    [[nodiscard]] double look(const std::vector<ThreadTimes>& now, double passed_s);

   private:
    std::vector<ThreadTimes> before_;
    std::vector<double> others_ran_s_;  // by thread, since its own times last changed
    std::vector<double> nobody_ran_s_;  // the same, with all of the time between the looks in which they changed
};

/// The same absence may have been seen twice, by two threads that waited through it: those that overlap become one.
[[nodiscard]] std::vector<Absence> merge(std::vector<Absence> absences, double ticks_per_second);

/// What was seen of one CPU in some time.
struct CpuRecord {
    unsigned cpu = 0;
    double stolen_s = 0;  // nothing ran there that a timer should have started: the hypervisor, or interrupts
    double waited_s = 0;  // a watched thread was ready to run and somebody else had the CPU
    std::vector<Absence> absences;

    [[nodiscard]] double longest_s() const noexcept;
};

/// An absence that fills so much of the DUT's ring may overrun it: the rest may be taken by what the DUT had in its
/// ring when its CPU went, by frames that it holds elsewhere, and by what comes unevenly.
inline constexpr double overrun_from_ring_share = 0.8;

/// Frames of a constant load that came to a DUT while its CPU was away for longer than `overrun_from_ring_share` of
/// `ring_s`, the time that the DUT's ring lasts at this load: all that came in such an absence, since nobody knows how
/// full the ring was when it began. Absences are one series, and count together, while the DUT may still have work of
/// them: when it is there it is taken to work off, besides what comes, as much again. Only what lies between `start`
/// and `end` counts. The absences of a record are in the order of their ends.
[[nodiscard]] std::uint64_t frames_while_away(const std::vector<CpuRecord>& cpus, double ring_s, double rate_fps,
                                              Ticks start, Ticks end, double ticks_per_second) noexcept;

}  // namespace evenhand::witness
