// SPDX-License-Identifier: Apache-2.0
// Station 6, tally: which part of a trial is judged when its tester or its machine was away from time to time.
//
// A lapse affects more frames than those that were sent in it. None is judged from the first frame that may have been
// in flight, or in a queue, when the lapse began, to the frame before which the DUT has certainly caught up. The delays
// show how long frames are on their way, and when a queue is again as it was.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "tally/lapse.hpp"
#include "tally/slice_delays.hpp"

namespace evenhand::tally {

/// Delays of all directions, by the time at which the frames were due.
struct DelaysByTime {
    double slice_s = 0;
    double ticks_per_second = 1;
    /// For each tested direction the slices of each of its receivers; all have the same number of slices.
    std::vector<std::vector<const SliceDelays*>> directions;

    /// The greatest delay of this slice, in seconds; nothing if none of its frames has arrived.
    [[nodiscard]] std::optional<double> greatest_s(std::size_t direction, std::size_t slice) const noexcept;
    [[nodiscard]] std::size_t slices() const noexcept;
};

/// Frames that were due from `from_s` on and before `until_s` are not judged, in any direction.
struct LeftOut {
    double from_s = 0;
    double until_s = 0;
    std::array<bool, lapse_names.size()> kinds{};  // of the lapses in it
};

/// Determines what is left out, while a trial runs and at its end.
class CleanTime {
   public:
    explicit CleanTime(DelaysByTime delays) : delays_{std::move(delays)} {}

    /// Adds a lapse. A lapse that has become longer may be added again.
    void note(const Lapse& lapse);

    /// The parts that are left out, as far as lapses and delays are known for frames that were due before
    /// `known_until_s`. Where the DUT has not caught up by then, the part lasts until then. Later calls know more,
    /// never less.
    [[nodiscard]] std::span<const LeftOut> look(double known_until_s);

    /// The parts that the last look() left out.
    [[nodiscard]] const std::vector<LeftOut>& left_out() const noexcept { return left_out_; }
    /// The lapses alone, as of the last look(), and also those after its `known_until_s`; those of the receiver from
    /// the first frame that was in flight when they began. After a lapse the load is even again, but the DUT may have
    /// more frames in its queues than an even load would have left there.
    [[nodiscard]] const std::vector<LeftOut>& lapsed() const noexcept { return lapsed_; }
    /// The same, but each part lasts until the DUT's queue has become visibly shorter after the lapse, or the DUT has
    /// caught up. Until then the queue may be full, so that unevenness that is no lapse overruns it.
    [[nodiscard]] const std::vector<LeftOut>& strained() const noexcept { return strained_; }
    /// How many lapses there were of each kind.
    [[nodiscard]] std::array<std::size_t, lapse_names.size()> lapses() const noexcept;

   private:
    /// Consecutive lapses, each of which began before the DUT had caught up after the one before.
    struct Series {
        double from_s = 0;   // when the first frame was due that may have been in flight
        double until_s = 0;  // the end of its last lapse
        double lasted_s = 0;
        std::array<bool, lapse_names.size()> kinds{};
    };
    [[nodiscard]] std::size_t slice_at(double seconds) const noexcept;
    [[nodiscard]] double in_flight_since(double from_s) const noexcept;
    [[nodiscard]] double caught_up_at(const Series& series, double known_until_s) const noexcept;
    [[nodiscard]] double caught_up_at(std::size_t direction, const Series& series, double known_until_s) const noexcept;
    [[nodiscard]] std::optional<double> as_before_s(std::size_t direction, double before_s) const noexcept;
    void find_strained(double known_until_s);
    [[nodiscard]] double shorter_at(std::size_t direction, double from_s, double until_s) const noexcept;

    DelaysByTime delays_;
    std::vector<Lapse> lapses_;  // in the order of their begin
    std::vector<LeftOut> left_out_;
    std::vector<LeftOut> lapsed_;
    std::vector<LeftOut> strained_;
};

/// How many of the first `until_s` seconds are in none of these parts, which are in order.
[[nodiscard]] double seconds_without(std::span<const LeftOut> parts, double until_s) noexcept;
/// How many pieces of the first `until_s` seconds these parts leave.
[[nodiscard]] std::size_t pieces_without(std::span<const LeftOut> parts, double until_s) noexcept;

}  // namespace evenhand::tally
