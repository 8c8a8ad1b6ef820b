// SPDX-License-Identifier: Apache-2.0
// Station 6, tally: what several receive queues tell each other about the streams, so that order is judged over all of
// them.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "pace/clock.hpp"

namespace evenhand::tally {

using pace::Ticks;

/// For each receive queue of a direction and each stream: the largest number seen + 1. Each row is written only by the
/// receiver of its queue, without locks. Allocates in its constructor only.
///
/// A port may hand over the frames of one queue a moment later than those of another. So a number that another queue
/// has told says something about a queue only if it is older than settles_after(), and the queue was seen empty since.
/// Then no frame below it can arrive in that queue unless it was overtaken (R2544-06).
class StreamOrder {
   public:
    StreamOrder() = default;
    /// Throws std::bad_alloc.
    StreamOrder(unsigned queues, unsigned streams, Ticks settles_after)
        : lines_of_queue_{(streams + line_numbers - 1) / line_numbers},
          queues_{queues},
          streams_{streams},
          settles_after_{settles_after},
          lines_(queues * lines_of_queue_) {}

    [[nodiscard]] Ticks settles_after() const noexcept { return settles_after_; }

    /// Called by the receiver of `queue`: what it has seen itself or knows to be settled, for each stream.
    void tell(unsigned queue, std::span<const std::uint64_t> next) noexcept {
        for (std::size_t s = 0; s < streams_; ++s) at(queue, s).store(next[s], std::memory_order_release);
    }

    /// Collects what the other queues have told so far.
    void hear(unsigned queue, std::span<std::uint64_t> heard) noexcept {
        for (unsigned other = 0; other < queues_; ++other) {
            if (other == queue) continue;
            for (std::size_t s = 0; s < streams_; ++s)
                heard[s] = std::max(heard[s], at(other, s).load(std::memory_order_acquire));
        }
    }

    /// Raises `next` to what was heard.
    void settle(std::span<const std::uint64_t> heard, std::span<std::uint64_t> next) const noexcept {
        for (std::size_t s = 0; s < streams_; ++s) next[s] = std::max(next[s], heard[s]);
    }

   private:
    static constexpr std::size_t line_numbers = 8;
    struct alignas(64) Line {  // so that no two queues write the same cache line
        std::array<std::atomic<std::uint64_t>, line_numbers> next{};
    };

    [[nodiscard]] std::atomic<std::uint64_t>& at(unsigned queue, std::size_t stream) noexcept {
        return lines_[queue * lines_of_queue_ + stream / line_numbers].next[stream % line_numbers];
    }

    std::size_t lines_of_queue_ = 0;
    unsigned queues_ = 0;
    unsigned streams_ = 0;
    Ticks settles_after_ = 0;
    std::vector<Line> lines_;
};

}  // namespace evenhand::tally
