// SPDX-License-Identifier: Apache-2.0
// Elements: frames that wait for their departure, by time.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "pace/clock.hpp"

namespace evenhand::router {

using pace::Ticks;

/// A wheel of time slots with a list in each. Adding and taking take the same time however many frames wait; nothing is
/// allocated after the constructor. Frames of one element leave in the order in which they were added, since their
/// departures increase.
template <class Item>
class Calendar {
   public:
    /// Holds `capacity` items that leave within `horizon` ticks after the last advance().
    Calendar(std::size_t capacity, Ticks horizon, Ticks start)
        : slot_shift_{std::max(least_slot_shift, static_cast<unsigned>(std::bit_width(horizon / slots)))},
          slots_(slots),
          nodes_(capacity),
          cursor_{start >> slot_shift_} {
        for (std::size_t i = 0; i < capacity; ++i) nodes_[i].next = i + 1 < capacity ? static_cast<Index>(i + 1) : none;
        free_ = capacity != 0 ? 0 : none;
    }

    /// False if it is full. A departure in the past leaves with the next advance(). A departure beyond the horizon,
    /// which the caller has excluded, leaves early.
    [[nodiscard]] bool add(const Item& item, Ticks departure) noexcept {
        if (free_ == none) return false;
        const Index index = free_;
        Node& node = nodes_[index];
        free_ = node.next;
        node = {.departure = departure, .item = item, .next = none};
        Slot& slot = slots_[std::clamp(departure >> slot_shift_, cursor_, cursor_ + slots - 1) & (slots - 1)];
        if (slot.first == none) {
            slot.first = index;
        } else {
            nodes_[slot.last].next = index;
        }
        slot.last = index;
        ++waiting_;
        return true;
    }

    /// Hands the items of all slots that end before `now` to leave(item, departure): cheap enough to be called for each
    /// frame.
    template <class Leave>
    void pass(Ticks now, Leave&& leave) noexcept {
        const Ticks until = now >> slot_shift_;
        if (waiting_ == 0) {
            cursor_ = std::max(cursor_, until);
            return;
        }
        // Once around the wheel is enough, however long ago the last call was.
        if (until > cursor_ + slots) {
            for (Ticks i = 0; i < slots; ++i, ++cursor_) empty(slots_[cursor_ & (slots - 1)], leave);
            cursor_ = until;
        }
        for (; cursor_ < until; ++cursor_) empty(slots_[cursor_ & (slots - 1)], leave);
    }

    /// Hands every item whose departure is not after `now` to leave(item, departure).
    template <class Leave>
    void advance(Ticks now, Leave&& leave) noexcept {
        pass(now, leave);
        take_due(slots_[cursor_ & (slots - 1)], now, leave);
    }

    [[nodiscard]] std::size_t waiting() const noexcept { return waiting_; }

   private:
    using Index = std::uint32_t;
    static constexpr Index none = std::numeric_limits<Index>::max();
    static constexpr Ticks slots = 1U << 16U;
    static constexpr unsigned least_slot_shift = 6;  // narrower slots would only take time to walk over

    struct Node {
        Ticks departure = 0;
        Item item{};
        Index next = none;
    };
    struct Slot {
        Index first = none;
        Index last = none;
    };

    template <class Leave>
    void empty(Slot& slot, Leave&& leave) noexcept {
        for (Index i = slot.first; i != none;) i = take(i, leave);
        slot = {};
    }

    /// Handles the slot that contains `now`: some of its items are due, the others stay in their order.
    template <class Leave>
    void take_due(Slot& slot, Ticks now, Leave&& leave) noexcept {
        Slot kept;
        for (Index i = slot.first; i != none;) {
            const Index next = nodes_[i].next;
            if (nodes_[i].departure <= now) {
                take(i, leave);
            } else {
                nodes_[i].next = none;
                if (kept.first == none) {
                    kept.first = i;
                } else {
                    nodes_[kept.last].next = i;
                }
                kept.last = i;
            }
            i = next;
        }
        slot = kept;
    }

    template <class Leave>
    Index take(Index index, Leave&& leave) noexcept {
        Node& node = nodes_[index];
        const Index next = node.next;
        leave(node.item, node.departure);
        node.next = free_;
        free_ = index;
        --waiting_;
        return next;
    }

    unsigned slot_shift_;
    std::vector<Slot> slots_;
    std::vector<Node> nodes_;
    Index free_ = none;
    Ticks cursor_;  // number of the slot that was handled last
    std::size_t waiting_ = 0;
};

}  // namespace evenhand::router
