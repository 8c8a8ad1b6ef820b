// SPDX-License-Identifier: Apache-2.0
#include "port/interrupt_thread.hpp"

#include <rte_alarm.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace evenhand::port {

using namespace std::chrono_literals;

// No call tells when it has nothing left to do, but the thread also runs
// alarms, and what was ready before an alarm was set is done in the same round as the alarm or before, thus before the
// next alarm. Several rounds, since one socket that is closed makes the other end's ready.
void wait_for_interrupt_thread() {
    constexpr int rounds = 5;
    constexpr std::uint64_t round_us = 2000;
    constexpr auto patience = 2s;  // of a machine that lets the thread wait; longer than any stall that was seen
    for (int round = 0; round < rounds; ++round) {
        std::atomic<bool> has_run{false};
        const auto run = [](void* flag) {
            static_cast<std::atomic<bool>*>(flag)->store(true, std::memory_order_release);
        };
        if (rte_eal_alarm_set(round_us, run, &has_run) != 0) {
            std::this_thread::sleep_for(20ms);
            continue;
        }
        const auto give_up = std::chrono::steady_clock::now() + patience;
        while (!has_run.load(std::memory_order_acquire) && std::chrono::steady_clock::now() < give_up)
            std::this_thread::sleep_for(200us);
        (void)rte_eal_alarm_cancel(run, &has_run);  // also waits for one that is running: it must not see the flag go
    }
}

}  // namespace evenhand::port
