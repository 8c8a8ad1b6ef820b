// SPDX-License-Identifier: Apache-2.0
#include "witness/absence.hpp"

#include <algorithm>
#include <cmath>

#include "units.hpp"

namespace evenhand::witness {

double WaitLedger::look(const std::vector<ThreadTimes>& now, double passed_s) {
    /// A share of the CPU's time that is not an absence: the sleeper, interrupts, and switching between threads.
    constexpr double small_share = 0.03;
    constexpr double small_s = 3e-4;
    const auto ran_s = [&](std::size_t i) {
        return static_cast<double>(now[i].ran_ns - before_[i].ran_ns) / ns_per_second;
    };
    double all_ran_s = 0;
    for (std::size_t i = 0; i < now.size(); ++i) all_ran_s += ran_s(i);
    const double nobody_s = std::max(0.0, passed_s - std::min(small_share * passed_s, small_s) - all_ran_s);
    double longest_s = 0;
    for (std::size_t i = 0; i < now.size(); ++i) {
        const double waited_s = static_cast<double>(now[i].waited_ns - before_[i].waited_ns) / ns_per_second;
        others_ran_s_[i] += all_ran_s - ran_s(i);
        nobody_ran_s_[i] += nobody_s;
        if (ran_s(i) == 0 && waited_s == 0) continue;  // it sleeps, or is still waiting
        longest_s = std::max(longest_s, std::min(waited_s - others_ran_s_[i], nobody_ran_s_[i]));
        others_ran_s_[i] = 0;
        nobody_ran_s_[i] = nobody_s;  // its present wait may have begun before this look
    }
    before_ = now;
    return longest_s;
}

std::vector<Absence> merge(std::vector<Absence> absences, double ticks_per_second) {
    const auto seconds_between = [=](Ticks from, Ticks to) {
        return static_cast<double>(static_cast<std::int64_t>(to - from)) / ticks_per_second;
    };
    // Sorted by their distance from one of them: the counter may have passed 2^64 in between.
    std::ranges::sort(absences, {}, [base = absences.empty() ? 0 : absences.front().end](const Absence& absence) {
        return static_cast<std::int64_t>(absence.end - base);
    });
    std::vector<Absence> merged;
    for (auto absence : absences) {
        // Backwards from the last one: a long absence may include several that were seen before it was over.
        while (!merged.empty() && seconds_between(merged.back().end, absence.end) < absence.at_least_s) {
            const double later_s = seconds_between(merged.back().end, absence.end);
            absence.at_least_s = std::max(absence.at_least_s, merged.back().at_least_s + later_s);
            absence.longest_s = std::max(absence.longest_s, merged.back().longest_s + later_s);
            merged.pop_back();
        }
        merged.push_back(absence);
    }
    return merged;
}

double CpuRecord::longest_s() const noexcept {
    double longest = 0;
    for (const auto& absence : absences) longest = std::max(longest, absence.at_least_s);
    return longest;
}

std::uint64_t frames_while_away(const std::vector<CpuRecord>& cpus, double ring_s, double rate_fps, Ticks start,
                                Ticks end, double ticks_per_second) noexcept {
    const double sending_s = static_cast<double>(end - start) / ticks_per_second;
    double away_s = 0;
    for (const auto& record : cpus) {
        double waiting_s = 0;  // frames waiting in the ring, as time at this load
        double series_s = 0;   // time away in this series of absences, while frames were sent
        bool overran = false;
        double before_s = 0;  // end of the previous absence
        const auto end_series = [&] {
            if (overran) away_s += series_s;
            waiting_s = series_s = 0;
            overran = false;
        };
        for (const auto& absence : record.absences) {
            const double until_s =
                static_cast<double>(static_cast<std::int64_t>(absence.end - start)) / ticks_per_second;
            const double present_s = until_s - absence.at_least_s - before_s;
            if (present_s >= waiting_s) {
                end_series();
            } else {
                waiting_s -= std::max(0.0, present_s);
            }
            const auto sent_in = [&](double lasted_s, double not_before_s) {
                return std::max(0.0, std::min(until_s, sending_s) - std::max(until_s - lasted_s, not_before_s));
            };
            overran = overran || waiting_s + sent_in(absence.longest_s, 0) > overrun_from_ring_share * ring_s;
            waiting_s = std::min(waiting_s + sent_in(absence.at_least_s, 0), ring_s);
            series_s += sent_in(absence.longest_s, series_s > 0 ? std::max(before_s, 0.0) : 0.0);
            before_s = until_s;
        }
        end_series();
    }
    return static_cast<std::uint64_t>(std::llround(away_s * rate_fps));
}

}  // namespace evenhand::witness
