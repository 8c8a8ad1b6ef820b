// SPDX-License-Identifier: Apache-2.0
// Station 1, plan: which addresses and UDP ports the frames of a test may have.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "plan/address.hpp"
#include "plan/ranges.hpp"

namespace evenhand::plan {

enum class Side : std::uint8_t { left = 0, right = 1 };
enum class Direction : std::uint8_t { forward = 0, reverse = 1 };  // left to right; right to left

inline constexpr std::array both_sides{Side::left, Side::right};
inline constexpr std::array both_directions{Direction::forward, Direction::reverse};

/// The names that requests and replies use.
[[nodiscard]] constexpr const char* name_of(Side side) { return side == Side::left ? "left" : "right"; }
[[nodiscard]] constexpr const char* name_of(Direction direction) {
    return direction == Direction::forward ? "forward" : "reverse";
}

[[nodiscard]] constexpr Side sending_side(Direction d) { return d == Direction::forward ? Side::left : Side::right; }
[[nodiscard]] constexpr Side receiving_side(Direction d) { return d == Direction::forward ? Side::right : Side::left; }
[[nodiscard]] constexpr Direction direction_sent_by(Side s) {
    return s == Side::left ? Direction::forward : Direction::reverse;
}
[[nodiscard]] constexpr Side other_side(Side s) { return s == Side::left ? Side::right : Side::left; }

struct PlanSide {
    std::optional<IpAddress> gateway =
        std::nullopt;       // the tester's own address on this side; nothing: the hosts are on the link (direct plans)
    IpAddress dut_address;  // the DUT's interface on this side; its first address, if it has one in each network
    HostRange hosts;
    /// Where the DUT translates: the addresses by which the other side's hosts are known on this side; nothing: their
    /// own. They have the same host numbers, unless they are the pool of a DUT that keeps state.
    std::optional<HostRange> peers = std::nullopt;
    std::uint32_t added_octets = 0;  // how much larger frames are on this side than the frame size of a request

    [[nodiscard]] IpVersion version() const { return hosts.base.version; }
};

/// The addresses of a direction's frames on one link.
struct HostPair {
    HostRange sources;
    HostRange destinations;

    /// Either is a list, so that whole addresses vary.
    [[nodiscard]] bool has_list() const { return sources.list || destinations.list; }
};

/// The UDP ports of a direction's frames on one link.
struct PortPair {
    FieldRange sources;
    FieldRange destinations;
};
constexpr FieldRange any_port{.first = 1, .count = 65535};

struct AddressPlan {
    std::string name;
    PlanSide left;
    PlanSide right;
    FieldRange source_ports;  // in both directions (R4814-04); with state, those of the frames that open connections
    FieldRange destination_ports;  // the same
    bool fixed_source =
        false;  // every frame comes from the first host of its side; for comparison with RFC 2544 section 12 (SEED-35)
    bool fixed_source_network = false;  // every frame comes from the first network of its side; hosts vary (SEED-83)
    bool common_network = false;        // both addresses of a frame have the network number of its source (SEED-82)
    /// The DUT translates statefully (NAT): the hosts of the left open connections, and the right knows them by
    /// addresses of a pool, which are its `peers`, and by any UDP port. The DUT chooses which.
    bool has_state = false;

    [[nodiscard]] const PlanSide& side(Side s) const { return s == Side::left ? left : right; }

    /// The IP version of both sides, where the DUT does not translate.
    [[nodiscard]] IpVersion version() const { return left.version(); }
    /// Frames arrive with other addresses than they are sent with, and perhaps in the other IP version.
    [[nodiscard]] bool is_translated() const { return left.peers || right.peers; }

    /// A side's hosts are a list, so that whole addresses vary on both sides.
    [[nodiscard]] bool has_lists() const { return left.hosts.list || right.hosts.list; }

    /// The addresses of frames as the tester sends them.
    [[nodiscard]] HostPair sent(Direction d) const {
        const PlanSide& from = side(sending_side(d));
        return {.sources = from.hosts, .destinations = from.peers.value_or(side(receiving_side(d)).hosts)};
    }
    /// The addresses of frames as they must arrive.
    [[nodiscard]] HostPair arriving(Direction d) const {
        const PlanSide& to = side(receiving_side(d));
        return {.sources = to.peers.value_or(side(sending_side(d)).hosts), .destinations = to.hosts};
    }

    /// The UDP ports of frames as the tester sends them. With state, answers are sent to any port of the pool, where
    /// the frames came from.
    [[nodiscard]] PortPair sent_ports(Direction d) const {
        if (!has_state || d == Direction::forward) return {source_ports, destination_ports};
        return {.sources = destination_ports, .destinations = any_port};
    }
    /// The UDP ports of frames as they must arrive.
    [[nodiscard]] PortPair arriving_ports(Direction d) const {
        if (!has_state) return {source_ports, destination_ports};
        return d == Direction::forward ? PortPair{.sources = any_port, .destinations = destination_ports}
                                       : PortPair{.sources = destination_ports, .destinations = source_ports};
    }

    /// The hosts that the frames of a direction come from, and how they are chosen, with `fixed_source` and
    /// `fixed_source_network` applied.
    [[nodiscard]] HostRange sources(Direction d) const {
        HostRange hosts = side(sending_side(d)).hosts;
        if (fixed_source) hosts.host.mode = Mode::fixed;
        if ((fixed_source || fixed_source_network) && hosts.network) hosts.network->mode = Mode::fixed;
        return hosts;
    }
};

/// Throws Fault{bad_plan} that names the contradiction: address families, ranges that do not fit into their octets,
/// IPv4 networks with 16-bit hosts (SEED-34), hosts that are the DUT or a gateway, overlapping hosts (SEED-24), UDP
/// port 0, lists of hosts together with what needs numbers of hosts.
void check_plan(const AddressPlan& plan);

}  // namespace evenhand::plan
