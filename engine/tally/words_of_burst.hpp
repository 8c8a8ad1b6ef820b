// SPDX-License-Identifier: Apache-2.0
// Station 6, tally: which words of a sequence map the frames of a burst belong to, and which bits of them.
#pragma once

#include <array>
#include <cstdint>

namespace evenhand::tally {

/// Frames in a word.
constexpr std::uint64_t word_bits = 64;

/// Each word once, in the order of the numbers. There may also be words without a bit, whose number is in the first
/// word.
struct WordsOfBurst {
    static constexpr unsigned most_frames = 64;

    unsigned count = 0;
    std::array<std::uint64_t, most_frames> bits;    // for each word, the bits of the burst's frames
    std::array<std::uint64_t, most_frames> number;  // for each word, any number in it

    /// Sets word w. `number_in` is in that word; without bits, `in_first` is used in its place.
    void put(unsigned w, std::uint64_t number_in, std::uint64_t in_first, std::uint64_t word) noexcept {
        bits[w] = word;
        number[w] = word != 0 ? number_in : in_first;
    }
};

/// Collects the words of `count` numbers, 1 .. most_frames, which rise once `mask` is applied to each; the other bits
/// are the same in all of them.
using CollectVariant = void (*)(const std::uint64_t* numbers, unsigned count, std::uint64_t mask,
                                WordsOfBurst& words) noexcept;

/// "avx2" or "plain"; null if this CPU cannot, or there is none of that name.
[[nodiscard]] CollectVariant collect_variant(const char* name) noexcept;
/// The widest variant that this CPU can run.
[[nodiscard]] CollectVariant widest_collect() noexcept;

}  // namespace evenhand::tally
