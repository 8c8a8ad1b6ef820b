// SPDX-License-Identifier: Apache-2.0
// Tables: the MAC addresses of next hops, which are resolved by real questions. One state machine for ARP and neighbour
// discovery, according to RFC 4861, 7.3.
#pragma once

#include <array>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "pace/clock.hpp"
#include "plan/address.hpp"
#include "tables/counter.hpp"
#include "tables/entry_index.hpp"

namespace evenhand::router {

using pace::Ticks;

/// RFC 4861, 7.3.2 without DELAY: the first frame to a stale neighbour starts the probe. Used for ARP in the same way,
/// as in Linux.
enum class NeighborState : std::uint8_t {
    incomplete,  // asked for by multicast or broadcast; frames wait
    reachable,   // confirmed less than `reachable_s` ago
    stale,       // was reachable, or announced its MAC unsolicited; usable, not used since
    probe,       // stale and used: usable, and asked by unicast
    fixed,       // configured: never asked, never changed, never removed
};

/// What happened to a frame without MAC.
enum class HoldResult : std::uint8_t {
    held,              // taken; returned by take_ready()
    too_many_waiting,  // refused: this neighbour's queue, or the room for frames of all of them, is full
    table_full,        // refused: there is no free entry, and none can be replaced
};

/// How far a neighbour's message can be trusted (RFC 4861, 7.2.3 and 7.2.5).
struct Evidence {
    bool solicited = false;   // it answers a question of ours, which shows that it receives our frames
    bool overrides = true;    // replaces a known MAC; false only for an advertisement without the override flag
    bool may_create = false;  // it sends to us, so it will need our answers
};
constexpr Evidence answer_evidence{.solicited = true};
constexpr Evidence asker_evidence{.may_create = true};
constexpr Evidence gossip_evidence{};  // sent to everyone: gratuitous ARP, unsolicited advertisements

/// A question of the router. Without `to` it is sent to everyone (broadcast, solicited-node group), otherwise to that
/// MAC alone.
struct NeighborQuestion {
    unsigned interface = 0;
    plan::IpAddress target;
    std::optional<plan::MacAddress> to;
};

/// The neighbours of all interfaces. Belongs to one worker, without locks; other threads may read only size() and the
/// counters. Times are in ticks; `now` must never go back. Allocates nothing after construction.
class NeighborTable {
   public:
    struct Options {
        std::size_t limit = 131072;  // entries, 1 .. 2^24; a full table replaces its oldest stale entry by a new one
        double reachable_s = 30;     // RFC 4861, section 10: REACHABLE_TIME
        double retry_s = 1;          // RETRANS_TIMER
        double stale_s =
            60;  // an entry is removed if unused for this long after it became stale (gc_stale_time in Linux)
        unsigned tries = 3;                    // MAX_MULTICAST_SOLICIT and MAX_UNICAST_SOLICIT
        std::size_t queue_frames = 16;         // waiting for one neighbour
        std::size_t all_queues_frames = 4096;  // waiting for all; they use the pool that receiving needs
        std::size_t questions_per_turn = 32;   // at most, in one call of turn()
        std::size_t expiries_per_turn = 64;  // entries that become stale or are removed, at most, in one call of turn()
    };

    struct Counters {
        Counter created;         // entries made
        Counter resolved;        // created ones that became usable the first time
        Counter failed;          // given up after `tries` questions without answer
        Counter expired;         // stale and unused for `stale_s`
        Counter evicted;         // stale and replaced by a new one
        Counter questions;       // to everyone
        Counter probes;          // to the neighbour alone
        Counter held_frames;     // taken by hold()
        Counter refused_frames;  // not taken by hold()
        Counter dropped_frames;  // taken, but their neighbour was given up
    };

    /// Throws Fault{bad_request} if a count is 0 or beyond its range, or a time is not above 0.
    NeighborTable(const Options& options, double ticks_per_second);
    NeighborTable(const NeighborTable&) = delete;
    NeighborTable& operator=(const NeighborTable&) = delete;

    /// The MAC to send to, nullptr if it is not known. A hot path. Notes the use: a stale neighbour will be probed, and
    /// its MAC is used meanwhile. The pointer is valid until the next call of a member that is not const.
    [[nodiscard]] const plan::MacAddress* find(unsigned interface, const plan::IpAddress& next_hop, Ticks now) noexcept;

    /// To be called after find() returned nullptr: takes the frame until the MAC is known. Makes an entry if there is
    /// none; turn() then asks. The frame is any pointer, which the table only returns. If the result is not `held`, the
    /// frame stays the caller's, who drops it; it is counted here.
    [[nodiscard]] HoldResult hold(unsigned interface, const plan::IpAddress& next_hop, void* frame, Ticks now) noexcept;

    /// A neighbour has announced its MAC. The caller has checked that the address is unicast, on the link, and not the
    /// router's own.
    void learn(unsigned interface, const plan::IpAddress& neighbor, const plan::MacAddress& mac, Ticks now,
               Evidence evidence) noexcept;

    /// The neighbour answered a probe without repeating its MAC, as RFC 4861, 4.4 allows.
    void confirm(unsigned interface, const plan::IpAddress& neighbor, Ticks now) noexcept;

    /// Adds a configured entry. Throws Fault{no_memory} if the table is full.
    void fix(unsigned interface, const plan::IpAddress& neighbor, const plan::MacAddress& mac);

    /// Handles timers; to be called in every turn of the worker's loop. Asks what must be asked (first questions,
    /// retries, probes), gives entries up, ages them. The work is bounded, whatever the size of the table; the rest is
    /// done in the next call. `ask` gets const NeighborQuestion&.
    template <class Ask>
        requires std::invocable<Ask&, const NeighborQuestion&>
    void turn(Ticks now, Ask&& ask) noexcept {
        std::size_t expiries = options_.expiries_per_turn;
        for (std::size_t asked = 0; asked < options_.questions_per_turn; ++asked) {
            const auto question = next_question(now, expiries);
            if (!question) break;
            ask(*question);
        }
        age(now, expiries);
    }

    /// Returns the frames that learn() has made sendable, and those that turn() has given up, in the order in which
    /// they were held; to be called after either. `send` gets the frame, the interface and the MAC; `drop` the frame.
    template <class Send, class Drop>
        requires std::invocable<Send&, void*, unsigned, const plan::MacAddress&> && std::invocable<Drop&, void*>
    void take_ready(Send&& send, Drop&& drop) noexcept {
        while (ready_.head != none) {
            const WaitingFrame waiting = take_first(ready_);
            send(waiting.frame, waiting.interface, waiting.mac);
        }
        while (lost_.head != none) drop(take_first(lost_).frame);
    }

    /// For the end: gives up all waiting frames, so that take_ready() drops them.
    void give_up_all() noexcept;

    /// The number of entries. Exact in the worker, a recent value in other threads.
    [[nodiscard]] std::size_t size() const noexcept { return size_.load(std::memory_order_relaxed); }
    [[nodiscard]] const Counters& counters() const noexcept { return counters_; }
    [[nodiscard]] std::optional<NeighborState> state(unsigned interface,
                                                     const plan::IpAddress& neighbor) const noexcept;

   private:
    using Index = EntryIndex<1, 2>;
    static constexpr std::uint32_t none = Index::none;

    /// Lists whose entries are due in their order. All entries of a list wait equally long, so appending keeps it
    /// sorted, and no timer is searched for: each operation takes the same time with 2 entries and with 65,536.
    enum class ListName : std::uint8_t { due, retry, reachable, stale, free_or_fixed };
    static constexpr std::size_t lists = 4;  // without the last one, which is not a list

    struct List {
        std::uint32_t head = none;
        std::uint32_t tail = none;
    };

    /// One cache line, so that find() takes one miss here and one in `index_`.
    struct alignas(64) Entry {
        plan::IpAddress address;
        NeighborState state = NeighborState::incomplete;
        ListName list = ListName::free_or_fixed;
        std::uint8_t tries = 0;  // questions since the last sign of life
        std::uint32_t interface = 0;
        plan::MacAddress mac{};
        std::uint16_t waiting_frames = 0;
        Ticks deadline = 0;
        std::uint32_t next = none;  // in its list, or in that of the free entries
        std::uint32_t previous = none;
        List waiting;  // of waiting_
    };
    static_assert(sizeof(Entry) == 64);

    struct WaitingFrame {
        void* frame = nullptr;
        std::uint32_t next = none;
        std::uint32_t interface = 0;
        plan::MacAddress mac{};
    };

    [[nodiscard]] static std::uint32_t hash(unsigned interface, const plan::IpAddress& address) noexcept;
    [[nodiscard]] std::uint32_t look_up(unsigned interface, const plan::IpAddress& address) const noexcept;
    [[nodiscard]] std::uint32_t create(unsigned interface, const plan::IpAddress& address) noexcept;
    void remove(std::uint32_t index) noexcept;

    [[nodiscard]] List& list(ListName name) noexcept { return lists_[static_cast<std::size_t>(name)]; }
    void move(std::uint32_t index, ListName to) noexcept;
    void set(std::uint32_t index, NeighborState state, ListName to, Ticks deadline) noexcept;
    void set_known(std::uint32_t index, bool reachable, Ticks now) noexcept;

    [[nodiscard]] std::optional<NeighborQuestion> next_question(Ticks now, std::size_t& expiries) noexcept;
    void age(Ticks now, std::size_t expiries) noexcept;
    void release(Entry& entry, List& to) noexcept;
    [[nodiscard]] WaitingFrame take_first(List& from) noexcept;

    Options options_;
    Ticks reachable_ticks_;
    Ticks retry_ticks_;
    Ticks stale_ticks_;
    Index index_{0};              // by address and interface; the constructor makes it for `limit` entries
    std::vector<Entry> entries_;  // `limit` reserved at once: pages that are never used take no memory
    std::uint32_t free_entry_ = none;
    std::array<List, lists> lists_{};
    std::vector<WaitingFrame> waiting_;
    std::uint32_t free_waiting_ = none;
    List ready_;
    List lost_;
    std::atomic<std::size_t> size_{0};
    Counters counters_;
};

}  // namespace evenhand::router
