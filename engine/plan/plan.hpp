// SPDX-License-Identifier: Apache-2.0
// Station 1, plan: which addresses and UDP ports the frames of a test may have.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "plan/address.hpp"
#include "plan/ranges.hpp"

namespace evenhand::plan {

enum class Side : std::uint8_t { left = 0, right = 1 };
enum class Direction : std::uint8_t { forward = 0, reverse = 1 };  // left to right; right to left

[[nodiscard]] constexpr Side sending_side(Direction d) { return d == Direction::forward ? Side::left : Side::right; }
[[nodiscard]] constexpr Side receiving_side(Direction d) { return d == Direction::forward ? Side::right : Side::left; }
[[nodiscard]] constexpr Direction direction_sent_by(Side s) {
    return s == Side::left ? Direction::forward : Direction::reverse;
}
[[nodiscard]] constexpr Side other_side(Side s) { return s == Side::left ? Side::right : Side::left; }

struct PlanSide {
    std::optional<IpAddress> gateway =
        std::nullopt;       // the tester's own address on this side; none: the hosts are on the link (direct forms)
    IpAddress dut_address;  // of the DUT's interface on this side; the first one, if it has one in each network
    HostRange hosts;
    /// The addresses that the other side's hosts have on this one, where the DUT translates; none: their own. Host for
    /// host the same numbers, unless they are the pool of a DUT that keeps state.
    std::optional<HostRange> peers = std::nullopt;
    std::uint32_t added_octets = 0;  // how much larger frames are on this side than the frame size of a request

    [[nodiscard]] IpVersion version() const { return hosts.base.version; }
};

/// The addresses of a direction's frames on one link.
struct HostPair {
    HostRange sources;
    HostRange destinations;
};

/// The same of UDP ports.
struct PortPair {
    FieldRange sources;
    FieldRange destinations;
};
constexpr FieldRange any_port{.first = 1, .count = 65535};

struct AddressPlan {
    std::string name;
    PlanSide left;
    PlanSide right;
    FieldRange source_ports;       // of both directions (R4814-04); with state of what opens connections
    FieldRange destination_ports;  // the same
    bool fixed_source =
        false;  // every frame comes from the first host of its side; for comparison with RFC 2544 section 12 (SEED-35)
    bool fixed_source_network = false;  // only its network is: hosts vary (SEED-83)
    bool common_network =
        false;  // one number of the network for both addresses of a frame, that of the source (SEED-82)
    /// The DUT translates statefully (NAT): the hosts of the left open connections, and the right knows them by
    /// addresses of a pool, which are its `peers`, and by any UDP port. Which of them, the DUT chooses.
    bool has_state = false;

    [[nodiscard]] const PlanSide& side(Side s) const { return s == Side::left ? left : right; }

    /// Of both sides, where the DUT does not translate.
    [[nodiscard]] IpVersion version() const { return left.version(); }
    /// Frames arrive with other addresses than they are sent with, and perhaps in the other IP version.
    [[nodiscard]] bool is_translated() const { return left.peers || right.peers; }

    /// As the tester sends them.
    [[nodiscard]] HostPair sent(Direction d) const {
        const PlanSide& from = side(sending_side(d));
        return {.sources = from.hosts, .destinations = from.peers.value_or(side(receiving_side(d)).hosts)};
    }
    /// As they must arrive.
    [[nodiscard]] HostPair arriving(Direction d) const {
        const PlanSide& to = side(receiving_side(d));
        return {.sources = to.peers.value_or(side(sending_side(d)).hosts), .destinations = to.hosts};
    }

    /// UDP ports of a direction as the tester sends them. With state, answers go back to where frames came from: to any
    /// port of the pool.
    [[nodiscard]] PortPair sent_ports(Direction d) const {
        if (!has_state || d == Direction::forward) return {source_ports, destination_ports};
        return {.sources = destination_ports, .destinations = any_port};
    }
    /// As they must arrive.
    [[nodiscard]] PortPair arriving_ports(Direction d) const {
        if (!has_state) return {source_ports, destination_ports};
        return d == Direction::forward ? PortPair{.sources = any_port, .destinations = destination_ports}
                                       : PortPair{.sources = destination_ports, .destinations = source_ports};
    }

    /// Hosts that the frames of a direction come from, and how: `fixed_source` and `fixed_source_network` have their
    /// way.
    [[nodiscard]] HostRange sources(Direction d) const {
        HostRange hosts = side(sending_side(d)).hosts;
        if (fixed_source) hosts.host.mode = Mode::fixed;
        if ((fixed_source || fixed_source_network) && hosts.network) hosts.network->mode = Mode::fixed;
        return hosts;
    }
};

/// Throws Fault{bad_plan} that names the clash: address families, ranges that leave their octets, IPv4 networks with
/// 16-bit hosts (SEED-34), hosts that are the DUT or a gateway, overlapping hosts (SEED-24), UDP port 0.
void check_plan(const AddressPlan& plan);

}  // namespace evenhand::plan
