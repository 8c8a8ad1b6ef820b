// SPDX-License-Identifier: Apache-2.0
// Stations 3 and 4: THE sender loop. Waits until frames are due, writes them, sends the burst, counts.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "pace/schedule.hpp"
#include "run/lapse_log.hpp"
#include "tally/tally.hpp"
#include "wide.hpp"

namespace evenhand::run {

using pace::Ticks;

/// A port that sends. A frame belongs to the sender from reserve() until send() accepts it, then to the port, which
/// makes its buffer available to reserve() again when nobody reads it any more.
template <class P>
concept TxPort = requires(P port, unsigned queue, typename P::Frame** frames, typename P::Frame* frame, unsigned n,
                          std::size_t octets) {
    { port.reserve(queue, frames, n) } noexcept -> std::same_as<unsigned>;  // how many buffers it has
    { P::octets(frame) } noexcept -> std::same_as<std::byte*>;
    { P::set_length(frame, octets) } noexcept;
    { port.send(queue, frames, n) } noexcept -> std::same_as<unsigned>;  // how many it accepted, from the front
    { port.give_back(frames, n) } noexcept;
};

/// What is sent. A new traffic shape is a new source, never a second loop.
template <class S>
concept FrameSource = requires(S source, std::span<std::byte* const> frames, Ticks now, std::size_t ahead) {
    {
        source.frame_octets(ahead)
    } noexcept -> std::same_as<std::size_t>;      // without FCS, of the `ahead`th of the next frames, from 0
    { source.write_next(frames, now) } noexcept;  // the next frames of the stream, one into each buffer
};

/// When a frame counts as overdue.
struct Punctuality {
    Ticks overdue_after = 0;
    /// Parts in 2^32 by which the port may be slower than the schedule. At the line rate, a NIC whose crystal is slow
    /// by some ppm accepts frames evenly, but a little more slowly. That is not a burst, and the offered load shows it.
    std::uint64_t port_lag = 0;
};

constexpr unsigned burst_size = 32;  // smaller costs rate (bench/sender), larger costs pacing

/// One stream of one direction during one trial. turn() never waits: it sends what is due now, at most one burst.
///
/// Open loop (D7): late frames are sent and counted as overdue, not skipped, since skipping would hide the gap between
/// intended and offered load (RFC 2285, 3.5).
template <TxPort Port, FrameSource Source>
class Sender {
   public:
    Sender(Port& port, unsigned queue, Source source, const pace::Schedule& schedule, std::uint64_t frames,
           const Punctuality& punctuality, Ticks deadline) noexcept
        : port_{&port},
          queue_{queue},
          source_{std::move(source)},
          schedule_{schedule},
          frames_{frames},
          punctuality_{punctuality},
          deadline_{deadline} {}

    /// Returns whether any frame was due. After the deadline nothing is sent, not even frames that the port refused
    /// before it.
    bool turn(Ticks now) noexcept {
        if (is_over(now)) return false;
        if (pending_ == 0) {
            const std::uint64_t due = std::min(schedule_.due_count(now), frames_);
            if (due <= written_) return false;
            pending_ = port_->reserve(queue_, burst_.data(),
                                      static_cast<unsigned>(std::min<std::uint64_t>(due - written_, burst_size)));
            if (pending_ == 0) {
                refused(now);
                return true;
            }
            std::array<std::byte*, burst_size> octets;
            for (unsigned i = 0; i < pending_; ++i) {
                Port::set_length(burst_[i], source_.frame_octets(i));
                octets[i] = Port::octets(burst_[i]);
            }
            source_.write_next(std::span{octets}.first(pending_), now);
            written_ += pending_;
            first_ = 0;
            tally_.largest_burst = std::max<std::uint64_t>(tally_.largest_burst, pending_);
        }
        const unsigned accepted = port_->send(queue_, burst_.data() + first_, pending_);
        if (accepted < pending_) refused(now);
        if (accepted != 0) count(accepted, now);
        last_turn_ = now;
        return true;
    }

    /// Everything was offered, or the deadline has passed.
    [[nodiscard]] bool is_done(Ticks now) const noexcept { return tally_.offered_frames == frames_ || is_over(now); }

    /// From now on notes in `lapses` when frames left overdue or not at all. To be called before the first turn.
    void log_to(LapseLog& lapses) noexcept { lapses_ = &lapses; }

    /// Limits the stream to `frames` frames, or those that are already written, and ends sending at `deadline`. For the
    /// thread that calls turn().
    void end_after(std::uint64_t frames, Ticks deadline) noexcept {
        frames_ = std::max(written_, std::min(frames_, frames));
        deadline_ = deadline;
    }

    /// How many frames of its stream are to be sent.
    [[nodiscard]] std::uint64_t frames() const noexcept { return frames_; }

    /// To be called after the last turn: gives back the buffers that the port did not accept. Frames that were not sent
    /// at all count as late, too.
    void give_back() noexcept {
        if (lapses_ != nullptr && tally_.offered_frames < frames_)
            lapses_->note(schedule_.due(tally_.offered_frames), deadline_);
        if (pending_ != 0) port_->give_back(burst_.data() + first_, pending_);
        pending_ = 0;
    }

    [[nodiscard]] const tally::SenderTally& tally() const noexcept { return tally_; }

   private:
    [[nodiscard]] bool is_over(Ticks now) const noexcept { return static_cast<std::int64_t>(now - deadline_) > 0; }

    /// The port is full although this loop runs: the port sets the pace, a little more slowly than the schedule. The
    /// schedule may slip by that little, but by no more than that in the time since the last turn: frames that are late
    /// because of a stall of the tester are overdue.
    void refused(Ticks now) noexcept {
        ++tally_.refusals;
        const auto behind = static_cast<std::int64_t>(now - schedule_.due(tally_.offered_frames) - slip_);
        if (behind > 0 && last_turn_ != 0) slip_ += std::min(static_cast<Ticks>(behind), lag_in(now - last_turn_));
        last_turn_ = now;
    }

    /// How far the port may fall behind in that many ticks. The remainder below one tick is kept for the next call.
    [[nodiscard]] Ticks lag_in(Ticks ticks) noexcept {
        const Wide lag = Wide{ticks} * punctuality_.port_lag + lag_rest_;
        lag_rest_ = static_cast<std::uint64_t>(lag) & 0xFFFFFFFFU;
        return static_cast<Ticks>(lag >> 32U);
    }

    void count(unsigned accepted, Ticks now) noexcept {
        const std::uint64_t before = tally_.offered_frames;
        const auto overdue = static_cast<std::int64_t>(now - schedule_.due(before) - slip_);
        if (overdue > static_cast<std::int64_t>(tally_.max_overdue)) tally_.max_overdue = static_cast<Ticks>(overdue);
        if (overdue > static_cast<std::int64_t>(punctuality_.overdue_after)) {
            const std::uint64_t overdue_until = schedule_.due_count(now - punctuality_.overdue_after - slip_);
            tally_.overdue_frames +=
                std::min<std::uint64_t>(accepted, overdue_until > before ? overdue_until - before : 1);
            if (lapses_ != nullptr) lapses_->note(now - static_cast<Ticks>(overdue), now);
        }
        tally_.offered_frames = before + accepted;
        tally_.last_send = now;
        first_ += accepted;
        pending_ -= accepted;
    }

    Port* port_;
    unsigned queue_;
    Source source_;
    pace::Schedule schedule_;
    std::uint64_t frames_;
    Punctuality punctuality_;
    Ticks deadline_;
    Ticks slip_ = 0;              // how late the port has made this sender
    std::uint64_t lag_rest_ = 0;  // parts of a tick in 2^32
    Ticks last_turn_ = 0;         // in which there was something to send
    std::uint64_t written_ = 0;
    unsigned first_ = 0;    // first frame of the burst that the port has not accepted
    unsigned pending_ = 0;  // how many of the burst it has not accepted
    std::array<typename Port::Frame*, burst_size> burst_{};
    tally::SenderTally tally_;
    LapseLog* lapses_ = nullptr;  // outlives the sender
};

}  // namespace evenhand::run
