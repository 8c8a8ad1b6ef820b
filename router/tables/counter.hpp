// SPDX-License-Identifier: Apache-2.0
// Tables: a counter that the worker keeps and others may read.
#pragma once

#include <atomic>
#include <cstdint>

namespace evenhand::router {

/// One thread adds, any thread reads at any time. As fast for the writer as a plain number: it uses no locked
/// instruction.
class Counter {
   public:
    void add(std::uint64_t n = 1) noexcept { count_.store(value() + n, std::memory_order_relaxed); }
    [[nodiscard]] std::uint64_t value() const noexcept { return count_.load(std::memory_order_relaxed); }

   private:
    std::atomic<std::uint64_t> count_{0};
};

}  // namespace evenhand::router
