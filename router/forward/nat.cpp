// SPDX-License-Identifier: Apache-2.0
#include "forward/nat.hpp"

#include <algorithm>
#include <cmath>

#include "frame/layout.hpp"
#include "split_mix.hpp"
#include "tables/interface.hpp"

namespace evenhand::router {
namespace {

using frame::big;
using frame::load;
using plan::IpAddress;

constexpr std::size_t most_recent = std::size_t{1} << 16U;     // peers
constexpr std::size_t most_exhausted = std::size_t{1} << 12U;  // pool addresses, each with a peer

std::uint64_t hash_of(const AddressWords& address, std::uint64_t more) noexcept {
    return split_mix(split_mix(split_mix(more) ^ address.first) ^ address.second);
}

/// The port of a peer, and the network that it is in.
constexpr std::uint64_t peer_key(const InsideTuple& inside) noexcept {
    return std::uint64_t{inside.pair} << 16U | inside.peer_port;
}

ConnectionTableOptions table_options(const NatOptions& options, double ticks_per_second) {
    return {.capacity = options.capacity,
            .timeout = static_cast<Ticks>(std::ceil(options.timeout_s * ticks_per_second)),
            .reuses_ports = options.reuse_ports};
}

}  // namespace

Nat::Nat(const NatOptions& options, double ticks_per_second)
    : options_{options},
      table_{table_options(options, ticks_per_second)},
      exhausted_(most_exhausted),
      recent_(options.same_tuple_every != 0 ? most_recent : 0) {}

NatWay Nat::way_of(const Packet& packet, unsigned in) const noexcept {
    if (is_of_pool(packet)) return NatWay::incoming;
    if (in != options_.inside || packet.version != options_.inside_version()) return NatWay::past;
    if (!options_.is_nat64()) return NatWay::outgoing;
    const IpAddress destination = read_address(packet.destination, packet.version);
    return is_in_prefix(destination, options_.prefix, options_.prefix_length) ? NatWay::outgoing : NatWay::past;
}

bool Nat::is_of_pool(const Packet& packet) const noexcept {
    const NatPool& pool = options_.pool;
    if (packet.version != pool.base.version) return false;
    const std::uint16_t number = big(load<std::uint16_t>(packet.destination + pool.offset));
    if (number < pool.first || number - pool.first >= pool.count) return false;
    return pool.contains(read_address(packet.destination, packet.version));
}

IpAddress Nat::outside_destination(const Packet& packet) const noexcept {
    const IpAddress destination = read_address(packet.destination, packet.version);
    return options_.is_nat64() ? *extract(options_.prefix, options_.prefix_length, destination) : destination;
}

InsideTuple Nat::inside_tuple(const Packet& packet, std::uint8_t pair) const noexcept {
    return {.host = AddressWords{packet.source, packet.version},
            .peer = options_.is_nat64() ? AddressWords{outside_destination(packet)}
                                        : AddressWords{packet.destination, packet.version},
            .host_port = big(load<std::uint16_t>(packet.ports)),
            .peer_port = big(load<std::uint16_t>(packet.ports + 2)),
            .pair = pair};
}

std::optional<NatCrossing> Nat::look_up(const Packet& packet, NatWay way, std::uint8_t pair, Ticks now) noexcept {
    NatCrossing crossing{.way = way, .pair = pair};
    if (udp_of(packet).at == nullptr) {
        ++counters_.refused_frames;
        return std::nullopt;
    }
    if (way == NatWay::outgoing) {
        crossing.destination = outside_destination(packet);
        crossing.entry = table_.find(inside_tuple(packet, pair), now);
        return crossing;
    }
    const OutsideTuple outside{.peer = AddressWords{packet.source, packet.version},
                               .peer_port = big(load<std::uint16_t>(packet.ports)),
                               .number = big(load<std::uint16_t>(packet.destination + options_.pool.offset)),
                               .port = big(load<std::uint16_t>(packet.ports + 2)),
                               .pair = pair};
    crossing.entry = table_.find(outside, now);
    if (crossing.entry == ConnectionTable::none) {
        ++counters_.unknown_frames;
        return std::nullopt;
    }
    crossing.destination = table_[crossing.entry].host.address(options_.inside_version());
    return crossing;
}

std::size_t Nat::translate(std::span<std::byte> room, std::size_t octets, const Packet& packet,
                           const NatCrossing& crossing, Ticks now) noexcept {
    const std::size_t new_octets =
        options_.is_nat64() ? HeaderTranslation::octets_of(packet, udp_of(packet), room.size()) : octets;
    if (new_octets == 0) {
        ++counters_.refused_frames;
        return 0;
    }
    return crossing.way == NatWay::outgoing ? send_out(room, new_octets, packet, crossing, now)
                                            : let_in(room, new_octets, packet, crossing, now);
}

std::size_t Nat::send_out(std::span<std::byte> room, std::size_t octets, const Packet& packet,
                          const NatCrossing& crossing, Ticks now) noexcept {
    const auto outside = crossing.makes_entry() ? make_connection(inside_tuple(packet, crossing.pair), now)
                                                : std::optional{use(crossing.entry, now)};
    if (!outside) return 0;
    count(*outside);
    const UdpPart udp = udp_of(packet);
    const IpAddress source = options_.pool.address(outside->number);
    std::byte* sent_udp = udp.at;
    if (options_.is_nat64()) {
        frame::store(udp.at, big(outside->port));
        headers_.write(room.data(), packet, udp,
                       {.addresses = {.source = source, .destination = crossing.destination}});
        sent_udp = room.data() + octets - udp.octets;
    } else {
        rewrite(packet, udp, Endpoint::source, source, outside->port);
    }
    if (outside->has_wrong_sum) spoil_checksum(sent_udp);
    return octets;
}

std::size_t Nat::let_in(std::span<std::byte> room, std::size_t octets, const Packet& packet,
                        const NatCrossing& crossing, Ticks now) noexcept {
    table_.use(crossing.entry, now);
    ++counters_.translated_frames;
    const UdpPart udp = udp_of(packet);
    const std::uint16_t port = table_[crossing.entry].host_port;
    if (options_.is_nat64()) {
        frame::store(udp.at + 2, big(port));
        const IpAddress source =
            embed(options_.prefix, options_.prefix_length, read_address(packet.source, packet.version));
        headers_.write(room.data(), packet, udp,
                       {.addresses = {.source = source, .destination = crossing.destination}});
    } else {
        rewrite(packet, udp, Endpoint::destination, crossing.destination, port);
    }
    return octets;
}

Nat::Outside Nat::use(ConnectionTable::Entry entry, Ticks now) noexcept {
    table_.use(entry, now);
    const Connection& c = table_[entry];
    return {.number = c.number, .port = c.port, .is_shared = c.is_mark != 0};
}

void Nat::count(const Outside& outside) noexcept {
    ++counters_.translated_frames;
    if (outside.is_shared) ++counters_.same_tuple_frames;
    if (outside.number + 1U == options_.pool.first) ++counters_.other_address_frames;
    if (outside.has_wrong_sum) ++counters_.wrong_checksum_frames;
}

std::optional<Nat::Outside> Nat::make_connection(const InsideTuple& inside, Ticks now) noexcept {
    while (table_.is_full() && table_.reclaim(now, 1) != 0) {}
    if (table_.is_full() && options_.when_full == WhenFull::refuse) {
        ++counters_.refused_full;
        return std::nullopt;
    }
    auto outside = choose_outside(inside, now);
    if (!outside) {
        ++counters_.exhausted_ports;
        return std::nullopt;
    }
    outside->has_wrong_sum = is_due(options_.wrong_checksum_every);
    const bool is_lost = is_due(options_.lost_entry_every);
    ++counters_.created;
    if (is_lost) {
        ++counters_.lost_entry_frames;
        return outside;
    }
    if (table_.is_full()) {
        table_.remove_oldest();
        ++counters_.replaced;
    }
    table_.add(inside, outside->number, outside->port, outside->is_shared, now);
    counters_.most_entries = std::max(counters_.most_entries, table_.size());
    if (!recent_.empty()) {
        recent_[hash_of(inside.peer, peer_key(inside)) % most_recent] = {.peer = inside.peer,
                                                                         .peer_port = inside.peer_port,
                                                                         .number = outside->number,
                                                                         .port = outside->port,
                                                                         .pair = inside.pair};
    }
    return outside;
}

std::optional<Nat::Outside> Nat::choose_outside(const InsideTuple& inside, Ticks now) noexcept {
    if (shares_next_ || is_due(options_.same_tuple_every)) {
        auto other = other_with_peer(inside, now);
        shares_next_ = !other;
        if (other) return other;
    }
    // An inside host has one pool address for all of its connections (RFC 4787, REQ-2).
    std::uint32_t number = options_.pool.first;
    if (is_due(options_.other_address_every)) {
        --number;
    } else {
        number += static_cast<std::uint32_t>(hash_of(inside.host, 0) % options_.pool.count);
    }
    const auto port = free_port(static_cast<std::uint16_t>(number), inside, now);
    if (!port) return std::nullopt;
    return Outside{.number = static_cast<std::uint16_t>(number), .port = *port};
}

/// The outside tuple of a living connection to the same peer.
std::optional<Nat::Outside> Nat::other_with_peer(const InsideTuple& inside, Ticks now) noexcept {
    const OutsideTuple& other = recent_[hash_of(inside.peer, peer_key(inside)) % most_recent];
    if (other.peer != inside.peer || other.peer_port != inside.peer_port || other.pair != inside.pair ||
        table_.find(other, now) == ConnectionTable::none)
        return std::nullopt;
    return Outside{.number = other.number, .port = other.port, .is_shared = true};
}

std::optional<std::uint16_t> Nat::free_port(std::uint16_t number, const InsideTuple& inside, Ticks now) noexcept {
    const std::uint64_t key = options_.reuse_ports
                                  ? hash_of(inside.peer, std::uint64_t{number} << 32U | peer_key(inside))
                                  : split_mix(std::uint64_t{inside.pair} << 16U | number);
    Exhausted& exhausted = exhausted_[key % most_exhausted];
    if (exhausted.key == key && exhausted.removals == table_.removals()) return std::nullopt;
    const std::uint32_t ports = options_.last_port - options_.first_port + 1U;
    const std::uint32_t wanted = inside.host_port;
    const bool is_in_range = wanted >= options_.first_port && wanted <= options_.last_port;
    std::uint32_t place = is_in_range ? wanted - options_.first_port : wanted % ports;
    for (std::uint32_t tries = 0; tries < ports; ++tries, place = place + 1 == ports ? 0 : place + 1) {
        const auto port = static_cast<std::uint16_t>(options_.first_port + place);
        const OutsideTuple wished{
            .peer = inside.peer, .peer_port = inside.peer_port, .number = number, .port = port, .pair = inside.pair};
        if (table_.is_free(wished, now)) return port;
    }
    exhausted = {.key = key, .removals = table_.removals()};
    return std::nullopt;
}

std::size_t Nat::flush() noexcept {
    const std::size_t entries = table_.clear();
    counters_.flushed += entries;
    return entries;
}

NatCounters Nat::counters() const noexcept {
    NatCounters counters = counters_;
    counters.entries = table_.size();
    counters.expired = table_.expired();
    return counters;
}

}  // namespace evenhand::router
