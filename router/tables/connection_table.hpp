// SPDX-License-Identifier: Apache-2.0
// Tables: the connections of a network address and port translator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "pace/clock.hpp"
#include "plan/address.hpp"
#include "tables/entry_index.hpp"

namespace evenhand::router {

using pace::Ticks;

/// An address of either version as numbers that are quickly compared; of IPv4 the second is 0.
struct AddressWords {
    std::uint64_t first = 0;
    std::uint64_t second = 0;

    AddressWords() = default;
    explicit AddressWords(const plan::IpAddress& address) noexcept {
        std::memcpy(&first, address.octets.data(), sizeof first);
        std::memcpy(&second, address.octets.data() + sizeof first, sizeof second);
    }
    /// As it stands in a frame.
    AddressWords(const std::byte* at, plan::IpVersion version) noexcept {
        if (version == plan::IpVersion::v4) {
            std::uint32_t four = 0;
            std::memcpy(&four, at, sizeof four);
            first = four;
        } else {
            std::memcpy(&first, at, sizeof first);
            std::memcpy(&second, at + sizeof first, sizeof second);
        }
    }
    [[nodiscard]] plan::IpAddress address(plan::IpVersion version) const noexcept {
        plan::IpAddress address{.version = version};
        std::memcpy(address.octets.data(), &first, sizeof first);
        std::memcpy(address.octets.data() + sizeof first, &second, sizeof second);
        return address;
    }
    friend bool operator==(const AddressWords&, const AddressWords&) = default;
};

/// A connection as the inside knows it: an inside host, and its peer outside by the address that it has there. Pairs of
/// ports have the same addresses, and each is a network of its own: so the pair is a part of it.
struct InsideTuple {
    AddressWords host;
    AddressWords peer;
    std::uint16_t host_port = 0;
    std::uint16_t peer_port = 0;
    std::uint8_t pair = 0;

    friend bool operator==(const InsideTuple&, const InsideTuple&) = default;
};

/// The same as the outside knows it: the number of a pool address in place of the host.
struct OutsideTuple {
    AddressWords peer;
    std::uint16_t peer_port = 0;
    std::uint16_t number = 0;
    std::uint16_t port = 0;
    std::uint8_t pair = 0;

    friend bool operator==(const OutsideTuple&, const OutsideTuple&) = default;
};

/// Neighbours in a list of entries.
struct EntryLinks {
    std::uint32_t previous = 0;
    std::uint32_t next = 0;
};

/// One cache line: what a frame needs is read at once.
struct alignas(64) Connection {
    AddressWords host;
    AddressWords peer;
    std::uint16_t host_port = 0;
    std::uint16_t peer_port = 0;
    std::uint16_t number = 0;  // of the pool address
    std::uint16_t port = 0;    // of it
    Ticks last_used : 61 = 0;  // some decades
    Ticks is_mark : 1 = 0;     // the user's
    Ticks pair : 2 = 0;        // of ports
    EntryLinks by_age;         // from the one that was made first to the last; free entries have their next one here
    EntryLinks by_due;         // those that may end in the same span of time

    void set_used(Ticks now) noexcept { last_used = now & ~Ticks{0} >> 3U; }
};
static_assert(sizeof(Connection) == 64);

struct ConnectionTableOptions {
    std::size_t capacity = 1;
    Ticks timeout = 0;         // 0: never
    bool reuses_ports = true;  // connections to different peers may share number and port
};

/// Allocates all of its memory in the constructor. Times are ticks since the router began, and need not be in order.
///
/// A connection that was not used for the timeout is not found from that moment on, and holds no port. Its entry is
/// freed when it is looked for, or by reclaim(), which looks at each entry about once in a timeout.
class ConnectionTable {
   public:
    /// A table may have millions of connections.
    using Index = EntryIndex<2, 3>;
    using Entry = Index::Entry;
    static constexpr Entry none = Index::none;
    static constexpr unsigned most_pairs = 4;  // as a Connection has room for

    explicit ConnectionTable(const ConnectionTableOptions& options);

    [[nodiscard]] Entry find(const InsideTuple& tuple, Ticks now) noexcept;
    /// If several have this tuple, the one that was added first.
    [[nodiscard]] Entry find(const OutsideTuple& tuple, Ticks now) noexcept;
    /// Whether a new connection may have this tuple.
    [[nodiscard]] bool is_free(const OutsideTuple& tuple, Ticks now) noexcept;

    [[nodiscard]] const Connection& operator[](Entry entry) const noexcept { return entries_[entry]; }
    [[nodiscard]] bool is_full() const noexcept { return size_ == capacity_; }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    /// Entries that were freed because their time was over.
    [[nodiscard]] std::uint64_t expired() const noexcept { return expired_; }
    /// Grows with every entry that is removed.
    [[nodiscard]] std::uint64_t removals() const noexcept { return removals_; }

    /// The table is not full, and has no connection with this inside tuple. The outside tuple, which is of the same
    /// pair, may be one that it has.
    void add(const InsideTuple& inside, std::uint16_t number, std::uint16_t port, bool is_mark, Ticks now) noexcept;
    void use(Entry entry, Ticks now) noexcept { entries_[entry].set_used(now); }
    /// The table is not empty.
    void remove_oldest() noexcept { remove(links_of<&Connection::by_age>(age_head()).next); }
    /// Looks at `most` entries whose time may be over, and frees those of which it is; how many it looked at. An entry
    /// is looked at within 1/250 of the timeout after its end.
    std::size_t reclaim(Ticks now, std::size_t most) noexcept;
    /// Removes all; how many there were.
    std::size_t clear() noexcept;

   private:
    static constexpr Ticks spans = 1024;  // of time; a timeout has 256 to 512 of them

    template <class Is>
    [[nodiscard]] Entry find_living(const Index& index, std::uint32_t hash, Is&& is, Ticks now) noexcept;
    [[nodiscard]] std::uint32_t outside_hash(const OutsideTuple& tuple) const noexcept;
    [[nodiscard]] bool is_over(const Connection& connection, Ticks now) const noexcept {
        return timeout_ != 0 &&
               static_cast<std::int64_t>(now - connection.last_used) >= static_cast<std::int64_t>(timeout_);
    }
    void expire(Entry entry) noexcept {
        ++expired_;
        remove(entry);
    }
    void remove(Entry entry) noexcept;
    void wait_for_end(Entry entry) noexcept;

    // Lists are rings with a head, which has the number of no entry.
    [[nodiscard]] Entry age_head() const noexcept { return static_cast<Entry>(capacity_); }
    [[nodiscard]] Entry due_head(Ticks span) const noexcept { return static_cast<Entry>(capacity_ + 1 + span % spans); }
    template <EntryLinks Connection::* List>
    [[nodiscard]] EntryLinks& links_of(Entry entry) noexcept {
        return entry < capacity_ ? entries_[entry].*List : heads_[entry - capacity_];
    }
    template <EntryLinks Connection::* List>
    void link(Entry entry, Entry head) noexcept;  // to the end
    template <EntryLinks Connection::* List>
    void unlink(Entry entry) noexcept;
    void make_lists_empty() noexcept;

    std::size_t capacity_;
    Ticks timeout_;
    bool reuses_ports_;
    unsigned span_shift_;  // a span has 2^span_shift_ ticks
    std::vector<Connection> entries_;
    std::vector<EntryLinks> heads_;  // by age, then one for each span
    Index inside_;
    Index outside_;
    Entry free_ = none;    // the first of those that were used before
    Entry untouched_ = 0;  // this one and all behind it were never used
    std::size_t size_ = 0;
    Ticks span_ = 0;  // whose entries are looked at next
    std::uint64_t expired_ = 0;
    std::uint64_t removals_ = 0;
};

}  // namespace evenhand::router
