// SPDX-License-Identifier: Apache-2.0
// Stations 3 to 5: how the host disturbed tester and DUT between two moments of a trial.
#pragma once

#include <vector>

#include "run/tester.hpp"
#include "tally/result.hpp"
#include "witness/cpu_watch.hpp"

namespace evenhand::run {

/// Constructed before the sending phase, ended after it.
class HostWitness {
   public:
    explicit HostWitness(Tester& tester);

    /// Waits some milliseconds until the last events are known. After that, record() and frames_while_away() are valid.
    void end(double ticks_per_second);

    /// The record for the trial's result (D5; recorded whatever the verdict).
    [[nodiscard]] const tally::HostRecord& record() const noexcept { return record_; }
    /// Absences of the DUT's CPUs, as far as they are known now, in which a tenth of its ring or more was filled at
    /// this load.
    [[nodiscard]] std::vector<witness::Absence> absences(double rate_fps) const;
    /// Frames of one direction between `start` and `end` that came while the DUT's CPU was away for longer than its
    /// ring lasts, at once or in a series of absences.
    [[nodiscard]] std::uint64_t frames_while_away(double rate_fps, Ticks start, Ticks end,
                                                  double ticks_per_second) const noexcept;

   private:
    /// A tester's CPU runs a busy loop: two readings suffice, and no thread of ours sleeps on it.
    struct OfWorker {
        witness::ProcFile schedstat;
        witness::ThreadTimes times;
        double stolen_s = 0;
    };

    Tester& tester_;
    witness::ProcFile stat_{"/proc/stat"};
    std::vector<OfWorker> workers_;
    std::vector<witness::CpuRecord> dut_;
    tally::HostRecord record_;
};

}  // namespace evenhand::run
