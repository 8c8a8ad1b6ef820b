// SPDX-License-Identifier: Apache-2.0
// Station 5, seen from the frame: how many of very many numbers came before, in little memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "split_mix.hpp"

namespace evenhand::frame {

/// How many of a series of numbers an earlier one equals. `for_each(take)` calls take(number) for each of them; it is
/// called `shares` times, and each time one share of the numbers, chosen by the number itself, is kept and sorted. So
/// memory is taken for one share at a time, and numbers that are equal meet, wherever in the series they are.
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
