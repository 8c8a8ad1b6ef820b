// SPDX-License-Identifier: Apache-2.0
// Station 4, port: memory that workers may be reading is not unmapped under their feet.
//
// When the other end of a memif goes away, DPDK clears the port's flag "connected" and unmaps its rings at once, on its
// interrupt thread. A worker that read the flag before is still in its burst then, and ends the process with SIGSEGV.
// So `munmap` waits (port/munmap.cpp) until every worker has been between two bursts: what a worker does after that
// begins with the cleared flag. Left is what no wait from outside can mend: a burst that begins after it, loses its CPU
// before it reads the flag, and finds the port connected to the next peer.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace evenhand::port {

/// Who is in a burst, and who has left it. Like quiescent states of RCU: a worker says when it is between bursts, not
/// when it is in one, so that the hot path pays a fence in some hundred turns.
class Bursts {
   public:
    static constexpr std::size_t most_workers = 256;  // DPDK has fewer numbers

    /// The calling thread sends or receives from now on, and says when it does not by `is_between()` until it leaves.
    /// `worker` is a number of its own below `most_workers`.
    void enter(std::size_t worker) noexcept {
        own_count = &looks_[worker].count;
        own_count->store(1, std::memory_order_relaxed);
        std::atomic_thread_fence(std::memory_order_seq_cst);
    }
    void leave() noexcept {
        if (own_count != nullptr) own_count->store(0, std::memory_order_release);
        own_count = nullptr;
    }

    /// The calling worker uses no memory of a port at this moment. To be said now and then by each, however long it has
    /// nothing to do.
    static void is_between() noexcept {
        if (own_count == nullptr) return;
        own_count->store(own_count->load(std::memory_order_relaxed) + 1, std::memory_order_release);
        // What this worker reads next must not have been read before others see this.
        std::atomic_thread_fence(std::memory_order_seq_cst);
    }

    /// Returns when each worker that is there has been between two bursts since the call; at once if a worker calls it.
    /// What was written before the call is seen by all bursts after it. The caller must not hold a lock that a burst
    /// takes.
    void wait_until_all_were_between() const noexcept;

   private:
    struct alignas(64) Looks {
        std::atomic<std::uint64_t> count{0};  // 0: nobody has this number
    };
    std::array<Looks, most_workers> looks_;
    static constinit thread_local std::atomic<std::uint64_t>* own_count;
};

/// Of this process.
extern constinit Bursts bursts;

}  // namespace evenhand::port
