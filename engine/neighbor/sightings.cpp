// SPDX-License-Identifier: Apache-2.0
#include "neighbor/sightings.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "frame/reader.hpp"
#include "frame/vlan.hpp"
#include "neighbor/messages.hpp"

namespace evenhand::neighbor {
namespace {

constexpr std::size_t macs_octets = 12;
constexpr std::size_t most_noted = 16;  // addresses

bool is_tag(std::uint16_t type) {
    constexpr std::uint16_t older_service_vlan = 0x9100;  // used by switches before 802.1ad
    return type == frame::ethertype_vlan || type == frame::ethertype_service_vlan || type == older_service_vlan;
}

std::uint16_t type_at(std::span<const std::byte> frame, std::size_t at) {
    return frame::big(frame::load<std::uint16_t>(frame.data() + at));
}

Tags tags_of(std::span<const std::byte> frame) {
    constexpr std::uint32_t type_and_vlan = 0xFFFF'0FFF;
    Tags tags;
    for (std::size_t at = macs_octets;
         at + frame::vlan_tag_octets + 2 <= frame.size() && is_tag(type_at(frame, at)) && tags.size() < 4;
         at += frame::vlan_tag_octets)
        tags.push_back(frame::big(frame::load<std::uint32_t>(frame.data() + at)) & type_and_vlan);
    return tags;
}

void add(std::vector<plan::IpAddress>& list, const plan::IpAddress& address) {
    if (list.size() < most_noted && std::ranges::find(list, address) == list.end()) list.push_back(address);
}

std::optional<IcmpError> icmp_error_of(std::span<const std::byte> frame) {
    constexpr std::size_t ip = frame::ethernet_octets;
    const auto octet = [&](std::size_t at) {
        return at < frame.size() ? static_cast<std::uint8_t>(frame[at]) : std::uint8_t{0};
    };
    constexpr std::uint8_t protocol_icmp = 1;
    if (type_at(frame, macs_octets) == frame::ethertype_ipv4 && octet(ip + 9) == protocol_icmp) {
        const std::size_t at = ip + std::size_t{4} * (octet(ip) & 0x0FU);
        constexpr std::array errors{3, 11, 12};
        if (std::ranges::find(errors, octet(at)) != errors.end())
            return IcmpError{plan::IpVersion::v4, octet(at), octet(at + 1)};
    }
    constexpr std::size_t icmpv6 = ip + 40;
    constexpr std::uint8_t last_error = 4;
    if (type_at(frame, macs_octets) == frame::ethertype_ipv6 && octet(ip + 6) == frame::protocol_icmpv6 &&
        octet(icmpv6) >= 1 && octet(icmpv6) <= last_error)
        return IcmpError{plan::IpVersion::v6, octet(icmpv6), octet(icmpv6 + 1)};
    return std::nullopt;
}

}  // namespace

void Sightings::begin() {
    const std::lock_guard lock{mutex_};
    seen_ = {};
    notes_.store(true, std::memory_order_relaxed);
}

Seen Sightings::seen() const {
    const std::lock_guard lock{mutex_};
    return seen_;
}

void Sightings::note(std::span<const std::byte> frame) {
    if (frame.size() < frame::ethernet_octets) return;
    if (std::memcmp(frame.data() + own_mac_.size(), own_mac_.data(), own_mac_.size()) == 0) return;
    Tags tags = tags_of(frame);
    const std::size_t around = tags.size() * frame::vlan_tag_octets;
    const auto type = type_at(frame, macs_octets + around);
    if (tunnel_.is_none() && type != frame::ethertype_arp && type != frame::ethertype_ipv4 &&
        type != frame::ethertype_ipv6)
        return;
    const std::lock_guard lock{mutex_};
    if (tags != tags_) {
        seen_.other_tags = std::move(tags);
        return;
    }
    std::array<std::byte, frame::largest_frame_size> untagged;  // the frame without its tags
    const std::size_t octets = std::min(frame.size() - around, untagged.size());
    std::copy_n(frame.data(), macs_octets, untagged.data());
    std::copy_n(frame.data() + macs_octets + around, octets - macs_octets, untagged.data() + macs_octets);
    const auto inside = tunnel_.octets();
    if (tunnel_.is_none() || !tunnel_.fits(untagged.data(), octets)) {
        if (!tunnel_.has_ends()) note_untagged(std::span{untagged}.first(octets));
        return;
    }
    tunnel_.take(untagged.data());
    note_untagged(std::span{untagged}.first(octets).subspan(inside));
}

void Sightings::note_untagged(std::span<const std::byte> frame) {
    const frame::FirstLook look = frame::look_at(frame.data(), frame.size());
    if (look.kind == frame::FrameKind::test) {
        if (look.tag.trial == 0) ++seen_.test_frames[look.tag.direction];
    } else if (look.kind == frame::FrameKind::neighbor) {
        if (const auto question = read_question(frame)) add(seen_.asked, question->target);
        if (const auto party = read_announcement(frame)) add(seen_.told, party->ip);
    } else if (const auto error = icmp_error_of(frame)) {
        seen_.icmp = error;
    }
}

}  // namespace evenhand::neighbor
