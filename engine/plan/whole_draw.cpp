// SPDX-License-Identifier: Apache-2.0
#include "plan/whole_draw.hpp"

#include <algorithm>

#include "plan/listed_addresses.hpp"
#include "plan/scaled.hpp"

namespace evenhand::plan {
namespace {

/// Streams of philox4x32, one for each direction: the draws of fields use 0 and 1, keys 2, connections 4 and 5. In IPv6
/// the destination has streams of its own.
constexpr std::uint32_t stream_of_addresses = 8;
constexpr std::uint32_t stream_of_destinations = 2;  // added

/// Hosts that the draw of a field can choose from, without further words.
bool is_only_entry(const HostRange& hosts) noexcept {
    constexpr Wide most = 0xFFFFFFFE;  // the number of the last
    return hosts.list && hosts.list->version() == IpVersion::v4 && hosts.host.mode == Mode::pseudorandom &&
           hosts.list->size() == 1 && hosts.list->last_number() <= most;
}

}  // namespace

template <IpVersion V>
WholeDraw::End<V>::End(const HostRange& hosts) : list{hosts.list} {
    if (list) {
        entries = &list->entries<V>();
        switch (hosts.host.mode) {
            case Mode::pseudorandom:
                kind = is_only_entry(hosts)                                ? Kind::only_entry
                       : list->choice() == Choice::host                    ? Kind::host
                       : V == IpVersion::v6 && entries->are_all_prefixes() ? Kind::prefix
                                                                           : Kind::entry;
                break;
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
        case Kind::only_entry: return (*entries)[0].first + field;
        case Kind::prefix:
            if constexpr (V == IpVersion::v6) return selected((*entries)[field], bits);
            break;
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
    if (is_only_entry(hosts)) {
        const auto addresses = static_cast<std::uint32_t>(hosts.list->last_number()) + 1;
        return {.first = 0, .count = addresses, .mode = Mode::pseudorandom};
    }
    const bool is_of_entries = hosts.host.mode == Mode::pseudorandom && hosts.list->choice() == Choice::entry;
    if (!is_of_entries) return {.first = 0, .count = 1, .mode = Mode::fixed};
    return {.first = 0, .count = static_cast<std::uint32_t>(hosts.list->size()), .mode = Mode::pseudorandom};
}

}  // namespace

template <IpVersion V>
bool WholeDraw::share_words(const Ends<V>& ends) noexcept {
    if constexpr (V == IpVersion::v6) {
        for (const End<V>& end : ends) {
            if (end.needs_bits() && (end.kind != Kind::prefix || upper(end.entries->varying()) != 0)) return false;
        }
    }
    return true;
}

WholeDraw::WholeDraw(const HostRange& source, const HostRange& destination, Direction direction, PhiloxKey key)
    : ends_{ends_of(source, destination)},
      shares_words_{std::visit([](const auto& ends) { return share_words(ends); }, ends_)},
      drawn_{drawn_for(source), drawn_for(destination)},
      stream_{stream_of_addresses + static_cast<std::uint32_t>(direction)},
      key_{key} {}

std::variant<WholeDraw::Ends<IpVersion::v4>, WholeDraw::Ends<IpVersion::v6>> WholeDraw::ends_of(
    const HostRange& source, const HostRange& destination) {
    if (source.base.version == IpVersion::v4)
        return Ends<IpVersion::v4>{End<IpVersion::v4>{source}, End<IpVersion::v4>{destination}};
    return Ends<IpVersion::v6>{End<IpVersion::v6>{source}, End<IpVersion::v6>{destination}};
}

std::uint32_t WholeDraw::stream_of(std::size_t end) const noexcept {
    return stream_ + static_cast<std::uint32_t>(end) * stream_of_destinations;
}

template <IpVersion V>
void WholeDraw::choose(const Ends<V>& ends, const std::uint64_t* numbers, FlowBlock& block) const noexcept {
    constexpr std::size_t lanes = FlowBlock::size;
    DrawLanes words;
    if (shares_words_ && (ends[0].needs_bits() || ends[1].needs_bits()))
        draw_listed_words(numbers, stream_of(0), key_, words);
    for (std::size_t e = 0; e < ends.size(); ++e) {
        const End<V>& end = ends[e];
        if (!shares_words_ && end.needs_bits()) draw_listed_words(numbers, stream_of(e), key_, words);
        const auto& w = words.field;
        if (end.kind == (V == IpVersion::v4 ? Kind::entry : Kind::prefix)) {
            const WordsOfBits shared{&w[2 * e + 1], &w[2 * e], &w[2 * e + 1], &w[2 * e]};
            const WordsOfBits own{&w[3], &w[2], &w[1], &w[0]};
            put_listed(*end.entries, shares_words_ ? shared : own, e, block);
            continue;
        }
        const auto bits = [&](std::size_t j) -> Bits<V> {
            if constexpr (V == IpVersion::v4)
                return joined(w[2 * e][j], w[2 * e + 1][j]);
            else
                return Wide{joined(w[0][j], w[1][j])} << half_bits | joined(w[2][j], w[3][j]);
        };
        std::array<Number<V>, lanes> found;
        if (end.kind == Kind::entry) {
            for (std::size_t j = 0; j < lanes; ++j) {
                const auto& entry = (*end.entries)[block.lanes.field[e][j]];
                found[j] = entry.first + scaled(bits(j), entry.last - entry.first);
            }
        } else if (end.kind == Kind::only_entry) {
            const Number<V> first = (*end.entries)[0].first;
            for (std::size_t j = 0; j < lanes; ++j) found[j] = first + block.lanes.field[e][j];
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
        if constexpr (V == IpVersion::v4) {
            block.lanes.field[e] = found;
        } else {
            for (std::size_t j = 0; j < lanes; ++j) put_address_v6(block, e, j, found[j]);
        }
    }
}

/// Always inlined: GCC drops calls of a function that does nothing but prefetch.
template <IpVersion V>
[[gnu::always_inline]] inline void WholeDraw::fetch_of(const Ends<V>& ends, const FlowBlock& block, std::size_t begin,
                                                       std::size_t end) noexcept {
    for (std::size_t e = 0; e < ends.size(); ++e) {
        if (!ends[e].is_of_entries() || ends[e].entries->size() == 1) continue;
        for (std::size_t j = begin; j < end; ++j) ends[e].entries->fetch(block.lanes.field[e][j]);
    }
}

void WholeDraw::fetch(const FlowBlock& block, std::size_t begin, std::size_t end) const noexcept {
    if (const auto* const ends = std::get_if<Ends<IpVersion::v4>>(&ends_); ends != nullptr)
        fetch_of(*ends, block, begin, end);
    else
        fetch_of(*std::get_if<Ends<IpVersion::v6>>(&ends_), block, begin, end);
}

bool WholeDraw::is_slow_to_fetch() const noexcept {
    constexpr std::size_t in_a_cache = 4096;
    return std::visit(
        [](const auto& ends) {
            return std::ranges::any_of(
                ends, [](const auto& end) { return end.is_of_entries() && end.entries->size() > in_a_cache; });
        },
        ends_);
}

void WholeDraw::apply(const std::uint64_t* numbers, FlowBlock& block) const noexcept {
    if (const auto* const ends = std::get_if<Ends<IpVersion::v4>>(&ends_); ends != nullptr)
        choose(*ends, numbers, block);
    else
        choose(*std::get_if<Ends<IpVersion::v6>>(&ends_), numbers, block);
}

void WholeDraw::put_address(FlowBlock& block, std::size_t end, std::size_t j, IpVersion version,
                            Wide address) noexcept {
    if (version == IpVersion::v6)
        put_address_v6(block, end, j, address);
    else
        block.lanes.field[end][j] = static_cast<std::uint32_t>(address);
}

FlowAddresses WholeDraw::addresses(std::uint64_t k, const Fields& fields) const noexcept {
    const auto words = [&](std::size_t end) {
        return philox4x32({static_cast<std::uint32_t>(k), static_cast<std::uint32_t>(k >> 32U), stream_of(end), 0},
                          key_);
    };
    const auto first = words(0);
    const auto shared_bits = [&](std::size_t end) { return joined(first[2 * end], first[2 * end + 1]); };
    if (const auto* const ends = std::get_if<Ends<IpVersion::v4>>(&ends_); ends != nullptr) {
        return {.source = address_of(IpVersion::v4, (*ends)[0].address(k, fields[0], shared_bits(0))),
                .destination = address_of(IpVersion::v4, (*ends)[1].address(k, fields[1], shared_bits(1)))};
    }
    const auto& ends = *std::get_if<Ends<IpVersion::v6>>(&ends_);
    const auto bits = [&](std::size_t end) {
        if (shares_words_) return Wide{shared_bits(end)};
        const auto w = words(end);
        return Wide{joined(w[0], w[1])} << half_bits | joined(w[2], w[3]);
    };
    return {.source = address_of(IpVersion::v6, ends[0].address(k, fields[0], bits(0))),
            .destination = address_of(IpVersion::v6, ends[1].address(k, fields[1], bits(1)))};
}

WholeDraw::Fields WholeDraw::values(const FlowAddresses& addresses) noexcept {
    const auto value = [](const IpAddress& address) {
        const Wide number = number_of(address);
        return address.version == IpVersion::v4 ? static_cast<std::uint32_t>(number) : sum_of(number);
    };
    return {value(addresses.source), value(addresses.destination)};
}

}  // namespace evenhand::plan
