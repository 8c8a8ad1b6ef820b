// SPDX-License-Identifier: Apache-2.0
#include "run/worker.hpp"

#include <unistd.h>

#include <chrono>
#include <exception>
#include <future>

#include "port/bursts.hpp"
#include "port/dpdk_host.hpp"

namespace evenhand::run {

void Worker::start() {
    std::promise<void> ready;
    auto is_ready = ready.get_future();
    thread_ = std::thread{[this, &ready] {
        try {
            const port::WorkerThread registration{cpu_};
            thread_id_ = gettid();
            ready.set_value();
            live();
        } catch (...) {
            ready.set_exception(std::current_exception());
        }
    }};
    try {
        is_ready.get();
    } catch (...) {
        thread_.join();
        throw;
    }
}

void Worker::finish() noexcept {
    quit_.store(true, std::memory_order_relaxed);
    if (thread_.joinable()) thread_.join();
}

void Worker::live() {
    // Short compared with the rings (2048 frames take 137 us at 14.88 Mfps, but no test frames are sent now), and long
    // enough to leave the CPU to others. A DUT that asks for thousands of hosts at once is answered without a pause.
    constexpr auto pause = std::chrono::microseconds{50};
    while (!quit_.load(std::memory_order_relaxed)) {
        port::Bursts::is_between();
        if (WorkerTrial* const trial = trial_.load(std::memory_order_acquire); trial != nullptr) {
            trial->loop->run(*trial);
            trial_.store(nullptr, std::memory_order_relaxed);
            trial->is_over.store(true, std::memory_order_release);
        } else {
            if (!queues_.idle_turn()) std::this_thread::sleep_for(pause);
        }
    }
}

}  // namespace evenhand::run
