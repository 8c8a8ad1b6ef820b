// SPDX-License-Identifier: Apache-2.0
// Forward: when the frames arrived that a look at the ports has found.
//
// The router looks as often as it can, but another program or the hypervisor may have its CPU for a while, and the
// frames that are found then arrived all along. So each look stands for a span of time over which its frames arrived
// evenly, so that an absence does not fill queues that would not have been full.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "pace/clock.hpp"
#include "tables/interface.hpp"

namespace evenhand::router {

using pace::Ticks;

/// How many frames one look brought from each port; 0 for ports that do not exist.
using FramesByPort = std::array<std::size_t, most_interfaces>;

/// The frames of one look arrived evenly from `from` (exclusive) to `until`.
struct ArrivalSpan {
    Ticks from = 0;
    Ticks until = 0;

    /// Ticks between consecutive frames, if `frames` of them arrived on one port.
    [[nodiscard]] double spacing(std::size_t frames) const noexcept {
        return frames == 0 ? 0 : static_cast<double>(until - from) / static_cast<double>(frames);
    }
    /// When the frame with this number, from 0, arrived.
    [[nodiscard]] Ticks arrival(std::size_t number, double spacing) const noexcept {
        return from + static_cast<Ticks>(static_cast<double>(number + 1) * spacing);
    }
};

/// Decides how many frames a look may take, and says when they arrived. Times begin at 0 and never go back.
class ArrivalTimes {
   public:
    /// The most frames of one look at a port. More would displace each other from the cache: when 16,384 are taken at
    /// once, each takes three times as long.
    static constexpr unsigned most_of_look = 256;
    /// After an absence, as many as the largest ring holds, so that their number shows how fast they arrived.
    static constexpr unsigned most_after_absence = 16384;

    /// `matter`: whether anything depends on arrival times. If not, absences are ignored.
    ArrivalTimes(Ticks ticks_per_second, bool matter) noexcept : ticks_per_second_{ticks_per_second}, matter_{matter} {}

    /// How many frames the look at `now` may take from each port.
    [[nodiscard]] unsigned most(Ticks now) const noexcept { return was_away(now) ? most_after_absence : most_of_look; }

    /// To be called after the look at `now`, which brought `came` frames from each port and was allowed to take `most`.
    [[nodiscard]] ArrivalSpan look(const FramesByPort& came, unsigned most, Ticks now) noexcept {
        const auto largest = *std::max_element(came.begin(), came.end());
        if (largest > most_of_look) {
            ++looks_after_absence_;
        } else if (largest < most_of_look) {
            looks_after_absence_ = 0;
        }
        const ArrivalSpan span{.from = until_, .until = end_of(came, most, now)};
        until_ = span.until;
        last_look_ = now;
        return span;
    }

    [[nodiscard]] Ticks last_look() const noexcept { return last_look_; }

   private:
    /// For this many looks, or until one leaves nothing behind. An overloaded router is away because it took so many
    /// frames.
    static constexpr unsigned most_looks_after_absence = 4;
    static constexpr double unknown = 1e12;  // ticks: longer than any gap

    static std::array<double, most_interfaces> all_unknown() noexcept {
        std::array<double, most_interfaces> spacing{};
        spacing.fill(unknown);
        return spacing;
    }

    /// Whether another program or the hypervisor had the CPU, so that the frames that arrived meanwhile need times.
    [[nodiscard]] bool was_away(Ticks now) const noexcept {
        return now - last_look_ > ticks_per_second_ / 1000 && looks_after_absence_ < most_looks_after_absence &&
               matter_;
    }

    /// Until when the frames of this look have arrived: until now if the ports have no more. Otherwise for as long as
    /// that many take at the recent rate, since the frames behind them arrived later.
    [[nodiscard]] Ticks end_of(const FramesByPort& came, unsigned most, Ticks now) noexcept {
        Ticks until = now;
        bool is_behind = false;
        for (std::size_t in = 0; in < came.size(); ++in) {
            frames_[in] += came[in];
            if (came[in] < most) continue;
            is_behind = true;
            until = std::min(until, until_ + static_cast<Ticks>(static_cast<double>(came[in]) * spacing_[in]));
        }
        if (!is_behind) note_rates(now);
        return until;
    }

    /// Measures rates over spans of at least ten milliseconds. Both ends of a span are looks that left nothing behind,
    /// so that its frames are exactly those that arrived in it.
    void note_rates(Ticks now) noexcept {
        const Ticks span = now - rates_since_;
        if (span < ticks_per_second_ / 100) return;
        for (std::size_t in = 0; in < frames_.size(); ++in) {
            spacing_[in] = static_cast<double>(span) / static_cast<double>(std::max<std::uint64_t>(1, frames_[in]));
            frames_[in] = 0;
        }
        rates_since_ = now;
    }

    Ticks ticks_per_second_;
    bool matter_;
    Ticks last_look_ = 0;
    Ticks until_ = 0;                                      // until when frames have arrived, according to the model
    unsigned looks_after_absence_ = 0;                     // since a look left nothing behind
    Ticks rates_since_ = 0;                                // when the frames below began to arrive
    std::array<std::uint64_t, most_interfaces> frames_{};  // by port
    std::array<double, most_interfaces> spacing_ = all_unknown();  // recently: ticks between consecutive frames
};

}  // namespace evenhand::router
