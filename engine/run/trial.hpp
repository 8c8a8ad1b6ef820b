// SPDX-License-Identifier: Apache-2.0
// One trial in three steps: phases (a) and (b) of RFC 2544 section 23 before the loops, phases (c) to (e) while they
// run, then the sums.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "run/clean_watch.hpp"
#include "run/direction_record.hpp"
#include "run/host_record.hpp"
#include "run/phase_clock.hpp"
#include "run/request.hpp"
#include "run/tester.hpp"
#include "run/timeline.hpp"
#include "run/worker_trials.hpp"
#include "tally/result.hpp"

namespace evenhand::run {

/// Call prepare(), run() and collect() once each, in this order. When the observer ends the trial, or a port is
/// removed, the remaining steps become short, and the result says that the trial was stopped.
class RunningTrial {
   public:
    /// `asked` has been checked (run/trial_checks.hpp). Takes the memory that the trial needs: throws Fault{no_memory}.
    RunningTrial(Tester& tester, const TrialRequest& asked, std::optional<std::int64_t> steered_start_ns,
                 TrialObserver& observer);
    RunningTrial(const RunningTrial&) = delete;
    RunningTrial& operator=(const RunningTrial&) = delete;

    /// Phases (a) and (b), in which the DUT settles and learns; then reads the counters and clocks that collect() reads
    /// again, and makes the workers' trials. Throws Fault{too_late} if frame 0 was due before the tester was ready.
    void prepare();
    /// Phases (c) to (e): the workers send and receive until the last phase ends.
    void run();
    /// Adds up what was counted and judges it.
    [[nodiscard]] tally::TrialResult collect();

   private:
    void wait_before_sending();
    void read_clocks_after();
    /// Determines which part of the trial is judged by its clean time.
    void end_clean();
    void read_ports_after();
    [[nodiscard]] tally::DirectionResult result_of(plan::Direction direction);

    Tester& tester_;
    TrialObserver& observer_;
    TrialRequest request_;
    std::optional<std::int64_t> steered_start_ns_;
    TrialRecords records_;
    tally::TrialResult result_;
    PhaseClock phases_;
    bool goes_on_ = true;
    // Set by prepare().
    double ticks_per_second_ = 0;
    pace::ClockSample clock_before_;
    std::optional<HostWitness> host_;
    std::optional<Timeline> time_;
    std::vector<std::unique_ptr<WorkerTrial>> workers_;
    std::optional<CleanWatch> clean_;
};

}  // namespace evenhand::run
