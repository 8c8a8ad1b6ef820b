// SPDX-License-Identifier: Apache-2.0
// Station 6, tally: which frames of a direction have come. One bit a frame, so duplicates and losses are exact over a whole trial.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

namespace evenhand::tally {

/// Bits for the frames 0 .. frames-1 of one direction. Memory is taken and touched when it is made, never later: 60 s at
/// 14.88 Mfps take 112 MB. Several receivers may mark at once if the map is made `shared`; another thread may look meanwhile, and sees what was
/// marked some time ago.
class SequenceMap {
   public:
    SequenceMap() = default;
    /// Throws std::bad_alloc.
    SequenceMap(std::uint64_t frames, bool shared) : words_((frames + bits - 1) / bits), frames_{frames}, shared_{shared} {}

    [[nodiscard]] std::uint64_t frames() const noexcept { return frames_; }

    /// Marks frame k < frames(). True if it had been marked before: a duplicate.
    bool mark(std::uint64_t k) noexcept {
        std::uint64_t& word = words_[k / bits];
        const std::uint64_t bit = std::uint64_t{1} << (k % bits);
        if (shared_) return (std::atomic_ref{word}.fetch_or(bit, std::memory_order_relaxed) & bit) != 0;
        const std::uint64_t before = read(word);
        std::atomic_ref{word}.store(before | bit, std::memory_order_relaxed);
        return (before & bit) != 0;
    }

    [[nodiscard]] bool has(std::uint64_t k) const noexcept { return (read(words_[k / bits]) >> (k % bits) & 1U) != 0; }

    /// Frames of first .. last-1 that have not come.
    [[nodiscard]] std::uint64_t missing(std::uint64_t first, std::uint64_t last) const noexcept;

    /// Frames k of first + 1 .. last-1 that have come, as their predecessor k-1 has.
    [[nodiscard]] std::uint64_t pairs(std::uint64_t first, std::uint64_t last) const noexcept;

    /// The lowest missing numbers below `last`, `most` at the most.
    [[nodiscard]] std::vector<std::uint64_t> first_missing(std::uint64_t last, std::size_t most) const;

    /// The highest missing number.
    [[nodiscard]] std::optional<std::uint64_t> last_missing() const noexcept;

   private:
    static constexpr std::uint64_t bits = 64;
    /// A plain load, of a word that another thread may write.
    [[nodiscard]] static std::uint64_t read(const std::uint64_t& word) noexcept { return __atomic_load_n(&word, __ATOMIC_RELAXED); }

    std::vector<std::uint64_t> words_;
    std::uint64_t frames_ = 0;
    bool shared_ = false;
};

}  // namespace evenhand::tally
