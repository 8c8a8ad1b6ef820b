// SPDX-License-Identifier: Apache-2.0
// Station 5: what a receiver expects during one trial, and when.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "frame/connections.hpp"
#include "frame/expectation.hpp"
#include "frame/mix_expectation.hpp"
#include "frame/share.hpp"
#include "frame/translation.hpp"
#include "pace/clock.hpp"
#include "pace/schedule.hpp"
#include "run/lapse_log.hpp"
#include "tally/delay_spread.hpp"
#include "tally/delays.hpp"
#include "tally/stream_order.hpp"

namespace evenhand::run {

using pace::Ticks;

/// Whether `a` is later than `b`; they are less than half the counter's range apart.
[[nodiscard]] constexpr bool is_after(Ticks a, Ticks b) noexcept { return static_cast<std::int64_t>(a - b) > 0; }

/// What arrives: the twin of FrameSource (run/sender.hpp). It is made from what arrives in a direction, not from what
/// was sent there, so a device that changes frames needs no other receiver.
template <class E>
concept FrameExpectation = requires(const E expected, std::uint64_t sequence, std::size_t frame_class,
                                    const std::byte* frame, frame::IpVersion version) {
    { E::has_classes } -> std::convertible_to<bool>;                               // else all frames are of class 0
    { expected.class_of(sequence) } noexcept -> std::same_as<std::size_t>;         // of this frame of the direction
    { expected.frame_octets(frame_class) } noexcept -> std::same_as<std::size_t>;  // without FCS, of each of the class
    {
        expected.holds(frame_class, frame, version)
    } noexcept -> std::same_as<bool>;  // whether a frame of that length is one that was sent
};

/// It keeps something of the first frame of each number.
template <class E>
concept LearningExpectation = requires(const E expected, const std::byte* frame, std::uint64_t sequence) {
    { expected.learn(frame, sequence) } noexcept;
};

/// What a receiver expects during one trial or one round of learning.
struct Expectation {
    std::uint16_t trial = 0;  // number in the tag; 0 in learning
    plan::Direction direction = plan::Direction::forward;
    frame::TestFrameExpectation frames;  // each of them, unless there is a mix
    frame::TesterShare share;            // those of them that this tester sends, and so those that come back to it
    Ticks start = 0;                     // when the first frame was due; what was sent before is stale
    Ticks clock_skew = 0;                // so much may the counters of two CPUs differ
    Ticks residual_end = 0;              // later frames are late (R2544-19)
    Ticks ring_lasts = 0;                // how long the receive ring takes what comes at the intended load
    LapseLog* lapses = nullptr;          // where it is asked for what the ring cannot have held; outlives the trial
    Ticks burst_lasts = 0;               // the same of receive_burst frames
    bool is_one_of_many = false;         // the port has other queues, to which a share of the frames goes
    /// Shared by the receivers of a direction, if there are several; outlives the trial.
    tally::StreamOrder* order = nullptr;
    /// The same, by all of them; nothing where only the histogram is wanted, over all frames.
    tally::DelayTracks* delays = nullptr;
    /// Of the pairs that this receiver completes, where the tracks are asked for them.
    tally::VariationHistogram* variation = nullptr;
    /// With the tracks: this receiver's own.
    tally::DelaySpread* spread = nullptr;
    /// When each frame of the direction is due, and, with the tracks, from which lateness on its departure is overdue.
    pace::Schedule schedule;
    Ticks overdue_after = 0;
    std::uint64_t port_lag = 0;  // of the port that they leave by: as Punctuality has it
    /// Where frames are of several classes; outlives the trial.
    const frame::MixExpectation* mix = nullptr;
    /// Where the DUT translates: this receiver's own; outlives the trial.
    const frame::TranslationExpectation* translation = nullptr;
    /// Where it keeps state: the same.
    const frame::ConnectionExpectation* connections = nullptr;

    /// The part that the loop which was chosen for the trial is compiled for.
    template <FrameExpectation Frames>
    [[nodiscard]] const Frames& of() const noexcept {
        if constexpr (std::is_same_v<Frames, frame::MixExpectation>)
            return *mix;
        else if constexpr (std::is_same_v<Frames, frame::TranslationExpectation>)
            return *translation;
        else if constexpr (std::is_same_v<Frames, frame::ConnectionExpectation>)
            return *connections;
        else
            return frames;
    }
};

}  // namespace evenhand::run
