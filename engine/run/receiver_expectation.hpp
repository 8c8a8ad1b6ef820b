// SPDX-License-Identifier: Apache-2.0
// Station 5: what a receiver expects during one trial, and when.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <variant>

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

/// Whether `a` is later than `b`; they must be less than half the counter's range apart.
[[nodiscard]] constexpr bool is_after(Ticks a, Ticks b) noexcept { return static_cast<std::int64_t>(a - b) > 0; }

/// What arrives: the twin of FrameSource (run/sender.hpp). It is made from what arrives in a direction, not from what
/// was sent, so that a device that changes frames needs no other receiver.
template <class E>
concept FrameExpectation = requires(const E expected, std::uint64_t sequence, std::size_t frame_class,
                                    const std::byte* frame, frame::IpVersion version) {
    { E::has_classes } -> std::convertible_to<bool>;                        // otherwise all frames are of class 0
    { expected.class_of(sequence) } noexcept -> std::same_as<std::size_t>;  // the class of this frame of the direction
    {
        expected.frame_octets(frame_class)
    } noexcept -> std::same_as<std::size_t>;  // the length of the class's frames, without FCS
    {
        expected.holds(frame_class, frame, version)
    } noexcept -> std::same_as<bool>;  // whether a frame of that length is one that was sent
};

/// An expectation that records something of the first frame of each number.
template <class E>
concept LearningExpectation = requires(const E expected, const std::byte* frame, std::uint64_t sequence) {
    { expected.learns() } noexcept -> std::same_as<bool>;  // whether it does so in this trial
    { expected.learn(frame, sequence) } noexcept;
};

/// What the frames of a trial must be when they arrive, for each kind of traffic: the Source::Expectation of the source
/// that writes them (run/worker_trials.cpp). Copies are cheap and share the flows that they have drawn, so each
/// receiver needs one of its own.
using ExpectedFrames = std::variant<frame::TestFrameExpectation, frame::MixExpectation, frame::TranslationExpectation,
                                    frame::ConnectionExpectation>;

/// What a receiver expects during one trial or one round of learning.
struct Expectation {
    std::uint16_t trial = 0;  // number in the tag; 0 in learning
    plan::Direction direction = plan::Direction::forward;
    ExpectedFrames frames;
    frame::TesterShare
        share;        // the frames of the direction that this tester sends, and that therefore must come back to it
    Ticks start = 0;  // when the first frame was due; earlier frames are stale
    Ticks clock_skew = 0;         // how much the counters of two CPUs may differ
    Ticks residual_end = 0;       // later frames are late (R2544-19)
    Ticks ring_lasts = 0;         // for how long the receive ring holds all frames that arrive at the intended load
    LapseLog* lapses = nullptr;   // where the request asks for lapses; outlives the trial
    Ticks burst_lasts = 0;        // the time in which receive_burst frames arrive at the intended load
    bool is_one_of_many = false;  // the port has other queues, which get a share of the frames
    /// Shared by the receivers of a direction, if there are several; outlives the trial.
    tally::StreamOrder* order = nullptr;
    /// Shared by all receivers of a direction; null where only the histogram over all frames is wanted.
    tally::DelayTracks* delays = nullptr;
    /// For the pairs that this receiver completes, where the tracks ask for them.
    tally::VariationHistogram* variation = nullptr;
    /// With `delays`: this receiver's own.
    tally::DelaySpread* spread = nullptr;
    /// When each frame of the direction is due; with `delays`, `overdue_after` is the lateness from which on a frame
    /// has left overdue.
    pace::Schedule schedule;
    Ticks overdue_after = 0;
    std::uint64_t port_lag = 0;  // of the port that they are sent from; as in Punctuality

    /// `frames` as the type that the trial's loop is compiled for. It is the type that `frames` has: both follow from
    /// the kind of traffic, so that no frame pays for asking which one it is.
    template <FrameExpectation Frames>
    [[nodiscard]] const Frames& of() const noexcept {
        const auto* const expected = std::get_if<Frames>(&frames);
        if (expected == nullptr) __builtin_unreachable();
        return *expected;
    }
};

}  // namespace evenhand::run
