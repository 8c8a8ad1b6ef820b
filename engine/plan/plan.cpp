// SPDX-License-Identifier: Apache-2.0
#include "plan/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "fault.hpp"
#include "plan/address_list.hpp"

namespace evenhand::plan {
namespace {

void check_version(IpVersion version, const IpAddress& address, const std::string& where) {
    if (address.version != version) {
        refuse_plan(
            fmt::format("{} is not an IPv{} address", to_string(address), static_cast<int>(version)), where,
            "Give all addresses of a side in one IP version, and those of both sides unless the DUT translates.");
    }
}

void check_offset(IpVersion version, std::uint32_t offset, const std::string& where, std::string next) {
    if (offset % 2 != 0 || offset + 2 > address_octets(version)) {
        refuse_plan(fmt::format("octet {} is not an even octet of an IPv{} address", offset, static_cast<int>(version)),
                    where, std::move(next));
    }
}

void check_numbers(const HostRange& hosts, const std::string& where) {
    const IpVersion version = hosts.base.version;
    if (version == IpVersion::v4) check_offset(version, hosts.offset, where + ".host.offset", "Use 2.");
    if (hosts.gap > (version == IpVersion::v4 ? 0U : 1U) || hosts.low_offset() >= address_octets(version)) {
        refuse_plan(fmt::format("octets {} and {} of an IPv{} address cannot be those of a host number", hosts.offset,
                                hosts.low_offset(), static_cast<int>(version)),
                    where + ".host.offset", "Use 2 for IPv4, 12 for IPv6, and a gap in IPv6 alone.");
    }
    const auto& host = hosts.host;
    if (host.count == 0 || host.first + host.count > 65536) {
        refuse_plan(
            fmt::format("hosts {}..{} do not fit into 16 bits", host.first, std::uint64_t{host.first} + host.count - 1),
            where + ".host", "Lower first or count.");
    }
    if (!hosts.network) return;
    const auto& network = *hosts.network;
    if (!hosts.is_word()) {
        refuse_plan(fmt::format("networks beside a host number at octets {} and {}", hosts.offset, hosts.low_offset()),
                    where + ".network", "Leave them out, or give the host number an even octet and the next one.");
    }
    check_offset(version, network.offset, where + ".network.offset", "Use 2 for IPv4, 6 for IPv6.");
    if (hosts.shares_octets() != (version == IpVersion::v4)) {
        refuse_plan(fmt::format("the networks of an IPv{} plan are numbered at octet {}, its hosts at {}",
                                static_cast<int>(version), network.offset, hosts.offset),
                    where + ".network.offset", "Use 2 for both in IPv4 (one 16-bit number), 6 and 12 in IPv6.");
    }
    if (network.count == 0 || network.count > most_networks)
        refuse_plan(fmt::format("{} networks", network.count), where + ".network.count", "Use 1 to 256 (SEED-30).");
    if (hosts.shares_octets() && host.first + host.count > 256) {
        refuse_plan(fmt::format("hosts {}..{}: networks and hosts above 255 need the same octet", host.first,
                                host.first + host.count - 1),
                    where + ".host", "Use either networks or 16-bit hosts in IPv4 (SEED-34).");
    }
    const std::uint32_t most = hosts.shares_octets() ? 0xFF : 0xFFFF;
    if (hosts.first_network() + network.count - 1 > most) {
        refuse_plan(fmt::format("networks {}..{} do not fit into their octets", hosts.first_network(),
                                hosts.first_network() + network.count - 1),
                    where + ".network", "Lower the base or the count.");
    }
}

/// The addresses by which the other side's hosts are known here must correspond to them host by host.
void check_peers(const PlanSide& side, const PlanSide& other, const std::string& where, const std::string& where_other,
                 bool is_pool) {
    if (!side.peers) {
        check_version(side.version(), other.hosts.base, where_other + ".hosts.base");
        return;
    }
    const HostRange& peers = *side.peers;
    check_version(side.version(), peers.base, where + ".peers.base");
    check_numbers(peers, where + ".peers");
    if (is_pool) {
        if (peers.network)
            refuse_plan("the pool has networks", where + ".peers.network", "Give it one range of addresses.");
        return;
    }
    if (peers.host != other.hosts.host || peers.network || other.hosts.network) {
        refuse_plan("the translated addresses are not host for host those of the other side", where + ".peers.host",
                    "Give them the same first, count and mode, and no networks.");
    }
}

/// For the plan of one side: its hosts must not be the gateway or the DUT of either side.
void check_owners(const AddressPlan& plan, const PlanSide& side, const std::string& where) {
    const auto check = [&](const IpAddress& address, const char* owner) {
        if (side.hosts.contains(address))
            refuse_plan(fmt::format("{} is both {} and a host", to_string(address), owner), where + ".hosts",
                        "Move the host range (SEED-24).");
    };
    if (plan.left.gateway) check(*plan.left.gateway, "left.gateway");
    check(plan.left.dut_address, "left.dut_address");
    if (plan.right.gateway) check(*plan.right.gateway, "right.gateway");
    check(plan.right.dut_address, "right.dut_address");
    if (side.gateway == side.dut_address)
        refuse_plan(to_string(side.dut_address) + " is both gateway and DUT", where, "Give each its own address.");
}

/// Checks a plan whose DUT keeps state. Hosts on the link would have to be learnt, but nobody can reach them before
/// they have opened a connection.
void check_state(const AddressPlan& plan) {
    if (!plan.has_state) return;
    if (!plan.right.peers) {
        refuse_plan("the right side has no addresses of a pool", "plan.right.peers",
                    "Give it those that the DUT translates the hosts of the left to.");
    }
    if (plan.left.hosts.network || plan.fixed_source)
        refuse_plan("networks, or a fixed source, in a plan with state", "plan.stateful", "Leave one of them out.");
    if (!plan.left.gateway || !plan.right.gateway)
        refuse_plan("hosts on the link in a plan with state", "plan.stateful", "Give both sides a gateway.");
}

/// Checks a plan with lists of hosts, whose addresses have no numbers that could correspond to others.
void check_lists(const AddressPlan& plan) {
    if (!plan.has_lists()) return;
    const std::string where = plan.left.hosts.list ? "plan.left.hosts.list" : "plan.right.hosts.list";
    if (plan.is_translated() || plan.has_state)
        refuse_plan("a list of hosts, and a DUT that translates them", where, "Give both sides ranges of hosts.");
    if (plan.common_network || plan.fixed_source_network) {
        refuse_plan("a list of hosts has no networks that could be chosen", where,
                    "Leave out common_network and fixed_source_network, or give both sides ranges of hosts.");
    }
    constexpr std::uint32_t most_on_link = 1U << 24U;
    for (const auto s : both_sides) {
        const PlanSide& side = plan.side(s);
        if (side.hosts.gap != 0) {
            refuse_plan("a list of hosts, and a gap in the other side's host number",
                        fmt::format("plan.{}.hosts.host.gap", name_of(s)), "Leave out the gap.");
        }
        if (side.hosts.list && !side.gateway && side.hosts.list->last_number() >= most_on_link) {
            refuse_plan(fmt::format("a list of more than {} hosts on the link", most_on_link),
                        fmt::format("plan.{}.hosts.list", name_of(s)), "Give the side a gateway, or fewer hosts.");
        }
    }
}

void check_ports(const FieldRange& ports, const std::string& where) {
    if (ports.first == 0) refuse_plan("UDP port 0 is reserved", where, "Start at 1 or above (R4814-03).");
    if (ports.count == 0 || ports.first + ports.count > 65536)
        refuse_plan("the last UDP port is below the first or above 65535", where, "Want first <= last <= 65535.");
}

struct Interval {
    std::uint32_t first;
    std::uint32_t last;
};

/// The values that the 16-bit number at this octet has in the addresses of the range.
std::vector<Interval> values_at(const HostRange& range, std::uint32_t octet) {
    const auto& host = range.host;
    if (octet == range.offset && !range.shares_octets()) return {{host.first, host.first + host.count - 1}};
    std::vector<Interval> found;
    if (octet == range.offset) {
        for (std::uint32_t n = 0; n < range.networks(); ++n)
            found.push_back({range.value({n, 0}), range.value({n, host.count - 1})});
        return found;
    }
    if (range.has_network_octets() && octet == range.network->offset)
        return {{range.first_network(), range.first_network() + range.networks() - 1}};
    const std::uint32_t fixed = range.base.octets[octet] * 256U + range.base.octets[octet + 1];
    return {{fixed, fixed}};
}

/// Whether any address is in both ranges. The numbers of an address vary independently, so it is if this is true of
/// each of its numbers.
bool overlap(const HostRange& a, const HostRange& b) {
    if (a.list) return b.list ? a.list->meets(*b.list) : a.list->meets(b);
    if (b.list) return b.list->meets(a);
    if (!b.is_word() && a.is_word()) return overlap(b, a);
    if (!a.is_word()) {  // its host number is not a word, but it has no networks, so that it has few addresses
        for (std::uint32_t host = 0; host < a.host.count; ++host) {
            if (b.contains(a.address(a.value({.host = host})))) return true;
        }
        return false;
    }
    for (std::uint32_t octet = 0; octet < address_octets(a.base.version); octet += 2) {
        const auto of_b = values_at(b, octet);
        const bool meet = std::ranges::any_of(values_at(a, octet), [&](const Interval& x) {
            return std::ranges::any_of(of_b, [&](const Interval& y) { return x.first <= y.last && y.first <= x.last; });
        });
        if (!meet) return false;
    }
    return true;
}

IpAddress first_of(const HostRange& hosts) { return hosts.list ? hosts.base : hosts.address(hosts.value({})); }

}  // namespace

void check_plan(const AddressPlan& plan) {
    for (const auto& [side, where] : {std::pair{&plan.left, std::string{"plan.left"}}, {&plan.right, "plan.right"}}) {
        if (side->gateway) check_version(side->version(), *side->gateway, where + ".gateway");
        check_version(side->version(), side->dut_address, where + ".dut_address");
        if (!side->hosts.list) check_numbers(side->hosts, where + ".hosts");
    }
    check_lists(plan);
    check_peers(plan.left, plan.right, "plan.left", "plan.right", false);
    check_peers(plan.right, plan.left, "plan.right", "plan.left", plan.has_state);
    check_state(plan);
    if (!plan.has_lists() && plan.left.hosts.network.has_value() != plan.right.hosts.network.has_value()) {
        refuse_plan("one side has networks and the other has not", "plan",
                    "Give both sides networks; the count may be 1 (SEED-35).");
    }
    if ((plan.common_network || plan.fixed_source_network) && !plan.left.hosts.network) {
        refuse_plan("the sides have no networks that could be chosen", "plan",
                    "Leave out common_network and fixed_source_network, or give both sides networks.");
    }
    if (plan.common_network &&
        (plan.fixed_source || plan.fixed_source_network || plan.left.hosts.networks() != plan.right.hosts.networks())) {
        refuse_plan("one network number for both addresses needs as many networks on both sides, and no fixed source",
                    "plan.common_network", "Give both sides the same count.");
    }
    check_owners(plan, plan.left, "plan.left");
    check_owners(plan, plan.right, "plan.right");
    check_ports(plan.source_ports, "plan.udp_ports.source");
    check_ports(plan.destination_ports, "plan.udp_ports.destination");
    // On each of the two links, as the frames have them there.
    for (const auto& [l, r] : {plan.sent(Direction::forward), plan.arriving(Direction::forward)}) {
        if (overlap(l, r)) {
            refuse_plan(fmt::format("the hosts {}.. of the left and {}.. of the right overlap", to_string(first_of(l)),
                                    to_string(first_of(r))),
                        "plan", "Give the sides disjoint hosts (SEED-24).");
        }
    }
}

}  // namespace evenhand::plan
