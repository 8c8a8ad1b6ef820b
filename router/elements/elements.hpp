// SPDX-License-Identifier: Apache-2.0
// Elements: n processing elements, each a queue of given depth that is served at a given rate.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "pace/clock.hpp"

namespace evenhand::router {

using pace::Ticks;

struct ElementOptions {
    std::size_t count = 1;          // 1..512
    double rate_fps = 0;            // of one element, > 0
    std::size_t queue_frames = 64;  // waiting, besides the one in service
};

struct ElementCounters {
    std::uint64_t served_frames = 0;
    std::uint64_t dropped_frames = 0;  // came when the queue was full
    std::uint64_t most_waiting = 0;    // frames
};

/// The queues as arithmetic: an element is known by the time at which it will have served all that it holds. Time is an
/// argument, so the model is exact however late a frame is looked at; frames of one element must be admitted in the
/// order of their arrival.
class Elements {
   public:
    Elements(const ElementOptions& options, Ticks ticks_per_second)
        : queue_frames_{options.queue_frames},
          states_(options.count),
          base_service_{static_cast<double>(ticks_per_second) / options.rate_fps} {
        set_cost_factor(1.0);
    }

    /// Cost of a frame from now on, as a multiple of 1 / rate_fps.
    void set_cost_factor(double factor) noexcept {
        service_ =
            std::max<Ticks>(1, static_cast<Ticks>(std::llround(base_service_ * factor * static_cast<double>(one))));
        longest_wait_ = service_ * queue_frames_;
    }

    /// When a frame that comes at `arrival` will have been served; nothing if the queue is full: the frame is lost. In
    /// ticks since the router began, up to 2^63 of them.
    [[nodiscard]] std::optional<Ticks> admit(std::size_t element, Ticks arrival) noexcept {
        State& state = states_[element];
        // As a difference, which is never longer than a full queue takes: a time in 1/256 ticks does not fit into 64
        // bits for ever.
        const auto ahead = static_cast<std::int64_t>(state.free_at - arrival);
        const Ticks wait = ahead > 0 ? static_cast<Ticks>(ahead) * one - state.free_earlier : 0;
        if (wait > longest_wait_) {
            ++state.counters.dropped_frames;
            return std::nullopt;
        }
        if (wait > state.longest_wait) state.longest_wait = wait;
        const Ticks until_free = wait + service_;
        state.free_at = arrival + (until_free + one - 1) / one;
        state.free_earlier = (one - until_free % one) % one;
        ++state.counters.served_frames;
        return state.free_at;
    }

    /// The longest time from arrival to departure, in ticks.
    [[nodiscard]] Ticks longest_stay() const noexcept { return (longest_wait_ + 2 * service_) / one + 1; }
    [[nodiscard]] std::size_t count() const noexcept { return states_.size(); }

    [[nodiscard]] ElementCounters counters(std::size_t element) const noexcept {
        ElementCounters counters = states_[element].counters;
        counters.most_waiting = (states_[element].longest_wait + service_ - 1) / service_;
        return counters;
    }

   private:
    // Fractions of a tick: rounding a period of some hundred ticks would show in the rate.
    static constexpr Ticks one = 256;

    struct State {
        Ticks free_at = 0;       // the first tick at which it is free
        Ticks free_earlier = 0;  // by so many 1/256 ticks
        Ticks longest_wait = 0;  // in 1/256 ticks
        ElementCounters counters;
    };

    std::size_t queue_frames_;
    std::vector<State> states_;
    double base_service_;  // ticks
    Ticks service_ = 1;    // in 1/256 ticks
    Ticks longest_wait_ = 0;
};

/// How much dearer a frame is with `entries` neighbours: nothing up to `free_entries`, then `growth` more for each
/// doubling. The draft's second transient: the table outgrows the caches (A.2.1).
struct NeighborCost {
    std::size_t free_entries = 0;  // 0: the table costs nothing
    double growth = 0;             // 0.1: ten percent for each doubling

    [[nodiscard]] double factor(std::size_t entries) const noexcept {
        if (free_entries == 0 || entries <= free_entries) return 1.0;
        return 1.0 + growth * std::log2(static_cast<double>(entries) / static_cast<double>(free_entries));
    }
};

}  // namespace evenhand::router
