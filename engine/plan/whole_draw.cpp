// SPDX-License-Identifier: Apache-2.0
#include "plan/whole_draw.hpp"

#include <cstring>

#include "plan/scaled.hpp"

namespace evenhand::plan {
namespace {

/// Streams of philox4x32, one for each direction: the draws of fields use 0 and 1, keys 2, connections 4 and 5. In IPv6
/// the destination has streams of its own.
constexpr std::uint32_t stream_of_addresses = 8;
constexpr std::uint32_t stream_of_destinations = 2;  // added

constexpr unsigned octet_bits = 8;

/// The sum of the eight words of an IPv6 address, folded to 16 bits as in a checksum. As 2^16 = 1 modulo 65535, wider
/// parts may be added.
inline std::uint32_t sum_of(Wide address) noexcept {
    constexpr std::uint64_t half_word = 0xFFFFFFFF;
    constexpr std::uint64_t word = 0xFFFF;
    std::uint64_t sum =
        (upper(address) >> 32U) + (upper(address) & half_word) + (lower(address) >> 32U) + (lower(address) & half_word);
    sum = (sum >> 32U) + (sum >> 16U & word) + (sum & word);
    sum = (sum >> 16U) + (sum & word);
    return static_cast<std::uint32_t>((sum >> 16U) + (sum & word));
}

inline void store_address(std::byte* to, Wide address) noexcept {
    const std::array<std::uint64_t, 2> octets{__builtin_bswap64(upper(address)), __builtin_bswap64(lower(address))};
    std::memcpy(to, octets.data(), sizeof octets);
}

inline void put_of_v6(FlowBlock& block, std::size_t end, std::size_t j, Wide address) noexcept {
    store_address(block.addresses[j].data() + end * sizeof(Wide), address);
    block.lanes.field[end][j] = sum_of(address);
}

}  // namespace

template <IpVersion V>
WholeDraw::End<V>::End(const HostRange& hosts) : list{hosts.list} {
    if (list) {
        entries = &list->entries<V>();
        switch (hosts.host.mode) {
            case Mode::pseudorandom: kind = list->choice() == Choice::entry ? Kind::entry : Kind::host; break;
            case Mode::fixed: kind = Kind::fixed; break;
            case Mode::increment: kind = Kind::increment; break;
            case Mode::decrement: kind = Kind::decrement; break;
        }
        return;
    }
    const auto bits_behind = [](std::uint32_t offset) {
        return octet_bits * static_cast<unsigned>(address_octets(V) - 2 - offset);
    };
    rest = static_cast<Number<V>>(number_of(hosts.address(0)));
    host_at = bits_behind(hosts.offset);
    if (hosts.has_network_octets()) network_at = bits_behind(hosts.network->offset);
    if (hosts.network) split = NetworkSplit{hosts};
}

template <IpVersion V>
WholeDraw::Number<V> WholeDraw::End<V>::of_range(std::uint64_t k, std::uint32_t field) const noexcept {
    constexpr std::uint32_t word = 0xFFFF;
    const auto value = split ? static_cast<std::uint32_t>(split->value(field) + split->step(k)) : field;
    const Number<V> host = static_cast<Number<V>>(value & word) << host_at;
    return rest | host | (network_at ? static_cast<Number<V>>(value >> 16U) << *network_at : 0);
}

template <IpVersion V>
WholeDraw::Number<V> WholeDraw::End<V>::counted(std::uint64_t k) const noexcept {
    const Number<V> last = entries->last_number();
    const auto number = static_cast<Number<V>>(k <= last ? k : k % (static_cast<std::uint64_t>(last) + 1));
    return entries->address(kind == Kind::increment ? number : last - number);
}

template <IpVersion V>
WholeDraw::Number<V> WholeDraw::End<V>::address(std::uint64_t k, std::uint32_t field, Bits<V> bits) const noexcept {
    switch (kind) {
        case Kind::entry: {
            const auto& entry = (*entries)[field];
            return entry.first + scaled(bits, entry.last - entry.first);
        }
        case Kind::host: return entries->address(scaled(bits, entries->last_number()));
        case Kind::increment:
        case Kind::decrement: return counted(k);
        case Kind::fixed: return (*entries)[0].first;
        case Kind::range: break;
    }
    return of_range(k, field);
}

namespace {

FieldRange drawn_for(const HostRange& hosts) {
    if (!hosts.list) {
        if (!hosts.network) return hosts.host;
        return {.first = 0, .count = NetworkSplit{hosts}.drawn(), .mode = Mode::pseudorandom};
    }
    const bool is_of_entries = hosts.host.mode == Mode::pseudorandom && hosts.list->choice() == Choice::entry;
    if (!is_of_entries) return {.first = 0, .count = 1, .mode = Mode::fixed};
    return {.first = 0, .count = static_cast<std::uint32_t>(hosts.list->size()), .mode = Mode::pseudorandom};
}

}  // namespace

WholeDraw::WholeDraw(const HostRange& source, const HostRange& destination, Direction direction, PhiloxKey key)
    : ends_{ends_of(source, destination)},
      drawn_{drawn_for(source), drawn_for(destination)},
      stream_{stream_of_addresses + static_cast<std::uint32_t>(direction)},
      key_{key} {}

std::variant<WholeDraw::Ends<IpVersion::v4>, WholeDraw::Ends<IpVersion::v6>> WholeDraw::ends_of(
    const HostRange& source, const HostRange& destination) {
    if (source.base.version == IpVersion::v4)
        return Ends<IpVersion::v4>{End<IpVersion::v4>{source}, End<IpVersion::v4>{destination}};
    return Ends<IpVersion::v6>{End<IpVersion::v6>{source}, End<IpVersion::v6>{destination}};
}

/// In IPv4 the four words of one counter are for both addresses, in IPv6 for one.
template <IpVersion V>
void WholeDraw::choose(const Ends<V>& ends, const std::uint64_t* numbers, const FlowBlock& block,
                       std::array<Addresses<V>, 2>& addresses) const noexcept {
    constexpr std::size_t lanes = FlowBlock::size;
    for (std::size_t e = 0; e < ends.size(); ++e) {
        if (ends[e].kind != Kind::entry) continue;
        for (const std::uint32_t entry : block.lanes.field[e]) ends[e].entries->fetch(entry);
    }
    DrawLanes words;
    if (V == IpVersion::v4 && (ends[0].needs_bits() || ends[1].needs_bits()))
        draw_listed_words(numbers, stream_, key_, words);
    for (std::size_t e = 0; e < ends.size(); ++e) {
        const End<V>& end = ends[e];
        if constexpr (V == IpVersion::v6) {
            if (end.needs_bits())
                draw_listed_words(numbers, stream_ + static_cast<std::uint32_t>(e) * stream_of_destinations, key_,
                                  words);
        }
        const auto bits = [&](std::size_t j) -> Bits<V> {
            const auto& w = words.field;
            if constexpr (V == IpVersion::v4)
                return joined(w[2 * e][j], w[2 * e + 1][j]);
            else
                return Wide{joined(w[0][j], w[1][j])} << half_bits | joined(w[2][j], w[3][j]);
        };
        Addresses<V>& found = addresses[e];
        if (end.kind == Kind::entry) {
            for (std::size_t j = 0; j < lanes; ++j) {
                const auto& entry = (*end.entries)[block.lanes.field[e][j]];
                found[j] = entry.first + scaled(bits(j), entry.last - entry.first);
            }
        } else if (end.kind == Kind::host) {
            for (std::size_t j = 0; j < lanes; ++j) {
                found[j] = scaled(bits(j), end.entries->last_number());
                end.entries->fetch_bucket(found[j]);
            }
            for (const auto number : found) end.entries->fetch_start(number);
            for (auto& number : found) number = end.entries->address(number);
        } else {
            for (std::size_t j = 0; j < lanes; ++j) found[j] = end.address(numbers[j], block.lanes.field[e][j], 0);
        }
    }
}

void WholeDraw::apply(const std::uint64_t* numbers, FlowBlock& block) const noexcept {
    if (const auto* const ends = std::get_if<Ends<IpVersion::v4>>(&ends_); ends != nullptr) {
        std::array<Addresses<IpVersion::v4>, 2> found;
        choose(*ends, numbers, block, found);
        block.lanes.field[0] = found[0];
        block.lanes.field[1] = found[1];
        return;
    }
    std::array<Addresses<IpVersion::v6>, 2> found;
    choose(*std::get_if<Ends<IpVersion::v6>>(&ends_), numbers, block, found);
    for (std::size_t j = 0; j < FlowBlock::size; ++j) {
        put_of_v6(block, 0, j, found[0][j]);
        put_of_v6(block, 1, j, found[1][j]);
    }
}

void WholeDraw::put_address(FlowBlock& block, std::size_t end, std::size_t j, IpVersion version,
                            Wide address) noexcept {
    if (version == IpVersion::v6)
        put_of_v6(block, end, j, address);
    else
        block.lanes.field[end][j] = static_cast<std::uint32_t>(address);
}

FlowAddresses WholeDraw::addresses(std::uint64_t k, const Fields& fields) const noexcept {
    const auto words = [&](std::uint32_t stream) {
        return philox4x32({static_cast<std::uint32_t>(k), static_cast<std::uint32_t>(k >> 32U), stream, 0}, key_);
    };
    const auto first = words(stream_);
    if (const auto* const ends = std::get_if<Ends<IpVersion::v4>>(&ends_); ends != nullptr) {
        return {.source = address_of(IpVersion::v4, (*ends)[0].address(k, fields[0], joined(first[0], first[1]))),
                .destination = address_of(IpVersion::v4, (*ends)[1].address(k, fields[1], joined(first[2], first[3])))};
    }
    const auto& ends = *std::get_if<Ends<IpVersion::v6>>(&ends_);
    const auto second = words(stream_ + stream_of_destinations);
    const auto bits = [](const auto& w) { return Wide{joined(w[0], w[1])} << half_bits | joined(w[2], w[3]); };
    return {.source = address_of(IpVersion::v6, ends[0].address(k, fields[0], bits(first))),
            .destination = address_of(IpVersion::v6, ends[1].address(k, fields[1], bits(second)))};
}

WholeDraw::Fields WholeDraw::values(const FlowAddresses& addresses) noexcept {
    const auto value = [](const IpAddress& address) {
        const Wide number = number_of(address);
        return address.version == IpVersion::v4 ? static_cast<std::uint32_t>(number) : sum_of(number);
    };
    return {value(addresses.source), value(addresses.destination)};
}

}  // namespace evenhand::plan
