// SPDX-License-Identifier: Apache-2.0
// Station 6, tally: which frames of a direction did not arrive, by the time at which they were due. Taken from the map
// piece by piece, in order.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <optional>
#include <vector>

#include "tally/sequence_map.hpp"

namespace evenhand::tally {

/// The losses among the frames that were taken so far, and how many of those whose delay counts have arrived.
class Losses {
   public:
    static constexpr std::size_t most_listed = 10;

    /// `counted_from`: the first frame whose delay counts.
    explicit Losses(std::uint64_t counted_from = 0) noexcept : counted_from_{counted_from} {}

    /// Takes the arrivals of the frames up to `last`, from where the last call ended; the map still holds them.
    void take_arrivals(const SequenceMap& map, std::uint64_t last) noexcept {
        const std::uint64_t first = std::max(arrivals_end_, counted_from_);
        if (first >= last) return;
        if (has_before_ && map.has(first)) ++pairs_;
        pairs_ += map.pairs(first, last);
        has_before_ = map.has(last - 1);
        came_ += last - first - map.missing(first, last);
        arrivals_end_ = last;
    }

    /// Takes the missing ones of the frames up to `last`, from where the last call ended. The map has settled those
    /// before, and still holds these. Frames that were never sent count, unless they are marked. `tenth_end(n)`: how
    /// many frames are due in the first n tenths of a second.
    template <std::invocable<std::uint64_t> TenthEnd>
    void take_missing(const SequenceMap& map, std::uint64_t last, TenthEnd tenth_end) {
        if (first_.size() < most_listed) {
            const auto more = map.first_missing(last, most_listed - first_.size());
            first_.insert(first_.end(), more.begin(), more.end());
        }
        if (const auto found = map.last_missing(last)) last_ = found;
        missing_of_counted_ += map.missing(std::max(end_, counted_from_), last);
        each_tenth(last, tenth_end, [&](std::uint64_t from, std::uint64_t until) { return map.missing(from, until); });
    }

    /// Notes that the frames up to `last` were not sent.
    template <std::invocable<std::uint64_t> TenthEnd>
    void take_unsent(std::uint64_t last, TenthEnd tenth_end) {
        each_tenth(last, tenth_end, [](std::uint64_t, std::uint64_t) { return std::uint64_t{0}; });
    }

    [[nodiscard]] const std::vector<std::uint64_t>& by_tenth() const noexcept { return by_tenth_; }
    /// The lowest missing numbers.
    [[nodiscard]] const std::vector<std::uint64_t>& first() const noexcept { return first_; }
    /// The highest missing number.
    [[nodiscard]] std::optional<std::uint64_t> last() const noexcept { return last_; }
    /// How many of the frames whose delay counts are missing; how many have arrived.
    [[nodiscard]] std::uint64_t missing_of_counted() const noexcept { return missing_of_counted_; }
    [[nodiscard]] std::uint64_t came_of_counted() const noexcept { return came_; }
    /// How many of the arrived frames have a predecessor that has arrived and whose delay counts, too.
    [[nodiscard]] std::uint64_t pairs() const noexcept { return pairs_; }

   private:
    template <class TenthEnd, class Count>
    void each_tenth(std::uint64_t last, TenthEnd& tenth_end, Count count) {
        while (end_ < last) {
            if (tenth_ == by_tenth_.size()) by_tenth_.push_back(0), tenth_ends_ = tenth_end(tenth_ + 1);
            const std::uint64_t until = std::clamp(tenth_ends_, end_, last);
            by_tenth_[tenth_] += count(end_, until);
            end_ = until;
            if (end_ >= tenth_ends_) ++tenth_;
        }
    }

    std::uint64_t counted_from_;
    std::uint64_t end_ = 0;  // all frames below it were searched for missing ones
    std::vector<std::uint64_t> by_tenth_;
    std::size_t tenth_ = 0;         // the one that frame end_ is due in
    std::uint64_t tenth_ends_ = 0;  // how many frames are due before the end of that tenth
    std::vector<std::uint64_t> first_;
    std::optional<std::uint64_t> last_;
    std::uint64_t missing_of_counted_ = 0;
    std::uint64_t arrivals_end_ = 0;  // the arrivals of all frames below it were taken
    std::uint64_t came_ = 0;
    std::uint64_t pairs_ = 0;
    bool has_before_ = false;  // whether frame arrivals_end_ - 1 has arrived, and its delay counts
};

}  // namespace evenhand::tally
