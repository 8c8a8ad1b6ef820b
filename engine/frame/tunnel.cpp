// SPDX-License-Identifier: Apache-2.0
#include "frame/tunnel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "fault.hpp"
#include "frame/checksum.hpp"
#include "plan/host_set.hpp"
#include "split_mix.hpp"

namespace evenhand::frame {
namespace {

constexpr std::size_t macs_octets = 12;
constexpr std::size_t ip = ethernet_octets;
constexpr std::size_t vxlan_octets = 8;
constexpr std::size_t gre_octets = 4;
constexpr std::size_t label_octets = 4;
constexpr std::uint8_t protocol_ipv4 = 4;
constexpr std::uint8_t protocol_ipv6 = 41;
constexpr std::uint8_t vxlan_has_vni = 0x08;
constexpr unsigned below_label = 12;
constexpr std::uint32_t bottom_of_stack = 0x100;

/// Where fields of the outer IP header are.
constexpr std::size_t protocol_at(IpVersion v) { return ip + (v == IpVersion::v4 ? 9 : 6); }
constexpr std::size_t source_at(IpVersion v) {
    return v == IpVersion::v4 ? Layout<IpVersion::v4>::source : Layout<IpVersion::v6>::source;
}
constexpr std::size_t destination_at(IpVersion v) { return source_at(v) + plan::address_octets(v); }

/// The IP version of what begins here, if it is an IP packet, otherwise something else.
unsigned version_of(const std::byte* packet) { return static_cast<unsigned>(*packet) >> 4U; }

std::uint16_t ethertype_of(unsigned version) { return version == 4 ? ethertype_ipv4 : ethertype_ipv6; }
std::uint8_t protocol_of(unsigned version) { return version == 4 ? protocol_ipv4 : protocol_ipv6; }

/// 32 bits of the addresses and ports of a frame; the same for each frame of a flow.
std::uint32_t number_of_flow(const std::byte* frame) {
    const auto add = [](std::uint64_t sum, std::uint64_t word) {
        return ((sum ^ word) * golden_multiplier) ^ (sum >> 32U);
    };
    std::uint64_t sum = golden_multiplier;
    const auto type = big(load<std::uint16_t>(frame + macs_octets));
    if (type == ethertype_ipv4) {
        using L = Layout<IpVersion::v4>;
        sum = add(add(sum, load<std::uint64_t>(frame + L::source)), load<std::uint32_t>(frame + L::udp));
    } else if (type == ethertype_ipv6) {
        using L = Layout<IpVersion::v6>;
        for (std::size_t at = L::source; at < L::udp; at += sizeof sum) sum = add(sum, load<std::uint64_t>(frame + at));
        sum = add(sum, load<std::uint32_t>(frame + L::udp));
    }
    return static_cast<std::uint32_t>((sum ^ sum >> 29U) * golden_multiplier >> 32U);
}

void put_labels(std::byte* at, const std::vector<std::uint32_t>& labels) {
    for (std::size_t i = 0; i < labels.size(); ++i) {
        // The TTL of the packet, as an ingress copies it (RFC 3032, 2.4.3).
        const std::uint32_t entry =
            labels[i] << below_label | (i + 1 == labels.size() ? bottom_of_stack : 0U) | sent_ttl;
        store(at + i * label_octets, big(entry));
    }
}

}  // namespace

Tunnel::Tunnel(const TunnelEnds& ends) : kind_{ends.kind}, version_{ends.local.version} {
    std::byte* const h = header_.data();
    if (kind_ == TunnelKind::none) return;
    if (kind_ == TunnelKind::mpls) {
        added_octets_ = ends.labels.size() * label_octets;
        header_octets_ = ethernet_octets + added_octets_;
        store(h + macs_octets, big(ethertype_mpls));
        put_labels(h + ip, ends.labels);
        for (std::size_t i = 0; i < ends.arriving_labels.size(); ++i) {
            const auto bottom = i + 1 == ends.arriving_labels.size() ? bottom_of_stack : 0U;
            arriving_labels_.at(i) = big(ends.arriving_labels[i] << below_label | bottom);
        }
        return;
    }
    store(h + macs_octets, big(ethertype_of(static_cast<unsigned>(version_))));
    if (version_ == IpVersion::v4) {
        h[ip] = std::byte{0x45};
        store(h + ip + 6, big(dont_fragment));
        h[ip + 8] = std::byte{outer_ttl};
    } else {
        h[ip] = std::byte{0x60};
        h[ip + 7] = std::byte{outer_ttl};
    }
    std::memcpy(h + source_at(version_), ends.local.octets.data(), plan::address_octets(version_));
    std::memcpy(h + destination_at(version_), ends.remote.octets.data(), plan::address_octets(version_));
    const std::size_t behind_ip = ip + ip_octets();
    if (kind_ == TunnelKind::vxlan) {
        h[protocol_at(version_)] = std::byte{protocol_udp};
        store(h + behind_ip + 2, big(ends.udp_port));
        h[behind_ip + udp_octets] = std::byte{vxlan_has_vni};
        store(h + behind_ip + udp_octets + 4, big(ends.vni << 8U));
        added_octets_ = header_octets_ = behind_ip + udp_octets + vxlan_octets;
        return;
    }
    if (kind_ == TunnelKind::gre) h[protocol_at(version_)] = std::byte{protocol_gre};
    header_octets_ = behind_ip + (kind_ == TunnelKind::gre ? gre_octets : 0);
    added_octets_ = header_octets_ - ethernet_octets;
}

Tunnel Tunnel::between(const plan::MacAddress& own_mac, const plan::MacAddress& dut_mac) const noexcept {
    Tunnel other = *this;
    std::memcpy(other.header_.data(), dut_mac.data(), dut_mac.size());
    std::memcpy(other.header_.data() + dut_mac.size(), own_mac.data(), own_mac.size());
    return other;
}

void Tunnel::put(std::byte* frame, std::size_t octets) const noexcept {
    const std::byte* const inner = frame + added_octets_;
    if (kind_ == TunnelKind::mpls) {
        std::memmove(frame, inner, macs_octets);
        std::memcpy(frame + macs_octets, header_.data() + macs_octets, header_octets_ - macs_octets);
        return;
    }
    const auto type = load<std::uint16_t>(inner + macs_octets);
    const std::uint32_t number = number_of_flow(inner);
    std::memcpy(frame, header_.data(), header_octets_);
    const std::size_t behind_ip = ip + ip_octets();
    if (kind_ == TunnelKind::gre) store(frame + behind_ip + 2, type);
    if (kind_ == TunnelKind::ip)
        frame[protocol_at(version_)] = std::byte{big(type) == ethertype_ipv4 ? protocol_ipv4 : protocol_ipv6};
    if (version_ == IpVersion::v4) {
        store(frame + ip + 2, big(static_cast<std::uint16_t>(octets - ip)));
        store(frame + Layout<IpVersion::v4>::ipv4_checksum, ip_checksum(sum_short(frame + ip, ip_octets())));
    } else {
        constexpr unsigned above_label = 12;
        constexpr std::uint32_t version_6 = 0x60000000;
        store(frame + ip, big(version_6 | number >> above_label));
        store(frame + ip + 4, big(static_cast<std::uint16_t>(octets - behind_ip)));
    }
    if (kind_ != TunnelKind::vxlan) return;
    constexpr unsigned above_port = 18;
    constexpr std::uint32_t first_dynamic_port = 0xC000;
    std::byte* const udp = frame + behind_ip;
    store(udp, big(static_cast<std::uint16_t>(first_dynamic_port | number >> above_port)));
    store(udp + 4, big(static_cast<std::uint16_t>(octets - behind_ip)));
    // Over IPv4 it is 0 (RFC 7348, 5); over IPv6 an end need not accept that (RFC 6935).
    if (version_ == IpVersion::v6) {
        const std::size_t source = source_at(version_);
        store(udp + 6, udp_checksum(sum_octets(frame + source, octets - source) +
                                    pseudo_header_sum(protocol_udp, octets - behind_ip)));
    }
}

bool Tunnel::fits(const std::byte* frame, std::size_t octets) const noexcept {
    constexpr std::size_t least_packet_octets = 20;
    if (octets < ethernet_octets + added_octets_ + (has_ethernet() ? 0 : least_packet_octets)) return false;
    if (load<std::uint16_t>(frame + macs_octets) != load<std::uint16_t>(header_.data() + macs_octets)) return false;
    const unsigned version = version_of(frame + header_octets_);
    const bool is_packet = version == 4 || version == 6;
    switch (kind_) {
        case TunnelKind::none: return true;
        case TunnelKind::vxlan: return fits_outer_ip(frame, octets) && fits_vxlan(frame, octets);
        case TunnelKind::mpls: return is_packet && fits_labels(frame);
        case TunnelKind::gre:
            return is_packet && fits_outer_ip(frame, octets) &&
                   load<std::uint32_t>(frame + ip + ip_octets()) == big(std::uint32_t{ethertype_of(version)});
        case TunnelKind::ip: return is_packet && fits_outer_ip(frame, octets);
    }
    return false;
}

/// Its options, its length, its protocol, its addresses, its checksum, and whether it is whole.
bool Tunnel::fits_outer_ip(const std::byte* frame, std::size_t octets) const noexcept {
    const std::byte* const h = header_.data();
    const std::size_t behind_ip = ip + ip_octets();
    const auto protocol =
        kind_ == TunnelKind::ip ? std::byte{protocol_of(version_of(frame + header_octets_))} : h[protocol_at(version_)];
    const std::size_t source = source_at(version_);
    const std::size_t destination = destination_at(version_);
    const std::size_t address = plan::address_octets(version_);
    if (frame[protocol_at(version_)] != protocol || std::memcmp(frame + source, h + destination, address) != 0 ||
        std::memcmp(frame + destination, h + source, address) != 0)
        return false;
    if (version_ == IpVersion::v6)
        return version_of(frame + ip) == 6 && big(load<std::uint16_t>(frame + ip + 4)) == octets - behind_ip;
    constexpr std::uint16_t fragment_bits = 0x3FFF;
    constexpr std::uint16_t good = 0xFFFF;
    return frame[ip] == h[ip] && big(load<std::uint16_t>(frame + ip + 2)) == octets - ip &&
           (big(load<std::uint16_t>(frame + ip + 6)) & fragment_bits) == 0 &&
           fold(sum_short(frame + ip, ip_octets())) == good;
}

/// A checksum need not be there (RFC 7348, 5; RFC 6935), and what is reserved is ignored.
bool Tunnel::fits_vxlan(const std::byte* frame, std::size_t octets) const noexcept {
    constexpr std::uint32_t vni_bits = 0xFFFFFF00;
    constexpr std::uint16_t good = 0xFFFF;
    const std::size_t behind_ip = ip + ip_octets();
    const std::byte* const udp = frame + behind_ip;
    const std::byte* const own = header_.data() + behind_ip;
    const auto vni = load<std::uint32_t>(udp + udp_octets + 4) ^ load<std::uint32_t>(own + udp_octets + 4);
    if (load<std::uint16_t>(udp + 2) != load<std::uint16_t>(own + 2) ||
        big(load<std::uint16_t>(udp + 4)) != octets - behind_ip ||
        (udp[udp_octets] & std::byte{vxlan_has_vni}) == std::byte{0} || (vni & big(vni_bits)) != 0)
        return false;
    if (load<std::uint16_t>(udp + 6) == 0) return true;
    const std::size_t source = source_at(version_);
    return fold(sum_octets(frame + source, octets - source) + pseudo_header_sum(protocol_udp, octets - behind_ip)) ==
           good;
}

bool Tunnel::fits_labels(const std::byte* frame) const noexcept {
    constexpr std::uint32_t label_bits = 0xFFFFF000 | bottom_of_stack;
    for (std::size_t i = 0; i < added_octets_ / label_octets; ++i) {
        const auto difference = load<std::uint32_t>(frame + ip + i * label_octets) ^ arriving_labels_[i];
        if ((difference & big(label_bits)) != 0) return false;
    }
    return true;
}

void Tunnel::take(std::byte* frame) const noexcept {
    if (has_ethernet()) return;
    const auto type = big(ethertype_of(version_of(frame + header_octets_)));
    // Both ways the outer octets in the place of the Ethernet header are kept in front, for put_back().
    if (kind_ == TunnelKind::mpls)
        std::rotate(frame, frame + ethernet_octets, frame + header_octets_);
    else
        std::swap_ranges(frame, frame + ethernet_octets, frame + added_octets_);
    store(frame + added_octets_ + macs_octets, type);
}

void Tunnel::put_back(std::byte* frame) const noexcept {
    if (has_ethernet()) return;
    if (kind_ == TunnelKind::mpls)
        std::rotate(frame, frame + added_octets_, frame + header_octets_);
    else
        std::swap_ranges(frame, frame + ethernet_octets, frame + added_octets_);
    std::memcpy(frame + macs_octets, header_.data() + macs_octets, sizeof(std::uint16_t));
}

void check_tunnel(const TunnelEnds& ends, const plan::AddressPlan& plan, plan::Side side, const std::string& where) {
    const auto refuse = [&](const std::string& what, const std::string& next) {
        throw Fault{FaultCode::bad_request, what, where, next};
    };
    const Tunnel tunnel{ends};
    if (tunnel.is_none()) return;
    if (plan.has_state || plan.is_translated()) {
        refuse(fmt::format("the plan {} is for a DUT that translates, and one of its sides is in a tunnel", plan.name),
               "Use a plan without translation, or leave the tunnel out.");
    }
    const auto& s = plan.side(side);
    if (!tunnel.has_ethernet() && !s.gateway) {
        refuse(fmt::format("the hosts of the plan {} are on the link, and in a tunnel of IP packets there is none",
                           plan.name),
               "Use a plan with gateways, or a VXLAN tunnel.");
    }
    if (!tunnel.has_ends()) return;
    for (const auto& end : {ends.local, ends.remote}) {
        if (end != s.dut_address && end != s.gateway && !plan::HostSet{s.hosts}.find(end)) continue;
        refuse(fmt::format("{} is an end of the tunnel, and also an address of the plan", plan::to_string(end)),
               "Give the ends addresses of another network.");
    }
}

}  // namespace evenhand::frame
