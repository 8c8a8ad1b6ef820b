// SPDX-License-Identifier: Apache-2.0
// Station 6, tally: which frames of a direction have arrived. One bit for each frame, so that duplicates and losses are
// exact over a whole trial.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cassert>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "tally/words_of_burst.hpp"

namespace evenhand::tally {

/// Bits for the frames 0 .. frames()-1 of one direction. Allocates and touches all memory in its constructor.
///
/// For a trial of at most `most_held` frames it holds all of them from beginning to end. For a longer one it is a ring
/// of windows: settle() makes room for frames that will soon be due, by giving up frames of which none can arrive any
/// more. The map holds the frames from begin() to end(). Frames below settled() were counted and are gone; those
/// between settled() and begin() are kept until every receiver that may have read an older begin() has marked its
/// frame.
///
/// Several threads may mark at once, in one of two ways. They may mark the same bits (`shared`): then mark() reports
/// whether any of them has marked the frame before, at the price of an instruction that waits for other CPUs. Or each
/// thread has a part of its own (apart()): then marking takes no longer than with one thread, and frames that two
/// threads have marked are found when the parts are brought together. One more thread may read and settle meanwhile; it
/// sees the frames of all parts, as they were marked some time ago.
class SequenceMap {
   public:
    /// 128 MiB for each part: more than seven seconds at 148.8 Mfps.
    static constexpr std::uint64_t most_held = std::uint64_t{1} << 30U;
    /// 8 MiB: more frames than a DUT can hold up.
    static constexpr std::uint64_t least_held = std::uint64_t{1} << 26U;
    static constexpr std::uint64_t windows = 64;

    /// The part of the map in which one thread marks.
    class Part {
       public:
        Part() = default;

        /// Marks frame k, which the map holds. True if it was marked in this part before: a duplicate.
        bool mark(std::uint64_t k) noexcept {
            const std::uint64_t bit = std::uint64_t{1} << (k % bits);
            return (join(k, bit) & bit) != 0;
        }

        /// Marks `count` frames, 1 .. most_at_once, all of which the map holds. Their numbers, after `& mask`, rise;
        /// the other bits are the same in all numbers. Bit i of the result: frame i was marked in this part before.
        std::uint64_t mark_rising(const std::uint64_t* numbers, unsigned count,
                                  std::uint64_t mask = ~std::uint64_t{0}) noexcept {
            const std::uint64_t first = numbers[0] & mask;
            if ((numbers[count - 1] & mask) - first == count - 1) return mark_all(first, count);
            // In one queue of several, the numbers have gaps.
            WordsOfBurst words;
            collect_(numbers, count, mask, words);
            std::uint64_t any = 0;
            for (unsigned w = 0; w < words.count; ++w) any |= words.bits[w] &= join(words.number[w], words.bits[w]);
            if (any == 0) [[likely]]
                return 0;
            std::uint64_t before = 0;
            for (unsigned i = 0, w = 0; i < count; ++i) {
                const std::uint64_t number = numbers[i] & mask;
                while (number / bits != words.number[w] / bits) ++w;
                before |= (words.bits[w] >> (number % bits) & 1U) << i;
            }
            return before;
        }

       private:
        friend SequenceMap;
        Part(std::uint64_t* words, std::uint64_t mask, bool shared, CollectVariant collect) noexcept
            : words_{words}, mask_{mask}, shared_{shared}, collect_{collect} {}

        /// Sets bits in the word of frame k. Returns the word's previous value.
        std::uint64_t join(std::uint64_t k, std::uint64_t word_bits) noexcept {
            std::uint64_t& word = words_[(k & mask_) / bits];
            if (shared_) return std::atomic_ref{word}.fetch_or(word_bits, std::memory_order_relaxed);
            const std::uint64_t before = read(word);
            std::atomic_ref{word}.store(before | word_bits, std::memory_order_relaxed);
            return before;
        }

        /// mark_rising() for numbers without gaps, which are in at most two words.
        std::uint64_t mark_all(std::uint64_t first, unsigned count) noexcept {
            const std::uint64_t all = ~std::uint64_t{0} >> (bits - count);
            const std::uint64_t place = first % bits;
            const std::uint64_t before = join(first, all << place) >> place;
            if (place + count <= bits) return before & all;
            const std::uint64_t in_first = bits - place;
            return (before | join(first + in_first, all >> in_first) << in_first) & all;
        }

        std::uint64_t* words_ = nullptr;
        std::uint64_t mask_ = 0;
        bool shared_ = false;
        CollectVariant collect_ = nullptr;
    };

    /// The largest count for Part::mark_rising().
    static constexpr unsigned most_at_once = WordsOfBurst::most_frames;

    SequenceMap() = default;
    /// `held`: a power of two, at least 64 frames for each window. Throws std::bad_alloc.
    SequenceMap(std::uint64_t frames, bool shared, std::uint64_t held = most_held)
        : SequenceMap{frames, 1, shared, held} {}
    /// The same for several threads, each of which has a part of its own.
    [[nodiscard]] static SequenceMap apart(std::uint64_t frames, unsigned threads, std::uint64_t held = most_held) {
        return {frames, threads, false, held};
    }
    /// What is to be held where a frame may arrive until `frames` more have left. A window is closed when five eighths
    /// of what is held have left after it.
    [[nodiscard]] static std::uint64_t held_for(double frames) noexcept {
        constexpr double closed_after = 0.625;
        const double wanted = frames / closed_after;
        return wanted >= static_cast<double>(most_held)
                   ? most_held
                   : std::max(least_held, std::bit_ceil(static_cast<std::uint64_t>(wanted)));
    }
    /// How much memory a map needs.
    [[nodiscard]] static std::uint64_t octets(std::uint64_t frames, unsigned parts, std::uint64_t held = most_held) {
        return parts * words_of_a_part(frames, held) * sizeof(std::uint64_t);
    }

    [[nodiscard]] std::uint64_t frames() const noexcept { return frames_; }
    /// The lowest frame that may be marked.
    [[nodiscard]] std::uint64_t begin() const noexcept { return read(begin_); }
    /// One more than the highest frame that may be marked.
    [[nodiscard]] std::uint64_t end() const noexcept { return std::min(frames_, begin() + room_); }
    /// Whether frame k may be marked: it has not been given up, and is not far ahead of those that are due.
    [[nodiscard]] bool holds(std::uint64_t k) const noexcept { return k - begin() < room_; }
    /// For frames below it, only missing_below_settled() is known.
    [[nodiscard]] std::uint64_t settled() const noexcept { return settled_; }
    [[nodiscard]] std::uint64_t missing_below_settled() const noexcept { return missing_below_settled_; }

    /// The part for this thread, 0 .. number of threads - 1; the same for all where bits are shared. The map outlives
    /// it.
    [[nodiscard]] Part part(std::size_t thread) noexcept {
        assert(parts_ == 1 || thread < parts_);
        return {words_.data() + (parts_ == 1 ? 0 : thread * words_of_part_), mask_, shared_, collect_};
    }

    /// To be called when no thread marks any more: from now on the first part has all frames, and copies() are known.
    void bring_together() noexcept { bring_together(settled_, end()); }
    /// Frames that this thread has marked in its part and an earlier thread in its own, too: duplicates that neither
    /// knew of.
    [[nodiscard]] std::uint64_t copies(std::size_t thread) const noexcept { return parts_ == 1 ? 0 : copies_[thread]; }
    /// Marks in the first part, which any thread may do once all parts are brought together.
    bool mark(std::uint64_t k) noexcept { return part(0).mark(k); }

    /// Whether frame k, settled() <= k < end(), has arrived. The functions below accept the same range, and ignore
    /// frames outside it.
    [[nodiscard]] bool has(std::uint64_t k) const noexcept { return (word_of(k) >> (k % bits) & 1U) != 0; }

    /// How many of the frames first .. last-1 have not arrived.
    [[nodiscard]] std::uint64_t missing(std::uint64_t first, std::uint64_t last) const noexcept;

    /// How many frames k of first + 1 .. last-1 have arrived, as well as their predecessor k-1.
    [[nodiscard]] std::uint64_t pairs(std::uint64_t first, std::uint64_t last) const noexcept;

    /// Calls `see` with each missing number of first .. last-1, in order.
    template <std::invocable<std::uint64_t> See>
    void each_missing(std::uint64_t first, std::uint64_t last, See see) const {
        last = std::min(last, end());
        for (std::uint64_t k = std::max(first, settled_); k < last;) {
            if (k % bits == 0 && word_of(k) == ~std::uint64_t{0}) {
                k += bits;
                continue;
            }
            if (!has(k)) see(k);
            ++k;
        }
    }

    /// The lowest missing numbers below `last`, at most `most` of them.
    [[nodiscard]] std::vector<std::uint64_t> first_missing(std::uint64_t last, std::size_t most) const;

    /// The highest missing number below `last`; nothing if there is none.
    [[nodiscard]] std::optional<std::uint64_t> last_missing(std::uint64_t last) const noexcept;

    /// Frames below `left` have been sent by now: makes room for the next ones, a quarter of what is held. Calls
    /// take(last) for each window that ends before `last`, from settled() on, while it can still be read. Does nothing
    /// if all frames are held. To be called by one thread, some times a second; a call that comes too late is made up
    /// for by the next ones.
    template <std::invocable<std::uint64_t> Take>
    void settle(std::uint64_t sent, Take take) {
        const std::uint64_t wanted = std::min(frames_, std::min(frames_, sent) + held_ / lead_share);
        for (std::uint64_t n = 0; n < closed_windows && begin_ + room_ < wanted; ++n) {
            // What is settled here was closed by an earlier call, so no receiver is about to mark in it any more.
            if (begin_ + room_ + window() > settled_ + held_) settle_window(take);
            std::atomic_ref{begin_}.store(begin_ + window(), std::memory_order_release);
        }
    }

   private:
    static constexpr std::uint64_t bits = word_bits;
    static constexpr std::uint64_t closed_windows = windows / 8;
    static constexpr std::uint64_t lead_share = 4;
    static constexpr std::size_t words_of_line = 8;  // of a cache line, which no two parts share

    [[nodiscard]] static std::size_t words_of_a_part(std::uint64_t frames, std::uint64_t held) noexcept {
        return (std::min(frames, held) + bits - 1) / bits + words_of_line;
    }

    SequenceMap(std::uint64_t frames, unsigned parts, bool shared, std::uint64_t held)
        : words_of_part_{words_of_a_part(frames, held)},
          words_(parts * words_of_part_),
          parts_{parts},
          copies_(parts),
          frames_{frames},
          shared_{shared},
          room_{frames} {
        if (frames <= held) return;
        held_ = held;
        mask_ = held - 1;
        room_ = held - closed_windows * window();
    }

    [[nodiscard]] std::uint64_t window() const noexcept { return held_ / windows; }
    /// A plain load of a word that another thread may write.
    [[nodiscard]] static std::uint64_t read(const std::uint64_t& word) noexcept {
        return __atomic_load_n(&word, __ATOMIC_RELAXED);
    }
    [[nodiscard]] const std::uint64_t& word_of_part(std::size_t part, std::uint64_t k) const noexcept {
        return words_[part * words_of_part_ + (k & mask_) / bits];
    }
    /// The word of frame k, with the frames of all parts.
    [[nodiscard]] std::uint64_t word_of(std::uint64_t k) const noexcept {
        std::uint64_t word = read(word_of_part(0, k));
        if (k < together_) return word;
        for (std::size_t p = 1; p < parts_; ++p) word |= read(word_of_part(p, k));
        return word;
    }
    void put(std::size_t part, std::uint64_t k, std::uint64_t word) noexcept {
        std::atomic_ref{words_[part * words_of_part_ + (k & mask_) / bits]}.store(word, std::memory_order_relaxed);
    }
    /// For the frames first .. last-1, where `first` begins a word, and which no thread marks any more.
    void bring_together(std::uint64_t first, std::uint64_t last) noexcept;

    template <class Take>
    void settle_window(Take& take) {
        const std::uint64_t last = settled_ + window();
        bring_together(settled_, last);
        take(last);
        missing_below_settled_ += missing(settled_, last);
        for (std::uint64_t k = settled_; k < last; k += bits) put(0, k, 0);
        settled_ = last;
    }

    std::size_t words_of_part_ = 0;
    std::vector<std::uint64_t> words_;
    std::size_t parts_ = 1;
    std::vector<std::uint64_t> copies_;  // of each part, for frames below together_
    std::uint64_t together_ = 0;         // the first part alone has all frames below it
    std::uint64_t frames_ = 0;
    bool shared_ = false;
    CollectVariant collect_ = widest_collect();
    std::uint64_t mask_ = ~std::uint64_t{0};  // gives a frame's place among those that are held
    std::uint64_t held_ = 0;                  // frames of the ring; 0 if all frames are held
    std::uint64_t room_ = 0;
    std::uint64_t begin_ = 0;
    std::uint64_t settled_ = 0;
    std::uint64_t missing_below_settled_ = 0;
};

/// Counts the missing frames of a map up to some frame, step by step while receivers mark in it. Frames that were given
/// up since then count as they did when they were given up.
class MissingSoFar {
   public:
    [[nodiscard]] std::uint64_t looked_at() const noexcept { return looked_at_; }
    [[nodiscard]] std::uint64_t missing() const noexcept { return missing_; }

    /// To be called before the others: the map may have settled more frames than were looked at.
    void catch_up(const SequenceMap& map) noexcept {
        if (map.settled() > looked_at_) looked_at_ = map.settled(), missing_ = map.missing_below_settled();
    }
    /// Frames below `last` are now looked at; `missing` of those that were not before are missing.
    void add(std::uint64_t last, std::uint64_t missing) noexcept { looked_at_ = last, missing_ += missing; }

   private:
    std::uint64_t looked_at_ = 0;
    std::uint64_t missing_ = 0;
};

}  // namespace evenhand::tally
