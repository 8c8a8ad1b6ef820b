// SPDX-License-Identifier: Apache-2.0
#include "port/bursts.hpp"

#include <chrono>
#include <thread>

namespace evenhand::port {

constinit thread_local std::atomic<std::uint64_t>* Bursts::own_count = nullptr;
constinit Bursts bursts;

void Bursts::wait_until_all_were_between() const noexcept {
    if (own_count != nullptr) return;  // it would wait for itself
    std::atomic_thread_fence(std::memory_order_seq_cst);
    for (const auto& worker : looks_) {
        const std::uint64_t before = worker.count.load(std::memory_order_acquire);
        while (before != 0 && worker.count.load(std::memory_order_acquire) == before)
            std::this_thread::sleep_for(std::chrono::microseconds{50});
    }
}

}  // namespace evenhand::port
