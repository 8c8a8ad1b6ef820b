// SPDX-License-Identifier: Apache-2.0
// Stations 3 and 5: the log in which a loop notes when it was late or away.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "pace/clock.hpp"

namespace evenhand::run {

/// Lapses of one sender or one receiver, in the order of their ends. Its thread notes them; another thread may read
/// them meanwhile. Allocates in its constructor only; when it is full, the last lapse is extended.
class LapseLog {
   public:
    struct Entry {
        pace::Ticks from = 0;
        pace::Ticks until = 0;
    };

    /// Lapses with at most `joins` between them are joined. Throws std::bad_alloc.
    LapseLog(std::size_t most, pace::Ticks joins) : entries_(std::max<std::size_t>(most, 1)), joins_{joins} {}

    /// Notes a lapse. `until`: the present time.
    void note(pace::Ticks from, pace::Ticks until) noexcept {
        const std::size_t count = count_.load(std::memory_order_relaxed);
        if (count != 0) {
            Entry& last = entries_[count - 1];
            const auto between = static_cast<std::int64_t>(from - last.until);
            if (between <= static_cast<std::int64_t>(joins_) || count == entries_.size()) {
                if (static_cast<std::int64_t>(from - last.from) < 0) store(last.from, from);
                store(last.until, until);
                return;
            }
        }
        entries_[count] = {from, until};
        count_.store(count + 1, std::memory_order_release);
    }

    /// The number of lapses that are known now.
    [[nodiscard]] std::size_t size() const noexcept { return count_.load(std::memory_order_acquire); }
    /// The `i`th lapse; the last one may still become longer.
    [[nodiscard]] Entry at(std::size_t i) const noexcept { return {load(entries_[i].from), load(entries_[i].until)}; }

   private:
    static void store(pace::Ticks& to, pace::Ticks value) noexcept { __atomic_store_n(&to, value, __ATOMIC_RELAXED); }
    [[nodiscard]] static pace::Ticks load(const pace::Ticks& from) noexcept {
        return __atomic_load_n(&from, __ATOMIC_RELAXED);
    }

    std::vector<Entry> entries_;
    pace::Ticks joins_;
    std::atomic<std::size_t> count_{0};
};

}  // namespace evenhand::run
