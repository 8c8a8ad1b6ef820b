// SPDX-License-Identifier: Apache-2.0
// One trial in three steps: phases (a) and (b) of RFC 2544 section 23 before the loops, (c) to (e) around them, then
// the sums.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "frame/share.hpp"
#include "run/clean_watch.hpp"
#include "run/host_record.hpp"
#include "run/phase_clock.hpp"
#include "run/request.hpp"
#include "run/tester.hpp"
#include "run/timeline.hpp"
#include "run/worker_trials.hpp"
#include "tally/losses.hpp"
#include "tally/result.hpp"

namespace evenhand::run {

/// Each step once, in this order. A trial that the observer ends, or a port that goes, makes the steps that are left
/// short, and the result says so.
class Trial {
   public:
    /// `asked` has been checked (run/trial_checks.hpp). Takes the memory that the trial needs: throws Fault{no_memory}.
    Trial(Tester& tester, const TrialRequest& asked, TrialObserver& observer);
    Trial(const Trial&) = delete;
    Trial& operator=(const Trial&) = delete;

    /// The DUT settles and learns; then all is read that is compared afterwards, and the workers' trials are made.
    /// Throws Fault{too_late} if frame 0 was due before the tester was ready.
    void prepare();
    /// The workers send and receive, until the last phase ends.
    void run();
    /// What was counted, judged.
    [[nodiscard]] tally::TrialResult collect();

   private:
    static std::size_t index(plan::Side side) { return static_cast<std::size_t>(side); }
    static std::size_t index(plan::Direction direction) { return static_cast<std::size_t>(direction); }
    void wait_before_sending();
    void read_clocks_after();
    /// Which part is judged is known now.
    void end_clean();
    void read_ports_after();
    [[nodiscard]] tally::DirectionResult result_of(plan::Direction direction);

    Tester& tester_;
    TrialObserver& observer_;
    TrialRequest request_;
    TrialRecords records_;
    std::array<tally::Losses, 2> losses_;  // by direction, as the next
    std::array<frame::TesterShare, 2> shares_;
    tally::TrialResult result_;
    PhaseClock phases_;
    bool goes_on_ = true;
    // From prepare() on.
    double ticks_per_second_ = 0;
    pace::ClockSample clock_before_;
    std::optional<HostWitness> host_;
    std::optional<Timeline> time_;
    std::vector<std::unique_ptr<WorkerTrial>> workers_;
    std::optional<CleanWatch> clean_;
};

}  // namespace evenhand::run
