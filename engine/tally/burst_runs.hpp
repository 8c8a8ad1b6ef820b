// SPDX-License-Identifier: Apache-2.0
// Station 6, tally: consecutive frames of a burst that have something in common.
#pragma once

#include <bit>
#include <cstdint>

namespace evenhand::tally {

/// Places first .. end-1 of a burst, divided into runs. The number of iterations depends on how many runs there are,
/// not on how long they are.
class BurstRuns {
   public:
    /// `beginnings`: bit i is set if a run begins at place i; a run begins at `first` in any case. first < end <= 64.
    BurstRuns(std::uint64_t beginnings, unsigned first, unsigned end) noexcept
        : rest_{(beginnings & ~std::uint64_t{0} >> (64 - end)) >> first >> 1U}, first_{first}, end_{end} {}

    /// Calls run(from, until) for each run, in order; the run has the places from .. until-1.
    template <class Run>
    [[gnu::always_inline]] void for_each(Run run) const noexcept {
        unsigned from = first_;
        for (std::uint64_t rest = rest_; rest != 0; rest &= rest - 1) {
            const auto until = first_ + 1 + static_cast<unsigned>(std::countr_zero(rest));
            run(from, until);
            from = until;
        }
        run(from, end_);
    }

   private:
    std::uint64_t rest_;  // beginnings after `first`
    unsigned first_;
    unsigned end_;
};

}  // namespace evenhand::tally
