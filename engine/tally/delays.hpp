// SPDX-License-Identifier: Apache-2.0
// Station 6, tally: the delays of single frames that a trial records on request (RFC 8219 sections 7.2 and 7.3).
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "tally/latency_histogram.hpp"

namespace evenhand::tally {

/// What is recorded. Frames are numbered over the whole direction, whichever of several testers sends them.
struct DelayWish {
    std::uint64_t first = 0;      // delays of frames below it do not count
    std::uint64_t tag_first = 0;  // from this one on, which is not below `first`, ...
    std::uint64_t tag_every = 1;  // ... each of these is tagged ...
    std::uint64_t tagged = 0;     // ... until this many are
    bool has_variation = false;   // IPDV as well
};

/// Differences of two delays, in ticks: signed, and as precise as LatencyHistogram.
class VariationHistogram {
   public:
    void record(std::int64_t difference) noexcept {
        if (difference < 0) {
            below_.record(static_cast<std::uint64_t>(-difference));
        } else {
            from_zero_.record(static_cast<std::uint64_t>(difference));
        }
    }
    void add(const VariationHistogram& other) noexcept;

    [[nodiscard]] std::uint64_t count() const noexcept { return below_.count() + from_zero_.count(); }
    /// Calls visit(lowest, highest, count) for each bucket that is not empty.
    template <class Visit>
    void for_each_bucket(Visit visit) const {
        below_.for_each_range([&](std::uint64_t lowest, std::uint64_t highest, std::uint64_t count) {
            visit(-static_cast<std::int64_t>(highest), -static_cast<std::int64_t>(lowest), count);
        });
        from_zero_.for_each_range([&](std::uint64_t lowest, std::uint64_t highest, std::uint64_t count) {
            visit(static_cast<std::int64_t>(lowest), static_cast<std::int64_t>(highest), count);
        });
    }

   private:
    LatencyHistogram below_;  // magnitudes
    LatencyHistogram from_zero_;
};

/// The delays of one direction's latest frames, to find the predecessor and the successor of each, in whichever order
/// they arrive. Allocates in its constructor only. Several receivers may call note() at once if it was made `shared`.
class DelayWindow {
   public:
    static constexpr unsigned index_bits = 16;
    static constexpr std::uint64_t frames = std::uint64_t{1}
                                            << index_bits;  // a frame that is overtaken by more frames has no pair

    explicit DelayWindow(bool shared) : slots_(frames), shared_{shared} {}

    /// Frame k has arrived, for the first time, after `delay` ticks. Calls visit(D(i) - D(i-1)) for each pair that it
    /// completes. Each pair is visited once, by the receiver that noted the later one of its frames.
    template <class Visit>
    void note(std::uint64_t k, std::uint64_t delay, Visit visit) noexcept {
        delay = delay < most_delay ? delay : most_delay;
        slot(k).store(entry_of(k) | delay, shared_ ? std::memory_order_seq_cst : std::memory_order_relaxed);
        if (k != 0) {
            if (const auto before = read(k - 1); is_of(before, k - 1) && claim(k))
                visit(static_cast<std::int64_t>(delay) - delay_of(before));
        }
        if (const auto after = read(k + 1); is_of(after, k + 1) && claim(k + 1))
            visit(delay_of(after) - static_cast<std::int64_t>(delay));
    }

   private:
    // An entry: 23 bits of the frame's number, a bit for "paired with its predecessor", 40 bits of delay. 0 is no
    // frame.
    static constexpr unsigned delay_bits = 40;
    static constexpr std::uint64_t most_delay = (std::uint64_t{1} << delay_bits) - 1;
    static constexpr std::uint64_t claimed = std::uint64_t{1} << delay_bits;

    [[nodiscard]] static std::uint64_t entry_of(std::uint64_t k) noexcept {
        return ((k >> index_bits) + 1) << (delay_bits + 1);
    }
    [[nodiscard]] static bool is_of(std::uint64_t entry, std::uint64_t k) noexcept {
        return (entry >> (delay_bits + 1)) == (entry_of(k) >> (delay_bits + 1));
    }
    [[nodiscard]] static std::int64_t delay_of(std::uint64_t entry) noexcept {
        return static_cast<std::int64_t>(entry & most_delay);
    }
    [[nodiscard]] std::atomic<std::uint64_t>& slot(std::uint64_t k) noexcept { return slots_[k % frames]; }
    [[nodiscard]] std::uint64_t read(std::uint64_t k) noexcept {
        return slot(k).load(shared_ ? std::memory_order_seq_cst : std::memory_order_relaxed);
    }

    /// Two receivers may note both frames of a pair at the same time and see each other's; only one of them gets the
    /// pair. Without other receivers there is no such conflict.
    [[nodiscard]] bool claim(std::uint64_t k) noexcept {
        if (!shared_) return true;
        const auto before = slot(k).fetch_or(claimed, std::memory_order_seq_cst);
        return is_of(before, k) && (before & claimed) == 0;
    }

    std::vector<std::atomic<std::uint64_t>> slots_;
    bool shared_;
};

/// The delays that the receivers of one direction record together. Outlives the trial and is read after it.
class DelayTracks {
   public:
    /// Throws std::bad_alloc.
    DelayTracks(const DelayWish& wish, bool shared) : wish_{wish}, tagged_(wish.tagged) {
        if (wish.has_variation) window_.emplace(shared);
    }

    [[nodiscard]] const DelayWish& wish() const noexcept { return wish_; }
    [[nodiscard]] std::uint64_t tag_sequence(std::uint64_t n) const noexcept {
        return wish_.tag_first + n * wish_.tag_every;
    }

    /// Frame k >= wish().first has arrived, for the first time. `place`: its place among the tester's own frames, whose
    /// predecessor was sent before it on the same link. Calls visit(difference) as DelayWindow does.
    template <class Visit>
    void note(std::uint64_t k, std::uint64_t place, std::uint64_t delay, Visit visit) noexcept {
        if (std::uint64_t* const tag = tag_of(k); tag != nullptr) *tag = delay + 1;
        if (window_) window_->note(place, delay, visit);
    }

    /// Frame k >= wish().first has arrived, for the first time, but its delay does not count, because the tester sent
    /// it late.
    void leave_out(std::uint64_t k) noexcept {
        if (std::uint64_t* const tag = tag_of(k); tag != nullptr) *tag = left_out;
    }

    /// The delay of the nth tagged frame in ticks; nothing if it has not arrived. Only for frames that were not left
    /// out.
    [[nodiscard]] std::optional<std::uint64_t> tagged(std::size_t n) const noexcept {
        return tagged_[n] == 0 ? std::nullopt : std::optional{tagged_[n] - 1};
    }
    [[nodiscard]] bool is_left_out(std::size_t n) const noexcept { return tagged_[n] == left_out; }

   private:
    static constexpr std::uint64_t left_out = ~std::uint64_t{0};

    [[nodiscard]] std::uint64_t* tag_of(std::uint64_t k) noexcept {
        if (tagged_.empty() || k < wish_.tag_first) return nullptr;  // no division for a trial without tags
        const std::uint64_t n = (k - wish_.tag_first) / wish_.tag_every;
        return n < tagged_.size() && k == tag_sequence(n) ? &tagged_[n] : nullptr;
    }

    DelayWish wish_;
    std::vector<std::uint64_t> tagged_;  // delay + 1; each written once, by the receiver that got the frame
    std::optional<DelayWindow> window_;
};

}  // namespace evenhand::tally
