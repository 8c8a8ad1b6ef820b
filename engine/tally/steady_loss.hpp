// SPDX-License-Identifier: Apache-2.0
// Station 6, tally: whether frames are lost all the time, or only near something that happened.
//
// A device that works as fast as an even load comes loses nothing of it, however many frames a lapse left in its
// queue: the queue becomes shorter, or stays as it is. So a device that goes on losing long after a lapse is
// overloaded. A few losses show nothing: while a queue is nearly full, unevenness that nobody noticed overruns it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tally/clean_time.hpp"

namespace evenhand::tally {

/// Counts the frames that are missing in windows of equal length. Allocates in its constructor only.
class SteadyLoss {
   public:
    /// For a trial that sends for at most `seconds`, of whose frames `loss_ratio` may be lost.
    SteadyLoss(double seconds, double loss_ratio);

    [[nodiscard]] double window_s() const noexcept { return window_s_; }
    [[nodiscard]] std::size_t windows() const noexcept { return frames_.size(); }
    /// Adds frames of a window, of one direction.
    void note(std::size_t window, std::uint64_t frames, std::uint64_t lost_frames) noexcept;

    /// Whether a second of the time outside these parts, which are in order, is one in which too many frames were lost
    /// in nine of ten windows; windows from `until_s` on are not known yet.
    [[nodiscard]] bool is_found(std::span<const LeftOut> without, double until_s) const noexcept;

   private:
    double window_s_ = 0;
    double loss_ratio_ = 0;
    std::vector<std::uint32_t> frames_;
    std::vector<std::uint32_t> lost_frames_;
};

}  // namespace evenhand::tally
