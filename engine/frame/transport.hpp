// SPDX-License-Identifier: Apache-2.0
// Stations 2 and 5: frames of a class whose header behind IP is that of TCP or ICMP, without any state. They are
// written and checked as UDP frames: a header takes the place of UDP's when they have been written, and UDP's comes
// back before they are checked. So all else knows UDP only, and frames without such a class pay nothing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "frame/checksum.hpp"
#include "frame/layout.hpp"
#include "frame/pattern.hpp"
#include "frame/reader.hpp"

namespace evenhand::frame {

constexpr std::uint8_t protocol_icmp = 1;
constexpr std::uint8_t protocol_tcp = 6;

/// The header of a class.
struct Transport {
    enum class Kind : std::uint8_t { udp, tcp, icmp };
    static constexpr std::size_t most_octets = 20;

    Kind kind = Kind::udp;
    /// Without the numbers that are drawn as UDP ports, TCP's ports or ICMP's identifier and sequence number, and
    /// without the checksum: these are 0.
    std::array<std::byte, most_octets> header{};

    friend bool operator==(const Transport&, const Transport&) = default;

    [[nodiscard]] constexpr bool is_udp() const noexcept { return kind == Kind::udp; }
    [[nodiscard]] static constexpr std::size_t octets_of(Kind kind) noexcept {
        return kind == Kind::tcp ? most_octets : udp_octets;
    }
    /// How much longer the header is than UDP's.
    [[nodiscard]] constexpr std::size_t more_octets() const noexcept { return octets_of(kind) - udp_octets; }
    [[nodiscard]] static constexpr std::size_t numbers_of(Kind kind) noexcept {
        return kind == Kind::icmp ? std::size_t{4} : std::size_t{0};
    }
    [[nodiscard]] static constexpr std::size_t checksum_of(Kind kind) noexcept {
        return kind == Kind::tcp ? std::size_t{16} : kind == Kind::icmp ? std::size_t{2} : std::size_t{6};
    }
    [[nodiscard]] static constexpr std::uint8_t protocol_of(Kind kind, IpVersion version) noexcept {
        if (kind == Kind::udp) return protocol_udp;
        if (kind == Kind::tcp) return protocol_tcp;
        return version == IpVersion::v4 ? protocol_icmp : protocol_icmpv6;
    }
};

namespace detail {

/// The octets of the pattern that TCP's longer header takes.
constexpr std::size_t taken_octets = Transport::most_octets - udp_octets;

[[nodiscard]] inline std::uint64_t without(std::uint64_t sum) noexcept { return 0xFFFFU - fold(sum); }

/// What a checksum covers besides addresses, numbers, tag and pattern behind it; `header` without its numbers and its
/// checksum.
template <IpVersion V>
[[nodiscard]] std::uint64_t sum_of(Transport::Kind kind, const std::byte* header, const std::byte* frame,
                                   std::size_t length) noexcept {
    using Kind = Transport::Kind;
    if (kind == Kind::udp) {
        const std::uint64_t taken = sum_short(pattern_octets.data(), taken_octets);
        return pseudo_header_sum(protocol_udp, length) + big(static_cast<std::uint16_t>(length)) + taken;
    }
    const std::uint64_t of_header = sum_short(header, Transport::octets_of(kind));
    const std::uint64_t pattern = kind == Kind::tcp ? 0 : sum_short(pattern_octets.data(), taken_octets);
    if (kind == Kind::icmp && V == IpVersion::v4)  // covers no addresses
        return of_header + pattern + without(sum_short(frame + Layout<V>::source, 2 * plan::address_octets(V)));
    return of_header + pattern + pseudo_header_sum(Transport::protocol_of(kind, V), length);
}

template <IpVersion V>
void set_protocol(std::byte* frame, std::uint8_t protocol) noexcept {
    using L = Layout<V>;
    std::byte& at = frame[L::ip + (V == IpVersion::v4 ? 9 : 6)];
    if constexpr (V == IpVersion::v4) {
        const auto sum = static_cast<std::uint16_t>(~big(load<std::uint16_t>(frame + L::ipv4_checksum)));
        const std::uint64_t other = std::uint64_t{sum} + protocol + without(static_cast<std::uint8_t>(at));
        store(frame + L::ipv4_checksum, big(static_cast<std::uint16_t>(~fold(other))));
    }
    at = std::byte{protocol};
}

/// Exchanges the header of `from` for that of `to`, which stands in `header`, and moves the tag.
template <IpVersion V>
void exchange(std::byte* frame, std::size_t octets, Transport::Kind from, Transport::Kind to,
              const std::array<std::byte, Transport::most_octets>& old_header,
              const std::array<std::byte, Transport::most_octets>& header) noexcept {
    using L = Layout<V>;
    std::byte* const at = frame + L::udp;
    const std::size_t length = octets - L::udp;
    const auto numbers = load<std::uint32_t>(at + Transport::numbers_of(from));
    const auto sum = static_cast<std::uint16_t>(~load<std::uint16_t>(at + Transport::checksum_of(from)));
    const std::uint64_t other = std::uint64_t{sum} + without(sum_of<V>(from, old_header.data(), frame, length)) +
                                sum_of<V>(to, header.data(), frame, length);
    std::array<std::byte, tag_octets> tag{};
    std::memcpy(tag.data(), at + Transport::octets_of(from), tag.size());
    std::memcpy(at, header.data(), Transport::octets_of(to));
    if (to == Transport::Kind::udp) store(at + 4, big(static_cast<std::uint16_t>(length)));
    store(at + Transport::numbers_of(to), numbers);
    store(at + Transport::checksum_of(to), udp_checksum(other));
    std::memcpy(at + Transport::octets_of(to), tag.data(), tag.size());
    if (from == Transport::Kind::tcp) std::memcpy(frame + L::tag_end, pattern_octets.data(), taken_octets);
}

}  // namespace detail

/// Puts the header in the place of UDP's, in a frame whose UDP checksum is right, or as wrong as that of the other
/// header is to be. `octets`: of the frame without tags and FCS; TCP's header takes 12 of its pattern.
template <IpVersion V>
void wrap(std::byte* frame, std::size_t octets, const Transport& transport) noexcept {
    if (!transport.is_udp())
        detail::exchange<V>(frame, octets, Transport::Kind::udp, transport.kind, {}, transport.header);
    detail::set_protocol<V>(frame, Transport::protocol_of(transport.kind, V));
}

/// Makes a received frame one of UDP if it has the header of `transport_of(its number)`, so that it is what a frame of
/// UDP would be: intact or not, with the same addresses, numbers, tag and pattern. If it has another header, its IP
/// header says that it is none of UDP. Returns the header that it had, for wrap(); nothing if the frame was left as it
/// is, such as one that is no test frame.
template <IpVersion V, class TransportOf>
[[nodiscard]] std::optional<Transport> unwrap(std::byte* frame, std::size_t octets,
                                              const TransportOf& transport_of) noexcept {
    using L = Layout<V>;
    using Kind = Transport::Kind;
    constexpr std::size_t protocol_at = L::ip + (V == IpVersion::v4 ? 9 : 6);
    if (octets < L::tag_end) return std::nullopt;
    const auto protocol = static_cast<std::uint8_t>(frame[protocol_at]);
    Transport had{.kind = protocol == protocol_tcp                            ? Kind::tcp
                          : protocol == Transport::protocol_of(Kind::icmp, V) ? Kind::icmp
                                                                              : Kind::udp};
    std::byte* const at = frame + L::udp;
    const std::byte* const tag = at + Transport::octets_of(had.kind);
    if (octets < L::tag_end + had.more_octets() || big(load<std::uint32_t>(tag)) >> 8U != tag_magic)
        return std::nullopt;
    const Transport& wanted = transport_of(numbers_at(tag).sequence);
    if (had.is_udp()) {
        if (wanted.is_udp() || protocol != protocol_udp) return std::nullopt;
        frame[protocol_at] = std::byte{0};
        return had;
    }
    std::memcpy(had.header.data(), at, Transport::octets_of(had.kind));
    store(had.header.data() + Transport::numbers_of(had.kind), std::uint32_t{0});
    store(had.header.data() + Transport::checksum_of(had.kind), std::uint16_t{0});
    detail::exchange<V>(frame, octets, had.kind, Kind::udp, had.header, {});
    if (had == wanted) detail::set_protocol<V>(frame, protocol_udp);
    return had;
}

[[nodiscard]] inline bool is_ipv4(const std::byte* frame) noexcept {
    return big(load<std::uint16_t>(frame + 12)) == ethertype_ipv4;
}

/// The same for a frame of either version; nothing for one of neither.
template <class TransportOf>
[[nodiscard]] std::optional<Transport> unwrap(std::byte* frame, std::size_t octets,
                                              const TransportOf& transport_of) noexcept {
    if (octets < ethernet_octets) return std::nullopt;
    const auto type = big(load<std::uint16_t>(frame + 12));
    if (type == ethertype_ipv4) return unwrap<IpVersion::v4>(frame, octets, transport_of);
    if (type == ethertype_ipv6) return unwrap<IpVersion::v6>(frame, octets, transport_of);
    return std::nullopt;
}

}  // namespace evenhand::frame
