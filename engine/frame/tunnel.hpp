// SPDX-License-Identifier: Apache-2.0
// Station 2, frame: the headers around the frames of a side that are in a tunnel, of which the DUT is the other end.
//
// A frame is first written without them, as far behind the beginning of its buffer as it becomes longer; then they are
// put in front. Likewise a received frame that is in the tunnel is looked at as if it had come alone. What is in a
// tunnel of IP packets is seen with an Ethernet header in front, which takes the place of the last outer octets.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "frame/layout.hpp"
#include "plan/address.hpp"
#include "plan/plan.hpp"

namespace evenhand::frame {

constexpr std::uint16_t ethertype_mpls = 0x8847;
constexpr std::uint8_t protocol_gre = 47;
constexpr std::uint16_t vxlan_port = 4789;  // RFC 7348, 8
constexpr std::uint8_t outer_ttl = 64;      // also the hop limit
constexpr std::uint32_t largest_vni = (1U << 24U) - 1;
constexpr std::uint32_t first_label = 16;  // RFC 3032, 2.1 reserves the others
constexpr std::uint32_t largest_label = (1U << 20U) - 1;
constexpr std::size_t most_labels = 8;

enum class TunnelKind : std::uint8_t {
    none,
    vxlan,  // Ethernet frames in UDP, RFC 7348
    mpls,   // IP packets behind a label stack, RFC 3032
    gre,    // IP packets, RFC 2784: without checksum, key and sequence number
    ip,     // IP packets right behind an IP header, RFC 2003, RFC 4213 and RFC 2473
};

/// A tunnel as a client describes it.
struct TunnelEnds {
    TunnelKind kind = TunnelKind::none;
    plan::IpAddress local{};   // of the outer header: the tester's end; not for MPLS
    plan::IpAddress remote{};  // the DUT's end; of the same IP version
    std::uint32_t vni = 0;     // VXLAN only
    std::uint16_t udp_port = vxlan_port;
    std::vector<std::uint32_t> labels;           // MPLS only: what the tester sends, outermost first
    std::vector<std::uint32_t> arriving_labels;  // what the DUT sends, as many
};

/// The tunnel of one side, or none. In what it sends, all octets of the outer headers are determined by the tunnel but
/// the lengths, the checksums, and a number that is computed from the flow inside, so that a DUT which spreads frames
/// by their outer headers spreads them by their flows: VXLAN's UDP source port (RFC 7348, 5) and IPv6's flow label (RFC
/// 6438). In what it receives, the DUT chooses that number, the TTL, DSCP and ECN, IPv4's identification and its flag
/// "don't fragment"; all else must be what it is to be.
class Tunnel {
   public:
    Tunnel() = default;
    explicit Tunnel(const TunnelEnds& ends);

    friend bool operator==(const Tunnel&, const Tunnel&) = default;

    [[nodiscard]] bool is_none() const noexcept { return kind_ == TunnelKind::none; }
    /// Whether its ends have addresses of their own, so that no neighbour of the link is in the tunnel's network.
    [[nodiscard]] bool has_ends() const noexcept { return kind_ != TunnelKind::none && kind_ != TunnelKind::mpls; }
    /// Whether there are neighbours inside it.
    [[nodiscard]] bool has_ethernet() const noexcept { return kind_ == TunnelKind::vxlan; }
    /// How much longer it makes a frame.
    [[nodiscard]] std::size_t octets() const noexcept { return added_octets_; }
    /// Whether the frames that fit one of them fit the other one.
    [[nodiscard]] bool takes_those_of(const Tunnel& other) const noexcept {
        if (kind_ != other.kind_ || added_octets_ != other.added_octets_) return false;
        return kind_ == TunnelKind::mpls ? arriving_labels_ == other.arriving_labels_ : header_ == other.header_;
    }

    /// The same with these MACs of the link in the outer header. Without effect for MPLS, where the MACs of a frame are
    /// those of the link.
    [[nodiscard]] Tunnel between(const plan::MacAddress& own_mac, const plan::MacAddress& dut_mac) const noexcept;

    /// Puts the headers in front. `frame` is where the whole frame begins, which has `octets`; the frame inside begins
    /// octets() behind it.
    void put(std::byte* frame, std::size_t octets) const noexcept;
    /// Whether a received frame is in this tunnel.
    [[nodiscard]] bool fits(const std::byte* frame, std::size_t octets) const noexcept;
    /// For a frame that fits: from now on the frame inside begins octets() behind `frame`.
    void take(std::byte* frame) const noexcept;
    /// Makes a frame again what it was before take().
    void put_back(std::byte* frame) const noexcept;

   private:
    static constexpr std::size_t most_header_octets = ethernet_octets + 40 + udp_octets + 8;

    [[nodiscard]] std::size_t ip_octets() const noexcept { return version_ == IpVersion::v4 ? 20 : 40; }
    [[nodiscard]] bool fits_outer_ip(const std::byte* frame, std::size_t octets) const noexcept;
    [[nodiscard]] bool fits_vxlan(const std::byte* frame, std::size_t octets) const noexcept;
    [[nodiscard]] bool fits_labels(const std::byte* frame) const noexcept;

    TunnelKind kind_ = TunnelKind::none;
    IpVersion version_ = IpVersion::v4;  // of the outer header
    std::size_t added_octets_ = 0;
    std::size_t header_octets_ = 0;  // with the outer Ethernet header
    std::array<std::byte, most_header_octets> header_{};
    std::array<std::uint32_t, most_labels> arriving_labels_{};  // label and bottom of stack, in memory order
};

/// Throws Fault{bad_request} where this side's frames of the plan cannot be in this tunnel. `where`: the key of the
/// request that has the tunnel.
void check_tunnel(const TunnelEnds& ends, const plan::AddressPlan& plan, plan::Side side, const std::string& where);

}  // namespace evenhand::frame
