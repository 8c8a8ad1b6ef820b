// SPDX-License-Identifier: Apache-2.0
#include "run/host_record.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "units.hpp"

namespace evenhand::run {
HostWitness::HostWitness(Tester& tester) : tester_{tester} {
    const auto stat = stat_.read();
    for (const auto& worker : tester.workers()) {
        witness::ProcFile schedstat{fmt::format("/proc/self/task/{}/schedstat", worker->thread_id())};
        const auto times = witness::read_thread_times(schedstat.read()).value_or(witness::ThreadTimes{});
        workers_.push_back({.schedstat = std::move(schedstat),
                            .times = times,
                            .stolen_s = witness::read_stolen_s(stat, worker->cpu())});
    }
    for (auto& watch : tester.watches()) watch->begin();
}

void HostWitness::end(double ticks_per_second) {
    const auto stat = stat_.read();
    for (std::size_t i = 0; i < workers_.size(); ++i) {
        const auto& before = workers_[i];
        const unsigned cpu = tester_.workers()[i]->cpu();
        const auto times = witness::read_thread_times(before.schedstat.read()).value_or(before.times);
        record_.tester.push_back(
            {.cpu = cpu,
             .stolen_us = us_per_second * (witness::read_stolen_s(stat, cpu) - before.stolen_s),
             .waited_us = static_cast<double>(times.waited_ns - before.times.waited_ns) / ns_per_us});
    }
    if (!tester_.request().dut) return;
    record_.dut = tally::HostRecord::Dut{.ring_frames = tester_.request().dut->ring_frames, .cpus = {}};
    for (auto& watch : tester_.watches()) dut_.push_back(watch->end(ticks_per_second));
    for (const auto& cpu : dut_) {
        record_.dut->cpus.push_back({.cpu = cpu.cpu,
                                     .stolen_us = us_per_second * cpu.stolen_s,
                                     .waited_us = us_per_second * cpu.waited_s,
                                     .absences = cpu.absences.size(),
                                     .longest_us = us_per_second * cpu.longest_s()});
    }
}

std::vector<witness::Absence> HostWitness::absences(double rate_fps) const {
    std::vector<witness::Absence> found;
    const auto& dut = tester_.request().dut;
    if (!dut) return found;
    constexpr double least_share = 0.1;
    const auto add = [&](const std::vector<witness::Absence>& all) {
        for (const auto& absence : all) {
            if (absence.at_least_s >= least_share * dut->ring_frames / rate_fps) found.push_back(absence);
        }
    };
    if (record_.dut) {
        for (const auto& cpu : dut_) add(cpu.absences);
    } else {
        for (const auto& watch : tester_.watches()) add(watch->so_far());
    }
    return found;
}

std::uint64_t HostWitness::frames_while_away(double rate_fps, Ticks start, Ticks end,
                                             double ticks_per_second) const noexcept {
    if (!record_.dut) return 0;
    return witness::frames_while_away(dut_, record_.dut->ring_frames / rate_fps, rate_fps, start, end,
                                      ticks_per_second);
}

}  // namespace evenhand::run
