// SPDX-License-Identifier: Apache-2.0
#include "tables/connection_table.hpp"

#include <algorithm>
#include <bit>

#include "split_mix.hpp"

namespace evenhand::router {
namespace {

/// Adds a word to a hash: half of SplitMix64's steps suffice, as the other half follows at the end.
constexpr std::uint64_t mix(std::uint64_t hash, std::uint64_t word) noexcept {
    hash = (hash ^ word) * first_mix_multiplier;
    return hash ^ (hash >> 31U);
}

constexpr std::uint32_t low_half(std::uint64_t hash) noexcept {
    return static_cast<std::uint32_t>((hash * second_mix_multiplier) >> 32U);
}

std::uint32_t hash_of(const InsideTuple& tuple) noexcept {
    const std::uint64_t ports = std::uint64_t{tuple.host_port} << 16U | tuple.peer_port;
    const std::uint64_t hash = mix(std::uint64_t{tuple.pair} << 32U | ports, tuple.host.first);
    return low_half(mix(mix(mix(hash, tuple.peer.first), tuple.host.second), tuple.peer.second));
}

std::uint8_t pair_of(const Connection& c) noexcept { return static_cast<std::uint8_t>(c.pair); }

InsideTuple inside_of(const Connection& c) noexcept {
    return {.host = c.host, .peer = c.peer, .host_port = c.host_port, .peer_port = c.peer_port, .pair = pair_of(c)};
}

OutsideTuple outside_of(const Connection& c) noexcept {
    return {.peer = c.peer, .peer_port = c.peer_port, .number = c.number, .port = c.port, .pair = pair_of(c)};
}

}  // namespace

ConnectionTable::ConnectionTable(const ConnectionTableOptions& options)
    : capacity_{options.capacity},
      timeout_{options.timeout},
      reuses_ports_{options.reuses_ports},
      span_shift_{static_cast<unsigned>(std::bit_width(options.timeout / (spans / 2)))},
      entries_(options.capacity),
      heads_(options.timeout == 0 ? 1 : 1 + spans),
      inside_{options.capacity},
      outside_{options.capacity} {
    make_lists_empty();
}

void ConnectionTable::make_lists_empty() noexcept {
    for (std::size_t i = 0; i < heads_.size(); ++i) {
        const auto itself = static_cast<Entry>(capacity_ + i);
        heads_[i] = {.previous = itself, .next = itself};
    }
}

std::uint32_t ConnectionTable::outside_hash(const OutsideTuple& tuple) const noexcept {
    const std::uint64_t own = std::uint64_t{tuple.pair} << 32U | std::uint64_t{tuple.number} << 16U | tuple.port;
    // If a port serves one connection only, the connection is found whatever the peer.
    if (!reuses_ports_) return low_half(mix(0, own));
    return low_half(mix(mix(own << 16U | tuple.peer_port, tuple.peer.first), tuple.peer.second));
}

template <class Is>
ConnectionTable::Entry ConnectionTable::find_living(const Index& index, std::uint32_t hash, Is&& is,
                                                    Ticks now) noexcept {
    for (;;) {
        const Entry entry = index.find(hash, is);
        if (entry == none || !is_over(entries_[entry], now)) return entry;
        expire(entry);
    }
}

ConnectionTable::Entry ConnectionTable::find(const InsideTuple& tuple, Ticks now) noexcept {
    return find_living(inside_, hash_of(tuple), [&](Entry entry) { return inside_of(entries_[entry]) == tuple; }, now);
}

ConnectionTable::Entry ConnectionTable::find(const OutsideTuple& tuple, Ticks now) noexcept {
    return find_living(
        outside_, outside_hash(tuple), [&](Entry entry) { return outside_of(entries_[entry]) == tuple; }, now);
}

bool ConnectionTable::is_free(const OutsideTuple& tuple, Ticks now) noexcept {
    if (reuses_ports_) return find(tuple, now) == none;
    const auto has_port = [&](Entry entry) {
        const Connection& c = entries_[entry];
        return c.number == tuple.number && c.port == tuple.port && c.pair == tuple.pair;
    };
    return find_living(outside_, outside_hash(tuple), has_port, now) == none;
}

void ConnectionTable::add(const InsideTuple& inside, std::uint16_t number, std::uint16_t port, bool is_mark,
                          Ticks now) noexcept {
    const Entry entry = free_ != none ? free_ : untouched_++;
    Connection& c = entries_[entry];
    if (entry == free_) free_ = c.by_age.next;
    c.host = inside.host;
    c.peer = inside.peer;
    c.host_port = inside.host_port;
    c.peer_port = inside.peer_port;
    c.number = number;
    c.port = port;
    c.pair = inside.pair & (most_pairs - 1);
    c.set_used(now);
    c.is_mark = is_mark ? 1 : 0;
    inside_.add(hash_of(inside), entry);
    outside_.add(outside_hash(outside_of(c)), entry);
    link<&Connection::by_age>(entry, age_head());
    if (timeout_ != 0) wait_for_end(entry);
    ++size_;
}

void ConnectionTable::remove(Entry entry) noexcept {
    Connection& c = entries_[entry];
    inside_.remove(hash_of(inside_of(c)), entry);
    outside_.remove(outside_hash(outside_of(c)), entry);
    unlink<&Connection::by_age>(entry);
    if (timeout_ != 0) unlink<&Connection::by_due>(entry);
    c.by_age.next = free_;
    free_ = entry;
    --size_;
    ++removals_;
}

/// Puts the entry into the list of the span in which it ends if it is not used. An entry that ends later than there are
/// spans is looked at too early, and is then put into a list again.
void ConnectionTable::wait_for_end(Entry entry) noexcept {
    const Ticks span = (entries_[entry].last_used + timeout_) >> span_shift_;
    link<&Connection::by_due>(entry, due_head(std::clamp(span, span_, span_ + spans - 1)));
}

std::size_t ConnectionTable::reclaim(Ticks now, std::size_t most) noexcept {
    if (timeout_ == 0) return 0;
    const Ticks current = now >> span_shift_;
    if (size_ == 0) span_ = std::max(span_, current);
    std::size_t looked = 0;
    // Only spans that have passed are looked at. Their entries have ended or were used since, so that none is looked at
    // twice for nothing.
    while (span_ < current) {
        const Entry head = due_head(span_);
        const Entry entry = links_of<&Connection::by_due>(head).next;
        if (entry == head) {
            ++span_;
            continue;
        }
        if (looked == most) break;
        ++looked;
        if (is_over(entries_[entry], now)) {
            expire(entry);
        } else {
            unlink<&Connection::by_due>(entry);
            wait_for_end(entry);
        }
    }
    return looked;
}

std::size_t ConnectionTable::clear() noexcept {
    const std::size_t removed = size_;
    if (removed == 0) return 0;
    inside_.clear();
    outside_.clear();
    make_lists_empty();
    free_ = none;
    untouched_ = 0;
    size_ = 0;
    removals_ += removed;
    return removed;
}

template <EntryLinks Connection::* List>
void ConnectionTable::link(Entry entry, Entry head) noexcept {
    const Entry last = links_of<List>(head).previous;
    links_of<List>(entry) = {.previous = last, .next = head};
    links_of<List>(last).next = entry;
    links_of<List>(head).previous = entry;
}

template <EntryLinks Connection::* List>
void ConnectionTable::unlink(Entry entry) noexcept {
    const auto [previous, next] = links_of<List>(entry);
    links_of<List>(previous).next = next;
    links_of<List>(next).previous = previous;
}

}  // namespace evenhand::router
