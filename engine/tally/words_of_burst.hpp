// SPDX-License-Identifier: Apache-2.0
// Station 6, tally: which words of a sequence map the frames of a burst belong to, and which bits of them.
#pragma once

#include <array>
#include <cstdint>

namespace evenhand::tally {

/// Frames of a word.
constexpr std::uint64_t word_bits = 64;

/// Each word once, in the order of the numbers; and perhaps words without a bit, whose number is one of the first word.
struct WordsOfBurst {
    static constexpr unsigned most_frames = 64;

    unsigned count = 0;
    std::array<std::uint64_t, most_frames> bits;    // of each word, those of the burst's frames
    std::array<std::uint64_t, most_frames> number;  // any number in it

    /// Word w, which is `number_in` that word unless it has no bit.
    void put(unsigned w, std::uint64_t number_in, std::uint64_t in_first, std::uint64_t word) noexcept {
        bits[w] = word;
        number[w] = word != 0 ? number_in : in_first;
    }
};

/// Of `count` numbers, 1 .. most_frames, which rise once `mask` is applied to each; what they have beyond it is the
/// same in all.
using CollectVariant = void (*)(const std::uint64_t* numbers, unsigned count, std::uint64_t mask,
                                WordsOfBurst& words) noexcept;

/// "avx2" or "plain"; null if this CPU cannot, or there is none of that name.
[[nodiscard]] CollectVariant collect_variant(const char* name) noexcept;
/// The widest that this CPU can.
[[nodiscard]] CollectVariant widest_collect() noexcept;

}  // namespace evenhand::tally
