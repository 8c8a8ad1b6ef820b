// SPDX-License-Identifier: Apache-2.0
// Station 6, tally: which words of a sequence map the frames of a burst belong to, and which bits of them.
#pragma once

#include <array>
#include <cstdint>

namespace evenhand::tally {

/// Frames of a word.
constexpr std::uint64_t word_bits = 64;

/// Each word once, in the order of the numbers.
struct WordsOfBurst {
    static constexpr unsigned most_frames = 64;

    unsigned count = 0;
    std::array<std::uint64_t, most_frames> bits;    // of each word, those of the burst's frames
    std::array<std::uint64_t, most_frames> number;  // any number in it

    /// One word more, unless it has none of them.
    void take(std::uint64_t number_in, std::uint64_t word) noexcept {
        bits[count] = word;
        number[count] = number_in;
        count += static_cast<unsigned>(word != 0);
    }
};

/// Of `count` numbers, 1 .. most_frames, which rise once `mask` is applied to each.
using CollectVariant = void (*)(const std::uint64_t* numbers, unsigned count, std::uint64_t mask,
                                WordsOfBurst& words) noexcept;

/// "avx2" or "plain"; null if this CPU cannot, or there is none of that name.
[[nodiscard]] CollectVariant collect_variant(const char* name) noexcept;
/// The widest that this CPU can. Wider than AVX2 gained nothing: what is left are the locked instructions of a map that
/// several receivers mark, one for each word.
[[nodiscard]] CollectVariant widest_collect() noexcept;

}  // namespace evenhand::tally
