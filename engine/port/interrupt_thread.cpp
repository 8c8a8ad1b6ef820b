// SPDX-License-Identifier: Apache-2.0
#include "port/interrupt_thread.hpp"

#include <rte_alarm.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace evenhand::port {

using namespace std::chrono_literals;

// No function tells when the thread has nothing left to do. But it also runs alarms, and whatever was ready before an
// alarm was set is handled in the same round as the alarm or before, and thus before the next alarm. Several rounds,
// since closing one socket makes its other end ready.
void wait_for_interrupt_thread() {
    constexpr int rounds = 5;
    constexpr std::uint64_t round_us = 2000;
    constexpr auto patience = 2s;  // for a machine that keeps the thread waiting; longer than any stall that was seen
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
        (void)rte_eal_alarm_cancel(run, &has_run);  // also waits for a running alarm, which uses the flag
    }
}

}  // namespace evenhand::port
