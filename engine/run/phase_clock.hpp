// SPDX-License-Identifier: Apache-2.0
// Station 3, pace: the phases of a trial, as the session waits for them.
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

#include "run/request.hpp"
#include "run/tester.hpp"
#include "tally/result.hpp"

namespace evenhand::run {

/// Keeps the time of the phases. While it waits, it asks the observer whether to go on, and watches the ports.
class PhaseClock {
   public:
    PhaseClock(Tester& tester, tally::TrialResult& result, TrialObserver& observer, double total_s)
        : tester_{tester}, result_{result}, observer_{observer} {
        progress_.trial = result.trial, progress_.total_s = total_s;
    }

    /// Waits until `done` or for `seconds`; false if the observer ended it or a port was removed. `count` puts frame
    /// counts into the progress.
    template <class Done, class Count>
    bool wait(const char* phase, double seconds, Done done, Count count) {
        const auto begin = Clock::now();
        const double start_s = since(start_);
        bool goes_on = true;
        while (goes_on && !done() && since(begin) < seconds) {
            progress_.phase = phase;
            progress_.elapsed_s = since(start_);
            count(progress_);
            goes_on = observer_.goes_on(progress_);
            for (const auto side : {plan::Side::left, plan::Side::right}) tester_.port(side).keep_watch();
            goes_on = goes_on && !tester_.has_lost_a_port();
            constexpr double between_looks_s = 0.02;
            if (goes_on) sleep(std::min(between_looks_s, seconds - since(begin)));
        }
        result_.phases.push_back({.name = phase, .start_s = start_s, .seconds = since(begin)});
        return goes_on;
    }
    bool wait(const char* phase, double seconds) {
        const auto never = [] { return false; };
        const auto add_nothing = [](Progress&) {};
        return wait(phase, seconds, never, add_nothing);
    }

   private:
    using Clock = std::chrono::steady_clock;

    static double since(Clock::time_point t) { return std::chrono::duration<double>{Clock::now() - t}.count(); }

    /// Wakes often if a port's link may be down for a moment only; otherwise rarely, since this thread may share its
    /// CPU with a worker.
    void sleep(double seconds) {
        using namespace std::chrono_literals;
        constexpr auto until_next_look = 1ms;
        const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                            std::chrono::duration<double>{std::max(0.0, seconds)});
        const bool has_to_look =
            tester_.port(plan::Side::left).needs_link_looks() || tester_.port(plan::Side::right).needs_link_looks();
        do {
            std::this_thread::sleep_until(has_to_look ? std::min(end, Clock::now() + Clock::duration{until_next_look})
                                                      : end);
            for (const auto side : {plan::Side::left, plan::Side::right})
                if (tester_.port(side).needs_link_looks()) tester_.port(side).note_link();
        } while (Clock::now() < end);
    }

    Tester& tester_;
    tally::TrialResult& result_;
    TrialObserver& observer_;
    Progress progress_;
    Clock::time_point start_ = Clock::now();
};

}  // namespace evenhand::run
