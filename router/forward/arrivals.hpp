// SPDX-License-Identifier: Apache-2.0
// Forward: the frames that arrived at the ports since the last look, and their order.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include "forward/arrival_times.hpp"
#include "forward/counters.hpp"

namespace evenhand::router {

/// Looks at all ports again and again; there are at most `most_interfaces`, which outlive this.
template <class Port>
class Arrivals {
   public:
    using Frame = typename Port::Frame;

    /// `times_matter`: see ArrivalTimes.
    Arrivals(std::vector<Port*> ports, Ticks ticks_per_second, bool times_matter, ForwardCounters& counters)
        : ports_{std::move(ports)},
          times_{ticks_per_second, times_matter},
          counters_{&counters},
          frames_(ports_.size()) {}

    /// Takes the frames that have arrived. `clock()` returns the time since the router began. Returns the time
    /// afterwards: all frames that were found arrived before it.
    template <class Clock>
    Ticks look(Clock&& clock) noexcept {
        Ticks now = clock();
        unsigned most = times_.most(now);
        came_.fill(0);
        take_all(most);
        if (all_ != 0) {
            // The CPU may have been taken away since the clock was read.
            now = clock();
            if (const unsigned more = times_.most(now); more > most) {
                take_all(most = more);
                now = clock();
            }
            counters_->model.longest_gap = std::max(counters_->model.longest_gap, now - times_.last_look());
            last_arrival_ = now;
        }
        span_ = times_.look(came_, most, now);
        return now;
    }

    /// Whether the last look has frames that were not handed over yet.
    [[nodiscard]] bool has_frames() const noexcept { return all_ != 0; }

    /// Hands the frames of the last look at all ports to receive(frame, port, arrival), in the order of their arrival.
    template <class Receive>
    void hand_over(Receive&& receive) noexcept {
        constexpr Ticks never = std::numeric_limits<Ticks>::max();
        std::array<double, most_interfaces> spacing{};
        std::array<Ticks, most_interfaces> at{};  // arrival of the next frame of each port
        std::array<std::size_t, most_interfaces> next{};
        for (unsigned in = 0; in < ports_.size(); ++in) {
            spacing[in] = span_.spacing(came_[in]);
            at[in] = came_[in] == 0 ? never : span_.arrival(0, spacing[in]);
        }
        for (; all_ != 0; --all_) {
            unsigned in = 0;
            for (unsigned other = 1; other < ports_.size(); ++other) {
                if (at[other] < at[in]) in = other;
            }
            receive(frames_[in][next[in]], in, at[in]);
            at[in] = ++next[in] == came_[in] ? never : span_.arrival(next[in], spacing[in]);
        }
    }

    /// Whether no frame has arrived for `at_least` ticks.
    [[nodiscard]] bool is_idle(Ticks at_least) const noexcept { return times_.last_look() - last_arrival_ > at_least; }

   private:
    static constexpr unsigned receive_burst = 64;

    /// Takes frames until this look has `most` of each port.
    void take_all(unsigned most) noexcept {
        for (unsigned in = 0; in < ports_.size(); ++in) {
            std::size_t& n = came_[in];
            const std::size_t before = n;
            while (n < most) {
                const auto wanted = static_cast<unsigned>(std::min<std::size_t>(receive_burst, most - n));
                const unsigned got = ports_[in]->receive(0, frames_[in].data() + n, wanted);
                n += got;
                if (got < wanted) break;
            }
            counters_->interfaces[in].received_frames += n - before;
            all_ += n - before;
        }
    }

    std::vector<Port*> ports_;
    ArrivalTimes times_;
    ForwardCounters* counters_;
    Ticks last_arrival_ = 0;
    FramesByPort came_{};
    std::size_t all_ = 0;  // frames of the last look that were not handed over yet
    ArrivalSpan span_;
    std::vector<std::array<Frame*, ArrivalTimes::most_after_absence>> frames_;  // by port
};

}  // namespace evenhand::router
