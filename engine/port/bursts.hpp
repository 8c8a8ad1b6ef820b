// SPDX-License-Identifier: Apache-2.0
// Station 4, port: memory that workers may be reading is not unmapped meanwhile.
//
// When the other end of a memif disappears, DPDK clears the port's flag "connected" and at once unmaps its rings, on
// its interrupt thread. A worker that has read the flag before is still in its burst then, and the process ends with
// SIGSEGV. So `munmap` waits (port/munmap.cpp) until every worker has been between two bursts: whatever a worker does
// after that reads the cleared flag. One case cannot be prevented from outside: a burst that begins later, loses its
// CPU before it reads the flag, and then finds the port connected to the next peer.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace evenhand::port {

/// Which workers are in a burst, and which have left it. Like quiescent states of RCU, a worker reports when it is
/// between bursts, not when it is in one, so that the hot path needs one fence in some hundred turns.
class Bursts {
   public:
    static constexpr std::size_t most_workers = 256;  // DPDK has fewer numbers

    /// From now on the calling thread sends or receives, and calls `is_between()` when it does not, until it leaves.
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

    /// The calling worker uses no memory of a port at this moment. Each worker must call this from time to time, even
    /// while it has nothing to do.
    static void is_between() noexcept {
        if (own_count == nullptr) return;
        own_count->store(own_count->load(std::memory_order_relaxed) + 1, std::memory_order_release);
        // What this worker reads next must not have been read before the count is visible to others.
        std::atomic_thread_fence(std::memory_order_seq_cst);
    }

    /// Returns when each worker has been between two bursts since the call; at once if a worker calls it. All later
    /// bursts see what was written before the call. The caller must not hold a lock that a burst takes.
    void wait_until_all_were_between() const noexcept;

   private:
    struct alignas(64) Looks {
        std::atomic<std::uint64_t> count{0};  // 0: nobody has this number
    };
    std::array<Looks, most_workers> looks_;
    static constinit thread_local std::atomic<std::uint64_t>* own_count;
};

/// For the workers of this process.
extern constinit Bursts bursts;

}  // namespace evenhand::port
