// SPDX-License-Identifier: Apache-2.0
// Forward: regular times in which nothing leaves, as in a device whose output halts now and then.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "elements/calendar.hpp"
#include "tables/interface.hpp"

namespace evenhand::router {

struct StallOptions {
    Ticks every = 0;               // 0: never; at the end of each period of this length, nothing leaves for `length`
    Ticks length = 0;              // less than `every`
    std::size_t queue_frames = 0;  // that arrived on each port and wait for the end of a stall; more are lost
};

/// Which frames wait for the end of a stall: those that would leave in it, whenever they arrived.
class Stalls {
   public:
    /// No frame waits longer than `horizon`.
    Stalls(const StallOptions& options, Ticks horizon) : options_{options} {
        if (options_.every == 0) return;
        for (auto& of_port : queues_) of_port.resize(static_cast<std::size_t>(horizon / options_.every + 2));
    }

    /// `at`, or the end of the stall that contains it.
    [[nodiscard]] Ticks end_of(Ticks at) const noexcept {
        if (options_.every == 0) return at;
        const Ticks end = (at / options_.every + 1) * options_.every;
        return end - at > options_.length ? at : end;
    }
    [[nodiscard]] bool is_in(Ticks at) const noexcept { return end_of(at) != at; }

    /// A frame that would leave in a stall leaves when it ends: `departure` is postponed until then. False: too many
    /// frames wait for that already, and the frame is lost. `port`: where it arrived.
    [[nodiscard]] bool outlast(unsigned port, Ticks& departure) noexcept {
        const Ticks end = end_of(departure);
        if (end == departure) return true;
        Queue& queue = queues_[port][static_cast<std::size_t>(end / options_.every) % queues_[port].size()];
        if (queue.end != end) queue = {.end = end, .frames = 0};
        if (queue.frames == options_.queue_frames) return false;
        ++queue.frames;
        departure = end;
        return true;
    }

   private:
    struct Queue {
        Ticks end = 0;  // the end of the stall that its frames wait for
        std::size_t frames = 0;
    };

    StallOptions options_;
    std::array<std::vector<Queue>, most_interfaces>
        queues_;  // by port: one for each stall that frames may be waiting for
};

}  // namespace evenhand::router
