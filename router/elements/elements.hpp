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
    double dear_cost = 1;           // cost of a dear frame, as a multiple of any other frame's cost
};

struct ElementCounters {
    std::uint64_t served_frames = 0;
    std::uint64_t dropped_frames = 0;  // arrived when the queue was full
    std::uint64_t most_waiting = 0;    // frames
};

/// The queues as arithmetic: an element is represented by the time at which it will have served all its frames. Time is
/// an argument, so that the model is exact however late a frame is looked at. Frames of one element must be admitted in
/// the order of their arrival.
class Elements {
   public:
    Elements(const ElementOptions& options, Ticks ticks_per_second)
        : queue_frames_{options.queue_frames},
          states_(options.count),
          base_service_{static_cast<double>(ticks_per_second) / options.rate_fps},
          dear_cost_{options.dear_cost} {
        set_cost_factor(1.0);
        if (dear_cost_ != 1) waiting_.assign(options.count, Waiting{options.queue_frames});
    }

    /// Sets the cost of a frame from now on, as a multiple of 1 / rate_fps.
    void set_cost_factor(double factor) noexcept {
        const auto to_service = [&](double cost) {
            return std::max<Ticks>(1,
                                   static_cast<Ticks>(std::llround(base_service_ * cost * static_cast<double>(one))));
        };
        service_ = to_service(factor);
        dear_service_ = to_service(factor * dear_cost_);
        longest_wait_ = service_ * queue_frames_;
    }

    /// When a frame that arrives at `arrival` will have been served; nothing if the queue is full, so that the frame is
    /// lost. In ticks since the router began, which may be up to 2^63.
    [[nodiscard]] std::optional<Ticks> admit(std::size_t element, Ticks arrival) noexcept {
        State& state = states_[element];
        const Ticks wait = state.wait_of(arrival);
        if (wait > longest_wait_) {
            ++state.counters.dropped_frames;
            return std::nullopt;
        }
        if (wait > state.longest_wait) state.longest_wait = wait;
        return state.serve(arrival, wait, service_);
    }

    /// The same if some frames are dear: then the waiting time does not say how many frames wait.
    [[nodiscard]] std::optional<Ticks> admit(std::size_t element, Ticks arrival, bool is_dear) noexcept {
        if (waiting_.empty()) return admit(element, arrival);
        State& state = states_[element];
        Waiting& waiting = waiting_[element];
        waiting.begin_until(arrival);
        if (waiting.size == queue_frames_) {
            ++state.counters.dropped_frames;
            return std::nullopt;
        }
        const Ticks wait = state.wait_of(arrival);
        if (wait != 0) waiting.add(state.free_at);
        state.counters.most_waiting = std::max<std::uint64_t>(state.counters.most_waiting, waiting.size);
        return state.serve(arrival, wait, is_dear ? dear_service_ : service_);
    }

    /// When the frame that was admitted last may leave, if the model will have `served` it and it was found at `found`.
    /// Its real arrival is not known, but the element needs its service time for it, after the frames before it.
    [[nodiscard]] Ticks leave_at(std::size_t element, Ticks served, Ticks found, bool is_dear) noexcept {
        const Ticks service = ((is_dear ? dear_service_ : service_) + one - 1) / one;
        Ticks& leaves_at = states_[element].leaves_at;
        return leaves_at = std::max({leaves_at, served, found + service});
    }

    /// The longest time from arrival to departure, in ticks.
    [[nodiscard]] Ticks longest_stay() const noexcept {
        return (queue_frames_ + 2) * std::max(service_, dear_service_) / one + 1;
    }
    [[nodiscard]] std::size_t count() const noexcept { return states_.size(); }

    [[nodiscard]] ElementCounters counters(std::size_t element) const noexcept {
        ElementCounters counters = states_[element].counters;
        if (waiting_.empty()) counters.most_waiting = (states_[element].longest_wait + service_ - 1) / service_;
        return counters;
    }

   private:
    // Fractions of a tick: rounding a period of some hundred ticks would affect the rate.
    static constexpr Ticks one = 256;

    struct State {
        Ticks free_at = 0;       // the first tick at which it is free
        Ticks free_earlier = 0;  // earlier than that by this many 1/256 ticks
        Ticks longest_wait = 0;  // in 1/256 ticks
        Ticks leaves_at = 0;     // when the frame that was admitted last leaves
        ElementCounters counters;

        /// In 1/256 ticks. Calculated as a difference, which is never longer than a full queue takes, since a time in
        /// 1/256 ticks would not always fit into 64 bits.
        [[nodiscard]] Ticks wait_of(Ticks arrival) const noexcept {
            const auto ahead = static_cast<std::int64_t>(free_at - arrival);
            return ahead > 0 ? static_cast<Ticks>(ahead) * one - free_earlier : 0;
        }
        Ticks serve(Ticks arrival, Ticks wait, Ticks service) noexcept {
            const Ticks until_free = wait + service;
            free_at = arrival + (until_free + one - 1) / one;
            free_earlier = (one - until_free % one) % one;
            ++counters.served_frames;
            return free_at;
        }
    };

    /// A ring of the times at which the waiting frames will begin to be served.
    struct Waiting {
        explicit Waiting(std::size_t most) : begins(most) {}

        void begin_until(Ticks now) noexcept {
            while (size != 0 && static_cast<std::int64_t>(begins[first] - now) <= 0) {
                first = first + 1 == begins.size() ? 0 : first + 1;
                --size;
            }
        }
        void add(Ticks begin) noexcept {
            const std::size_t at = first + size++;
            begins[at < begins.size() ? at : at - begins.size()] = begin;
        }

        std::vector<Ticks> begins;
        std::size_t first = 0;
        std::size_t size = 0;
    };

    std::size_t queue_frames_;
    std::vector<State> states_;
    std::vector<Waiting> waiting_;  // one for each element, if some frames are dear
    double base_service_;           // ticks
    double dear_cost_;
    Ticks service_ = 1;  // in 1/256 ticks
    Ticks dear_service_ = 1;
    Ticks longest_wait_ = 0;
};

/// How much more a frame costs with `entries` neighbours: nothing up to `free_entries`, then `growth` for each
/// doubling. This models the draft's second transient, a table that outgrows the caches (A.2.1).
struct NeighborCost {
    std::size_t free_entries = 0;  // 0: the table costs nothing
    double growth = 0;             // 0.1: ten percent for each doubling

    [[nodiscard]] double factor(std::size_t entries) const noexcept {
        if (free_entries == 0 || entries <= free_entries) return 1.0;
        return 1.0 + growth * std::log2(static_cast<double>(entries) / static_cast<double>(free_entries));
    }
};

}  // namespace evenhand::router
