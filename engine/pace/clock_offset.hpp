// SPDX-License-Identifier: Apache-2.0
// Station 3, pace: how far the tick counters of two CPUs are apart.
//
// A frame carries the time of its sender's CPU and is judged by that of its receiver's. Two threads, one on each CPU,
// pass a number back and forth in a shared cache line. The answer was given between question and reception. So the
// other CPU's counter is ahead by its reading less the middle of these two, with an uncertainty of half the round trip.
// The shortest of many round trips gives the best estimate.
#pragma once

#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

#include "pace/clock.hpp"

namespace evenhand::pace {

struct TickOffset {
    double ticks = 0;        // the second CPU's counter is ahead by this much
    double uncertainty = 0;  // in both directions
};

namespace offset_detail {

inline void pin_to(unsigned cpu) noexcept {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    (void)pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

struct Line {
    alignas(64) std::atomic<unsigned> asked{0};
    alignas(64) std::atomic<unsigned> answered{0};
    std::atomic<Ticks> answered_at{0};
    alignas(64) std::atomic<bool> is_over{false};
};

}  // namespace offset_detail

/// Takes `at_most`, and the time that the host takes to end two threads. Nothing if the CPUs never ran both threads
/// within that time. Each clock is read on its own CPU only.
template <class FirstClock, class SecondClock>
[[nodiscard]] std::optional<TickOffset> measure_offset(unsigned first_cpu, FirstClock first, unsigned second_cpu,
                                                       SecondClock second,
                                                       std::chrono::milliseconds at_most = std::chrono::milliseconds{
                                                           50}) {
    constexpr unsigned rounds = 2000;
    offset_detail::Line line;
    std::thread other{[&] {
        offset_detail::pin_to(second_cpu);
        unsigned seen = 0;
        while (!line.is_over.load(std::memory_order_relaxed)) {
            const unsigned asked = line.asked.load(std::memory_order_acquire);
            if (asked == seen) continue;
            seen = asked;
            line.answered_at.store(second.now(), std::memory_order_relaxed);
            line.answered.store(seen, std::memory_order_release);
        }
    }};
    std::optional<TickOffset> best;
    std::thread asker{[&] {
        offset_detail::pin_to(first_cpu);
        const auto give_up = std::chrono::steady_clock::now() + at_most;
        bool goes_on = true;
        for (unsigned round = 1; round <= rounds && goes_on; ++round) {
            const Ticks before = first.now();
            line.asked.store(round, std::memory_order_release);
            while (line.answered.load(std::memory_order_acquire) != round && goes_on)
                goes_on = std::chrono::steady_clock::now() < give_up;
            const Ticks after = first.now();
            if (!goes_on) break;
            const double half = static_cast<double>(after - before) / 2;
            if (best && half >= best->uncertainty) continue;
            best = TickOffset{.ticks = static_cast<double>(static_cast<std::int64_t>(
                                           line.answered_at.load(std::memory_order_relaxed) - before)) -
                                       half,
                              .uncertainty = half};
        }
        line.is_over.store(true, std::memory_order_relaxed);
    }};
    asker.join();
    other.join();
    return best;
}

}  // namespace evenhand::pace
