// SPDX-License-Identifier: Apache-2.0
// Stations 2 and 5: frames of a class whose header behind IP is that of TCP or ICMP, without any state, or that have a
// payload of their own in front of the tag. They are written and checked as UDP frames: header and payload take the
// place of UDP's header when they have been written, and that comes back before they are checked. So all else knows UDP
// only, and frames without such a class pay nothing.
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

/// What stands between the IP header and the tag of a class's frames.
struct Transport {
    enum class Kind : std::uint8_t { udp, tcp, icmp };
    static constexpr std::size_t most_header_octets = 20;
    static constexpr std::size_t most_payload_octets = 128;
    static constexpr std::size_t most_more_octets = most_header_octets - udp_octets + most_payload_octets;

    Kind kind = Kind::udp;
    std::uint8_t payload_octets = 0;
    /// Without the numbers that are drawn as UDP ports, TCP's ports or ICMP's identifier and sequence number, and
    /// without the checksum: these are 0. Nothing of UDP's.
    std::array<std::byte, most_header_octets> header{};
    /// The same octets in each frame, right behind the header.
    std::array<std::byte, most_payload_octets> payload{};

    friend bool operator==(const Transport&, const Transport&) = default;

    /// Whether it is UDP's header alone, as the frames of most classes have it.
    [[nodiscard]] constexpr bool is_plain() const noexcept { return kind == Kind::udp && payload_octets == 0; }
    [[nodiscard]] static constexpr std::size_t octets_of(Kind kind) noexcept {
        return kind == Kind::tcp ? most_header_octets : udp_octets;
    }
    /// With the payload.
    [[nodiscard]] constexpr std::size_t octets() const noexcept { return octets_of(kind) + payload_octets; }
    /// How much longer it is than UDP's header: so many octets it takes of the pattern.
    [[nodiscard]] constexpr std::size_t more_octets() const noexcept { return octets() - udp_octets; }
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

[[nodiscard]] inline std::uint64_t without(std::uint64_t sum) noexcept { return 0xFFFFU - fold(sum); }

template <IpVersion V>
constexpr std::size_t protocol_at = Layout<V>::ip + (V == IpVersion::v4 ? 9 : 6);

/// The sum of what a checksum covers, but for the octets behind the tag, which stay where they are. `more`: as
/// Transport::more_octets(), of the frame with or without the longer header.
template <IpVersion V>
[[nodiscard]] std::uint64_t sum_of(Transport::Kind kind, const std::byte* frame, std::size_t octets,
                                   std::size_t more) noexcept {
    using L = Layout<V>;
    const std::uint64_t sum = sum_short(frame + L::udp, L::tag_end - L::udp + more);
    if (kind == Transport::Kind::icmp && V == IpVersion::v4) return sum;  // covers no addresses
    return sum + sum_short(frame + L::source, 2 * plan::address_octets(V)) +
           pseudo_header_sum(Transport::protocol_of(kind, V), octets - L::udp);
}

/// Makes the checksum as right or wrong as it was when sum_of() was `before`. A UDP frame without one stays so.
template <IpVersion V>
void put_checksum(std::byte* frame, std::size_t octets, Transport::Kind kind, std::size_t more,
                  std::uint64_t before) noexcept {
    std::byte* const at = frame + Layout<V>::udp + Transport::checksum_of(kind);
    store(at, std::uint16_t{0});
    store(at, fold(before + without(sum_of<V>(kind, frame, octets, more))));
}

template <IpVersion V>
[[nodiscard]] bool has_no_checksum(const std::byte* frame, Transport::Kind kind) noexcept {
    return kind == Transport::Kind::udp && load<std::uint16_t>(frame + Layout<V>::udp_checksum) == 0;
}

template <IpVersion V>
void set_protocol(std::byte* frame, std::uint8_t protocol) noexcept {
    using L = Layout<V>;
    std::byte& at = frame[protocol_at<V>];
    if (at == std::byte{protocol}) return;
    if constexpr (V == IpVersion::v4) {
        const auto sum = static_cast<std::uint16_t>(~big(load<std::uint16_t>(frame + L::ipv4_checksum)));
        const std::uint64_t other = std::uint64_t{sum} + protocol + without(static_cast<std::uint8_t>(at));
        store(frame + L::ipv4_checksum, big(static_cast<std::uint16_t>(~fold(other))));
    }
    at = std::byte{protocol};
}

using Tag = std::array<std::byte, tag_octets>;

[[nodiscard]] inline Tag tag_at(const std::byte* at) noexcept {
    Tag tag;
    std::memcpy(tag.data(), at, tag.size());
    return tag;
}

/// Where a frame has its tag, and what its class has.
struct FoundTag {
    const Transport* wanted = nullptr;  // null: there is none
    std::uint8_t payload_octets = 0;    // in front of it
    std::uint64_t sequence = 0;
};

/// How like the payload of a class these octets are. None at all says more than one that is mostly another, since a tag
/// in an altered payload must not be taken for the frame's own.
[[nodiscard]] inline unsigned likeness_of(const std::byte* payload, const Transport& its) noexcept {
    if (its.payload_octets == 0) return 1;
    if (std::memcmp(payload, its.payload.data(), its.payload_octets) == 0) return 3;
    unsigned same = 0;
    for (std::size_t i = 0; i < its.payload_octets; ++i) same += static_cast<unsigned>(payload[i] == its.payload[i]);
    return 2 * same > its.payload_octets ? 2 : 0;
}

/// Looks behind payloads of each length that a class has. A payload may have octets that look like a tag, and so may a
/// tag: the place is right whose trial, length and payload are those of its number's class. If none is wholly so, the
/// frame is altered or of another trial, and the likeliest place says which number it has.
template <class Classes>
[[nodiscard]] FoundTag find_tag(const std::byte* header, std::size_t octets, Transport::Kind kind,
                                const Classes& classes, std::uint16_t trial) noexcept {
    FoundTag found;
    unsigned best = 0;
    const std::byte* const payload = header + Transport::octets_of(kind);
    for (const std::uint8_t length : classes.payload_sizes()) {
        const std::byte* const tag = payload + length;
        if (octets < Transport::octets_of(kind) + length + tag_octets) continue;
        if (big(load<std::uint32_t>(tag)) >> 8U != tag_magic) continue;
        const std::uint64_t sequence = numbers_at(tag).sequence;
        const Transport& its = classes.transport_of(sequence);
        unsigned likeness = big(load<std::uint16_t>(tag + tag_trial)) == trial ? 9 : 1;
        if (its.payload_octets == length) likeness += 4 + likeness_of(payload, its);
        if (likeness <= best) continue;
        best = likeness;
        found = {.wanted = &its, .payload_octets = length, .sequence = sequence};
    }
    return found;
}

template <IpVersion V>
[[nodiscard]] Transport::Kind kind_of(const std::byte* frame) noexcept {
    using Kind = Transport::Kind;
    const auto protocol = static_cast<std::uint8_t>(frame[protocol_at<V>]);
    if (protocol == protocol_tcp) return Kind::tcp;
    return protocol == Transport::protocol_of(Kind::icmp, V) ? Kind::icmp : Kind::udp;
}

template <IpVersion V, class Classes>
[[nodiscard]] FoundTag find_tag(const std::byte* frame, std::size_t octets, const Classes& classes,
                                std::uint16_t trial) noexcept {
    using L = Layout<V>;
    if (octets < L::tag_end) return {};
    return find_tag(frame + L::udp, octets - L::udp, kind_of<V>(frame), classes, trial);
}

}  // namespace detail

/// Puts header and payload in the place of UDP's header, in a frame whose UDP checksum is right, or as wrong as that of
/// the other header is to be. `octets`: of the frame without tags and FCS, which has that many of its pattern.
template <IpVersion V>
void wrap(std::byte* frame, std::size_t octets, const Transport& transport) noexcept {
    using L = Layout<V>;
    using Kind = Transport::Kind;
    const Kind kind = transport.kind;
    if (!transport.is_plain()) {
        std::byte* const at = frame + L::udp;
        const bool has_none = detail::has_no_checksum<V>(frame, kind);
        const std::uint64_t before = detail::sum_of<V>(Kind::udp, frame, octets, transport.more_octets());
        const auto tag = detail::tag_at(frame + L::tag);
        if (kind != Kind::udp) {
            const auto numbers = load<std::uint32_t>(at);
            std::memcpy(at, transport.header.data(), Transport::octets_of(kind));
            store(at + Transport::numbers_of(kind), numbers);
        }
        std::memcpy(at + Transport::octets_of(kind), transport.payload.data(), transport.payload_octets);
        std::memcpy(at + transport.octets(), tag.data(), tag.size());
        if (!has_none) detail::put_checksum<V>(frame, octets, kind, transport.more_octets(), before);
    }
    // unwrap() has put 0 in the place of UDP's number, and left one that is none of these.
    if (kind != Kind::udp || frame[detail::protocol_at<V>] == std::byte{0})
        detail::set_protocol<V>(frame, Transport::protocol_of(kind, V));
}

/// Makes a received frame one of UDP if it has the header of its number's class, so that it is what a frame of UDP
/// would be: intact or not, with the same addresses, numbers, tag and pattern. What is altered in its payload is then
/// altered in its pattern. If it has another header, or a payload of another length, its IP header says that it is
/// none of UDP. Returns whether it was changed, and gives `had` what it had, for wrap(); one that is no test frame is
/// left as it is. `classes`: see FrameMix; `trial`: the number in the tags of this trial.
template <IpVersion V, class Classes>
[[nodiscard]] bool unwrap(std::byte* frame, std::size_t octets, const Classes& classes, std::uint16_t trial,
                          Transport* had = nullptr) noexcept {
    using L = Layout<V>;
    using Kind = Transport::Kind;
    const auto found = detail::find_tag<V>(frame, octets, classes, trial);
    // A protocol of 0 is what marks a frame below.
    if (found.wanted == nullptr || frame[detail::protocol_at<V>] == std::byte{0}) return false;
    const Transport& wanted = *found.wanted;
    const bool is_udp = frame[detail::protocol_at<V>] == std::byte{protocol_udp};
    const Kind kind = detail::kind_of<V>(frame);
    std::byte* const at = frame + L::udp;
    Transport its{.kind = kind, .payload_octets = found.payload_octets};
    if (its.is_plain()) {
        if (wanted.is_plain() || !is_udp) return false;
        detail::set_protocol<V>(frame, 0);
        if (had != nullptr) *had = its;
        return true;
    }
    const std::size_t more = its.more_octets();
    const std::uint64_t before = detail::sum_of<V>(kind, frame, octets, more);
    const bool has_none = detail::has_no_checksum<V>(frame, kind);
    const auto tag = detail::tag_at(at + its.octets());
    std::memcpy(its.payload.data(), at + Transport::octets_of(kind), its.payload_octets);
    if (kind != Kind::udp) {
        const auto numbers = load<std::uint32_t>(at + Transport::numbers_of(kind));
        std::memcpy(its.header.data(), at, Transport::octets_of(kind));
        store(its.header.data() + Transport::numbers_of(kind), std::uint32_t{0});
        store(its.header.data() + Transport::checksum_of(kind), std::uint16_t{0});
        store(at, numbers);
        store(at + 4, big(static_cast<std::uint16_t>(octets - L::udp)));
    }
    std::memcpy(frame + L::tag, tag.data(), tag.size());
    std::memcpy(frame + L::tag_end, pattern_octets.data(), more);
    const bool is_of_class =
        kind == wanted.kind && its.header == wanted.header && its.payload_octets == wanted.payload_octets;
    for (std::size_t i = 0; is_of_class && i < its.payload_octets; ++i)
        frame[L::tag_end + i] ^= its.payload[i] ^ wanted.payload[i];
    if (!has_none) detail::put_checksum<V>(frame, octets, Kind::udp, more, before);
    if (is_udp && !is_of_class) detail::set_protocol<V>(frame, 0);
    if (kind != Kind::udp && is_of_class) detail::set_protocol<V>(frame, protocol_udp);
    if (had != nullptr) *had = its;
    return true;
}

[[nodiscard]] inline bool is_ipv4(const std::byte* frame) noexcept {
    return big(load<std::uint16_t>(frame + 12)) == ethertype_ipv4;
}

/// The same for a frame of either version; nothing happens to one of neither.
template <class Classes>
[[nodiscard]] bool unwrap(std::byte* frame, std::size_t octets, const Classes& classes, std::uint16_t trial,
                          Transport* had = nullptr) noexcept {
    if (octets < ethernet_octets) return false;
    const auto type = big(load<std::uint16_t>(frame + 12));
    if (type == ethertype_ipv4) return unwrap<IpVersion::v4>(frame, octets, classes, trial, had);
    if (type == ethertype_ipv6) return unwrap<IpVersion::v6>(frame, octets, classes, trial, had);
    return false;
}

/// The number of a test frame as it arrives, whatever its class has in front of the tag; nothing for any other frame.
template <class Classes>
[[nodiscard]] std::optional<std::uint64_t> number_of(const std::byte* frame, std::size_t octets, const Classes& classes,
                                                     std::uint16_t trial) noexcept {
    if (octets < ethernet_octets) return std::nullopt;
    const auto type = big(load<std::uint16_t>(frame + 12));
    detail::FoundTag found;
    if (type == ethertype_ipv4) found = detail::find_tag<IpVersion::v4>(frame, octets, classes, trial);
    if (type == ethertype_ipv6) found = detail::find_tag<IpVersion::v6>(frame, octets, classes, trial);
    return found.wanted == nullptr ? std::nullopt : std::optional{found.sequence};
}

}  // namespace evenhand::frame
