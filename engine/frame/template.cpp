// SPDX-License-Identifier: Apache-2.0
#include "frame/template.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "fault.hpp"
#include "frame/checksum.hpp"
#include "frame/class_fields.hpp"

namespace evenhand::frame {
namespace {

/// The sum of an IP header, for the checksum of IPv4.
template <class L>
std::uint64_t sum_header(const FrameTemplate& t) noexcept {
    return sum_octets(t.head.data() + L::ip, L::ip_octets);
}

template <IpVersion V>
void write_ip(FrameTemplate& t, const plan::IpAddress& source, const plan::IpAddress& destination, bool is_translated) {
    using L = Layout<V>;
    std::byte* const ip = t.head.data() + L::ip;
    if constexpr (V == IpVersion::v4) {
        ip[0] = std::byte{0x45};
        store(ip + 2, big(static_cast<std::uint16_t>(t.octets - ethernet_octets)));
        // A packet that may be fragmented would get a fragment header from a translator, or would be fragmented (RFC
        // 7915, 4).
        if (is_translated) store(ip + 6, big(dont_fragment));
        ip[8] = std::byte{sent_ttl};
        ip[9] = std::byte{protocol_udp};
    } else {
        ip[0] = std::byte{0x60};
        store(ip + 4, big(static_cast<std::uint16_t>(t.octets - L::udp)));
        ip[6] = std::byte{protocol_udp};
        ip[7] = std::byte{sent_ttl};
    }
    std::memcpy(t.head.data() + L::source, source.octets.data(), plan::address_octets(V));
    std::memcpy(t.head.data() + L::destination, destination.octets.data(), plan::address_octets(V));
}

/// The hosts that frames are sent between, the MACs that they have, and what follows the tag.
struct Kind {
    plan::HostPair hosts;
    plan::MacAddress source_mac{};
    plan::MacAddress destination_mac{};
    bool is_translated = false;
    std::uint8_t first_of_pattern = 0;
};

template <IpVersion V>
void place_numbers(FrameTemplate& t, const plan::HostRange& from, const plan::HostRange& to) {
    using L = Layout<V>;
    t.source = host_place(from, L::source);
    t.destination = host_place(to, L::destination);
    t.has_network_octets = from.has_network_octets();  // and so has the other side, as check_plan ensures
    if (t.has_network_octets) {
        t.source_network_at = L::source + from.network->offset;
        t.destination_network_at = L::destination + to.network->offset;
    }
}

/// The last word of each address, and in IPv4 the one in front of it.
template <IpVersion V>
void place_whole_addresses(FrameTemplate& t) {
    using L = Layout<V>;
    constexpr std::size_t last_word = plan::address_octets(V) - 2;
    t.source = {.high = L::source + last_word, .low = L::source + last_word + 1};
    t.destination = {.high = L::destination + last_word, .low = L::destination + last_word + 1};
    if constexpr (V == IpVersion::v4) {
        t.has_network_octets = true;
        t.source_network_at = L::source;
        t.destination_network_at = L::destination;
    }
}

template <IpVersion V>
FrameTemplate make(const Kind& kind, std::size_t frame_size, StreamIdentity id) {
    using L = Layout<V>;
    FrameTemplate t;
    t.version = V;
    t.octets = frame_size - fcs_octets;
    const auto& [from, to] = kind.hosts;
    t.has_whole_addresses = kind.hosts.has_list();
    if (t.has_whole_addresses) {
        place_whole_addresses<V>(t);
    } else {
        place_numbers<V>(t, from, to);
    }

    std::memcpy(t.head.data(), kind.destination_mac.data(), kind.destination_mac.size());
    std::memcpy(t.head.data() + 6, kind.source_mac.data(), kind.source_mac.size());
    store(t.head.data() + 12, big(V == IpVersion::v4 ? ethertype_ipv4 : ethertype_ipv6));
    const auto constant_part = [&](const plan::HostRange& hosts) {
        return t.has_whole_addresses ? plan::IpAddress{.version = V} : hosts.address(0);
    };
    write_ip<V>(t, constant_part(from), constant_part(to), kind.is_translated);
    const std::size_t udp_length = t.octets - L::udp;
    store(t.head.data() + L::udp_length, big(static_cast<std::uint16_t>(udp_length)));

    std::byte* const tag = t.head.data() + L::tag;
    store(tag, big(tag_magic << 8U));
    store(tag + tag_trial, big(id.trial));
    tag[tag_stream] = std::byte{
        static_cast<std::uint8_t>((id.direction == plan::Direction::reverse ? direction_bit : 0U) | id.stream)};

    t.ip_sum = sum_header<L>(t);
    std::array<std::byte, largest_frame_size> whole{};
    for (std::size_t i = L::tag_end; i < t.octets; ++i)
        whole.at(i) = static_cast<std::byte>(i - L::tag_end + kind.first_of_pattern);
    std::copy_n(t.head.data(), L::tag_end, whole.data());
    t.udp_sum =
        sum_octets(whole.data() + L::source, t.octets - L::source) + pseudo_header_sum(protocol_udp, udp_length);
    return t;
}

FrameTemplate make(IpVersion version, const Kind& kind, std::size_t frame_size, StreamIdentity identity) {
    return version == IpVersion::v4 ? make<IpVersion::v4>(kind, frame_size, identity)
                                    : make<IpVersion::v6>(kind, frame_size, identity);
}

}  // namespace

void check_frame_size(IpVersion version, std::size_t frame_size, const std::string& where) {
    const std::size_t smallest = smallest_frame_size(version);
    if (frame_size < smallest || frame_size > largest_frame_size) {
        throw Fault{
            FaultCode::bad_frame_size,
            fmt::format("{} octets cannot be an IPv{} test frame", frame_size, static_cast<int>(version)), where,
            fmt::format("Use {} to {}: headers, 18 octets of tag and the FCS must fit.", smallest, largest_frame_size)};
    }
}

void check_length(std::size_t frame_size, std::size_t longest, const std::string& where) {
    if (longest <= largest_frame_size) return;
    throw Fault{FaultCode::bad_frame_size,
                fmt::format("{} octets cannot be a test frame: on a link it has {}", frame_size, longest), where,
                fmt::format("Use at most {}: a frame size counts the tags of the side that sends, but no tunnel.",
                            largest_frame_size - (longest - frame_size))};
}

FrameTemplate make_template(const plan::AddressPlan& plan, std::size_t frame_size, StreamIdentity identity,
                            plan::MacAddress source_mac, plan::MacAddress destination_mac,
                            std::optional<IpVersion> pattern) {
    const IpVersion version = plan.side(plan::sending_side(identity.direction)).version();
    check_frame_size(version, frame_size);
    return make(version,
                {.hosts = plan.sent(identity.direction),
                 .source_mac = source_mac,
                 .destination_mac = destination_mac,
                 .is_translated = plan.is_translated(),
                 .first_of_pattern = first_of_pattern(version, pattern.value_or(version))},
                frame_size, identity);
}

FrameTemplate make_arriving_template(IpVersion version, const plan::HostPair& hosts, std::size_t frame_size,
                                     StreamIdentity identity, std::uint8_t first_of_pattern) {
    return make(version, {.hosts = hosts, .first_of_pattern = first_of_pattern}, frame_size, identity);
}

void mark(FrameTemplate& t, const ClassFields& fields) noexcept {
    if (t.version == IpVersion::v4) {
        using L = Layout<IpVersion::v4>;
        t.head[L::ip + 1] = static_cast<std::byte>(fields.mark(t.version));
        t.ip_sum = sum_header<L>(t);
    } else {
        std::byte* const ip = t.head.data() + Layout<IpVersion::v6>::ip;
        store(ip, big(big(load<std::uint32_t>(ip)) | fields.mark(t.version)));
    }
}

void write_pattern(IpVersion version, std::span<std::byte> frame) {
    const std::size_t first =
        version == IpVersion::v4 ? Layout<IpVersion::v4>::tag_end : Layout<IpVersion::v6>::tag_end;
    for (std::size_t i = first; i < frame.size(); ++i) frame[i] = static_cast<std::byte>(i - first);
}

}  // namespace evenhand::frame
