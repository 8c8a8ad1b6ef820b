// SPDX-License-Identifier: Apache-2.0
// Station 5, used while frames are sent: how far a direction has really been sent. The port may be slower than the
// schedule by some ppm, which is seconds after some hours. Frames that have not left can be neither settled nor lost.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "pace/clock.hpp"
#include "plan/plan.hpp"
#include "run/worker_trial.hpp"

namespace evenhand::run {

/// All of the tester's own frames of a direction below the result have left, as far as the workers have reported.
[[nodiscard]] inline std::uint64_t sent_until(const std::vector<std::unique_ptr<WorkerTrial>>& trials,
                                              plan::Direction direction) noexcept {
    std::uint64_t until = std::numeric_limits<std::uint64_t>::max();
    for (const auto& trial : trials) {
        const auto& so_far = trial->so_far[direction];
        until = std::min(until, so_far.sent_until.load(std::memory_order_relaxed));
    }
    return until;
}

/// Which of its own frames of a direction had left some time ago: only these can be missed. note() is to be called some
/// times a second; its result is exact, or too small by a few per cent of that time.
class HadLeft {
   public:
    /// For a direction about which nothing is known: all frames that are due have left.
    static constexpr std::uint64_t all_due = std::numeric_limits<std::uint64_t>::max();

    explicit HadLeft(pace::Ticks ago) noexcept : ago_{ago} {}

    /// All frames below `sent_until` have left at `now`, which is no earlier than in the last call. All frames below
    /// the result had left `ago` before `now`.
    [[nodiscard]] std::uint64_t note(pace::Ticks now, std::uint64_t sent_until) noexcept {
        if (sent_until == all_due) return all_due;
        if (notes_ == 0 || now - at(notes_ - 1).when >= ago_ / (kept - 2)) at(notes_++) = {now, sent_until};
        while (oldest_ + kept < notes_) ++oldest_;
        while (oldest_ < notes_ && now - at(oldest_).when >= ago_) left_ = at(oldest_++).sent_until;
        return left_;
    }

   private:
    static constexpr std::uint64_t kept = 64;
    struct Note {
        pace::Ticks when = 0;
        std::uint64_t sent_until = 0;
    };
    [[nodiscard]] Note& at(std::uint64_t number) noexcept { return last_[number % kept]; }

    pace::Ticks ago_;
    std::array<Note, kept> last_{};
    std::uint64_t notes_ = 0;
    std::uint64_t oldest_ = 0;  // the oldest note that is not older than ago_
    std::uint64_t left_ = 0;
};

}  // namespace evenhand::run
