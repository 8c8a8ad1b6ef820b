// SPDX-License-Identifier: Apache-2.0
// Tables: finds an entry of another table by the hash of its key.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace evenhand::router {

/// Open addressing: an entry is in the first free slot from the one of its hash on. At most `Filled` of each `Slots`
/// slots are taken. Allocates nothing after the constructor. Among entries with equal keys, the one that was added
/// first is found.
///
/// Used instead of std::unordered_map, which follows two pointers to separately allocated memory for each entry,
/// divides by a prime, and allocates. Here a search mostly reads one slot of 8 octets and one entry. The slot has the
/// whole hash, so that other entries are skipped without reading them, and a removal can move the slots behind it.
template <std::size_t Filled, std::size_t Slots>
    requires(Filled < Slots)
class EntryIndex {
   public:
    using Entry = std::uint32_t;
    static constexpr Entry none = std::numeric_limits<Entry>::max();

    /// Has room for `capacity` entries.
    explicit EntryIndex(std::size_t capacity) : slots_(slots_for(capacity)), mask_{slots_.size() - 1} {}

    /// The first entry with this hash for which is(entry) is true; `none` if there is none.
    template <class Is>
    [[nodiscard]] Entry find(std::uint32_t hash, Is&& is) const noexcept {
        for (std::size_t at = hash & mask_; slots_[at].number != 0; at = (at + 1) & mask_) {
            if (slots_[at].hash == hash && is(slots_[at].number - 1)) return slots_[at].number - 1;
        }
        return none;
    }

    /// `entry`: any number but `none`.
    void add(std::uint32_t hash, Entry entry) noexcept {
        std::size_t at = hash & mask_;
        while (slots_[at].number != 0) at = (at + 1) & mask_;
        slots_[at] = {.hash = hash, .number = entry + 1};
    }

    /// The entry must be in the index, with this hash.
    void remove(std::uint32_t hash, Entry entry) noexcept {
        std::size_t hole = hash & mask_;
        while (slots_[hole].number != entry + 1) hole = (hole + 1) & mask_;
        // Backward-shift deletion: a slot behind the hole moves up if its entry could have been put there without the
        // entry that is removed, so that no search ends at the hole too early.
        for (std::size_t at = (hole + 1) & mask_; slots_[at].number != 0; at = (at + 1) & mask_) {
            const std::size_t home = slots_[at].hash & mask_;
            if (((at - home) & mask_) < ((at - hole) & mask_)) continue;
            slots_[hole] = slots_[at];
            hole = at;
        }
        slots_[hole] = {};
    }

    void clear() noexcept { std::ranges::fill(slots_, Slot{}); }

    /// A power of two; one of them is always free, so that a search ends.
    [[nodiscard]] static constexpr std::size_t slots_for(std::size_t capacity) noexcept {
        return std::bit_ceil(std::max((capacity * Slots + Filled - 1) / Filled, capacity + 1));
    }

   private:
    struct Slot {
        std::uint32_t hash = 0;
        std::uint32_t number = 0;  // number of the entry + 1; 0: the slot is free
    };

    std::vector<Slot> slots_;
    std::size_t mask_;
};

}  // namespace evenhand::router
