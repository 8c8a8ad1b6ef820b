// SPDX-License-Identifier: Apache-2.0
#include "plan/plan.hpp"

#include <fmt/format.h>

#include "fault.hpp"

namespace evenhand::plan {
namespace {

[[noreturn]] void refuse(std::string what, std::string where, std::string next) { throw Fault{FaultCode::bad_plan, std::move(what), std::move(where), std::move(next)}; }

void check_side(const AddressPlan& plan, const PlanSide& side, const std::string& where) {
    for (const auto& [address, name] : {std::pair{&side.gateway, "gateway"}, {&side.dut_address, "dut_address"}, {&side.hosts.base, "hosts.base"}}) {
        if (address->version != plan.version) {
            refuse(fmt::format("{} is not an IPv{} address", to_string(*address), static_cast<int>(plan.version)), fmt::format("{}.{}", where, name),
                   "Give all addresses of a plan in one IP version.");
        }
    }
    const auto& [base, offset, host] = side.hosts;
    if (offset % 2 != 0 || offset + 2 > address_octets(plan.version)) {
        refuse(fmt::format("octet {} is not an even octet of an IPv{} address", offset, static_cast<int>(plan.version)), where + ".hosts.host.offset",
               "Use 2 for IPv4, 12 for IPv6.");
    }
    if (host.count == 0 || host.first + host.count > 65536) {
        refuse(fmt::format("hosts {}..{} do not fit into 16 bits", host.first, std::uint64_t{host.first} + host.count - 1), where + ".hosts.host", "Lower first or count.");
    }
    // Of both sides: a host may be neither side's gateway or DUT.
    for (const auto& [address, name] : {std::pair{&plan.left.gateway, "left.gateway"},
                                        {&plan.left.dut_address, "left.dut_address"},
                                        {&plan.right.gateway, "right.gateway"},
                                        {&plan.right.dut_address, "right.dut_address"}}) {
        const std::uint32_t value = address->octets[offset] * 256U + address->octets[offset + 1];
        if (side.hosts.address(value) == *address && value >= host.first && value < host.first + host.count) {
            refuse(fmt::format("{} is both {} and a host", to_string(*address), name), where + ".hosts", "Move the host range (SEED-24).");
        }
    }
    if (side.gateway == side.dut_address) refuse(to_string(side.gateway) + " is both gateway and DUT", where, "Give each its own address.");
}

void check_ports(const FieldRange& ports, const std::string& where) {
    if (ports.first == 0) refuse("UDP port 0 is reserved", where, "Start at 1 or above (R4814-03).");
    if (ports.count == 0 || ports.first + ports.count > 65536) refuse("the last UDP port is below the first or above 65535", where, "Want first <= last <= 65535.");
}

}  // namespace

void check_plan(const AddressPlan& plan) {
    check_side(plan, plan.left, "plan.left");
    check_side(plan, plan.right, "plan.right");
    check_ports(plan.source_ports, "plan.udp_ports.source");
    check_ports(plan.destination_ports, "plan.udp_ports.destination");
    const auto& l = plan.left.hosts;
    const auto& r = plan.right.hosts;
    const bool same_block = l.offset == r.offset && l.address(0) == r.address(0);
    if (same_block && l.host.first < r.host.first + r.host.count && r.host.first < l.host.first + l.host.count) {
        refuse(fmt::format("the hosts {}.. of the left and {}.. of the right overlap", to_string(l.address(l.host.first)), to_string(r.address(r.host.first))), "plan",
               "Give the sides disjoint hosts (SEED-24).");
    }
}

}  // namespace evenhand::plan
