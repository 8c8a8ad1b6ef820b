// SPDX-License-Identifier: Apache-2.0
// Station 5, seen from the frame: counts repeated numbers among very many, in little memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "split_mix.hpp"

namespace evenhand::frame {

/// How many numbers of a series are equal to an earlier one. `for_each(take)` calls take(number) for each number. It is
/// called `shares` times; each time only the numbers of one share, which is chosen by the number itself, are kept and
/// sorted. So memory is needed for one share at a time, and equal numbers always meet in the same share.
template <class ForEach>
[[nodiscard]] std::uint64_t count_repeats(std::uint64_t shares, ForEach for_each) {
    std::vector<std::uint64_t> of_share;
    std::uint64_t repeats = 0;
    for (std::uint64_t share = 0; share < shares; ++share) {
        of_share.clear();
        for_each([&](std::uint64_t number) {
            if ((number * golden_multiplier >> 32U) % shares == share) of_share.push_back(number);
        });
        std::ranges::sort(of_share);
        repeats += std::ranges::unique(of_share).size();
    }
    return repeats;
}

}  // namespace evenhand::frame
