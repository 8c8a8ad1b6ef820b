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

/// Keeps the time of the phases; while waiting it asks the observer and has an eye on the ports.
class PhaseClock {
   public:
    PhaseClock(Tester& tester, tally::TrialResult& result, TrialObserver& observer, double total_s)
        : tester_{tester}, result_{result}, observer_{observer} {
        progress_.trial = result.trial, progress_.total_s = total_s;
    }

    /// Wait until `done` or for `seconds`; false if the observer ended it, or a port has gone. `count` puts frame
    /// counts into the progress.
    template <class Done, class Count>
    bool wait(const char* phase, double seconds, Done done, Count count) {
        using namespace std::chrono_literals;
        const auto begin = Clock::now();
        const double start_s = since(start_);
        bool goes_on = true;
        while (goes_on && !done() && since(begin) < seconds) {
            progress_.phase = phase;
            progress_.elapsed_s = since(start_);
            count(progress_);
            goes_on = observer_.goes_on(progress_);
            for (const auto side : {plan::Side::left, plan::Side::right}) {
                tester_.port(side).keep_watch();
                goes_on = goes_on && !tester_.port(side).is_removed();
            }
            constexpr auto between_looks = 20ms;
            const auto next = Clock::now() +
                              std::chrono::duration_cast<Clock::duration>(std::min<std::chrono::duration<double>>(
                                  between_looks, std::chrono::duration<double>{std::max(0.0, seconds - since(begin))}));
            while (goes_on && Clock::now() < next) {
                std::this_thread::sleep_until(std::min(next, Clock::now() + Clock::duration{1ms}));
                for (const auto side : {plan::Side::left, plan::Side::right}) tester_.port(side).watch_link();
            }
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

    Tester& tester_;
    tally::TrialResult& result_;
    TrialObserver& observer_;
    Progress progress_;
    Clock::time_point start_ = Clock::now();
};

}  // namespace evenhand::run
