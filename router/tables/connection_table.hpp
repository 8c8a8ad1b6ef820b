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

/// An address of either version as two numbers that can be compared quickly; for IPv4 the second is 0.
struct AddressWords {
    std::uint64_t first = 0;
    std::uint64_t second = 0;

    AddressWords() = default;
    explicit AddressWords(const plan::IpAddress& address) noexcept {
        std::memcpy(&first, address.octets.data(), sizeof first);
        std::memcpy(&second, address.octets.data() + sizeof first, sizeof second);
    }
    /// Reads an address in a frame.
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

/// A connection as it is seen inside: an inside host, and its peer by the address that it has inside. Pairs of ports
/// are separate networks with the same addresses, so the pair is part of the tuple.
struct InsideTuple {
    AddressWords host;
    AddressWords peer;
    std::uint16_t host_port = 0;
    std::uint16_t peer_port = 0;
    std::uint8_t pair = 0;

    friend bool operator==(const InsideTuple&, const InsideTuple&) = default;
};

/// The connection as it is seen outside: the number of a pool address takes the place of the host.
struct OutsideTuple {
    AddressWords peer;
    std::uint16_t peer_port = 0;
    std::uint16_t number = 0;
    std::uint16_t port = 0;
    std::uint8_t pair = 0;

    friend bool operator==(const OutsideTuple&, const OutsideTuple&) = default;
};

/// The neighbours of an entry in a list.
struct EntryLinks {
    std::uint32_t previous = 0;
    std::uint32_t next = 0;
};

/// One cache line, so that everything that a frame needs is read at once.
struct alignas(64) Connection {
    AddressWords host;
    AddressWords peer;
    std::uint16_t host_port = 0;
    std::uint16_t peer_port = 0;
    std::uint16_t number = 0;  // of the pool address
    std::uint16_t port = 0;    // of that address
    Ticks last_used : 61 = 0;  // enough bits for some decades
    Ticks is_mark : 1 = 0;     // for the user of the table
    Ticks pair : 2 = 0;        // of ports
    EntryLinks by_age;         // from the oldest to the newest; free entries have their successor here
    EntryLinks by_due;         // entries that may end in the same span of time

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
    static constexpr unsigned most_pairs = 4;  // for which a Connection has room

    explicit ConnectionTable(const ConnectionTableOptions& options);

    [[nodiscard]] Entry find(const InsideTuple& tuple, Ticks now) noexcept;
    /// If several connections have this tuple, the one that was added first.
    [[nodiscard]] Entry find(const OutsideTuple& tuple, Ticks now) noexcept;
    /// Whether a new connection may have this tuple.
    [[nodiscard]] bool is_free(const OutsideTuple& tuple, Ticks now) noexcept;

    [[nodiscard]] const Connection& operator[](Entry entry) const noexcept { return entries_[entry]; }
    [[nodiscard]] bool is_full() const noexcept { return size_ == capacity_; }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    /// How many entries were freed because they had timed out.
    [[nodiscard]] std::uint64_t expired() const noexcept { return expired_; }
    /// Increases with every entry that is removed.
    [[nodiscard]] std::uint64_t removals() const noexcept { return removals_; }

    /// The table must not be full, and must have no connection with this inside tuple. It may have the outside tuple,
    /// which belongs to the same pair.
    void add(const InsideTuple& inside, std::uint16_t number, std::uint16_t port, bool is_mark, Ticks now) noexcept;
    void use(Entry entry, Ticks now) noexcept { entries_[entry].set_used(now); }
    /// The table must not be empty.
    void remove_oldest() noexcept { remove(links_of<&Connection::by_age>(age_head()).next); }
    /// Looks at up to `most` entries that may have timed out, and frees those that have; returns how many it looked at.
    /// An entry is looked at within 1/250 of the timeout after its end.
    std::size_t reclaim(Ticks now, std::size_t most) noexcept;
    /// Removes all; returns how many there were.
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

    // Lists are rings with a head, whose number no entry has.
    [[nodiscard]] Entry age_head() const noexcept { return static_cast<Entry>(capacity_); }
    [[nodiscard]] Entry due_head(Ticks span) const noexcept { return static_cast<Entry>(capacity_ + 1 + span % spans); }
    template <EntryLinks Connection::* List>
    [[nodiscard]] EntryLinks& links_of(Entry entry) noexcept {
        return entry < capacity_ ? entries_[entry].*List : heads_[entry - capacity_];
    }
    template <EntryLinks Connection::* List>
    void link(Entry entry, Entry head) noexcept;  // at the end
    template <EntryLinks Connection::* List>
    void unlink(Entry entry) noexcept;
    void make_lists_empty() noexcept;

    std::size_t capacity_;
    Ticks timeout_;
    bool reuses_ports_;
    unsigned span_shift_;  // a span has 2^span_shift_ ticks
    std::vector<Connection> entries_;
    std::vector<EntryLinks> heads_;  // the list by age, then one for each span
    Index inside_;
    Index outside_;
    Entry free_ = none;    // the first of the entries that were used before
    Entry untouched_ = 0;  // the first of the entries that were never used
    std::size_t size_ = 0;
    Ticks span_ = 0;  // the span whose entries are looked at next
    std::uint64_t expired_ = 0;
    std::uint64_t removals_ = 0;
};

}  // namespace evenhand::router
