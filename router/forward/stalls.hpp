// SPDX-License-Identifier: Apache-2.0
// Forward: regular spans in which nothing leaves, as in a device whose output halts now and then.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "elements/calendar.hpp"
#include "tables/interface.hpp"

namespace evenhand::router {

struct StallOptions {
    Ticks every = 0;               // 0: never; at the end of each such span nothing leaves for `length`
    Ticks length = 0;              // less than `every`
    std::size_t queue_frames = 0;  // of each port that wait for the end of a stall; more are lost
};

/// Which frames wait for the end of a stall.
class Stalls {
   public:
    explicit Stalls(const StallOptions& options) noexcept : options_{options} {}

    /// A frame that comes in a stall leaves when it ends: `departure` is put off to then. False: too many wait already,
    /// and the frame is lost. `port`: that it came to.
    [[nodiscard]] bool outlast(unsigned port, Ticks arrival, Ticks& departure) noexcept {
        if (options_.every == 0) return true;
        const Ticks number = arrival / options_.every;
        const Ticks end = (number + 1) * options_.every;
        if (end - arrival > options_.length) return true;
        if (number_[port] != number) {
            number_[port] = number;
            waiting_[port] = 0;
        }
        if (waiting_[port] == options_.queue_frames) return false;
        ++waiting_[port];
        departure = std::max(departure, end);
        return true;
    }

   private:
    StallOptions options_;
    std::array<Ticks, most_interfaces> number_{};  // by port: the stall that waiting_ is of
    std::array<std::size_t, most_interfaces> waiting_{};
};

}  // namespace evenhand::router
