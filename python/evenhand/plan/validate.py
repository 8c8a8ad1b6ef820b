# SPDX-License-Identifier: Apache-2.0
"""Station 1, address plan: refuse plans that contradict themselves (SEED-24)."""

from __future__ import annotations

import ipaddress
from itertools import pairwise

from evenhand.base.errors import PlanError
from evenhand.plan.host_list import HostList, Hosts
from evenhand.plan.model import AddressPlan
from evenhand.plan.ranges import Network, UdpRange
from evenhand.plan.sides import BENCHMARKING_BLOCK, PRIVATE_BLOCK, PlanSide
from evenhand.plan.translation import MAX_FOUR_TUPLES

_MISPRINTS: tuple[tuple[Network, str], ...] = (
    (ipaddress.ip_network("192.18.0.0/15"), "RFC 2544 C.2.2 has 192.18.0.0 for 198.18.0.0 (erratum 423)"),
    (ipaddress.ip_network("2001:200::/48"), "RFC 5180 has 2001:0200::/48 for 2001:2::/48 (erratum 1752)"),
    (ipaddress.ip_network("2001:2:8000::/49"), "drafts before -07 have 2001:2:8000:: for 2001:2:0:8000::"),
)
"""Blocks that readers of the documents take for the right ones (R2544-37, R5180-01)."""


def check_plan(plan: AddressPlan) -> None:
    """Raise PlanError that names the clash and the addresses in it."""
    for side in plan.sides:
        _check_version(side)
        if not plan.is_own:
            _check_block(plan, side)
        _check_interfaces(side)
        _check_host_networks(plan, side)
    if (plan.left.host_range.network_range is None) != (plan.right.host_range.network_range is None):
        raise PlanError(
            "one side has networks and the other does not",
            code="plan.networks-on-one-side",
            where="plan",
            next_step="Give both sides networks (1 if necessary).",
        )
    _check_network_choices(plan)
    _check_connections(plan)
    for side in plan.sides:
        _check_owners(plan, side)
        _check_peers(plan, side)
    _check_disjoint(plan)
    _check_prefixes_disjoint(plan)
    if plan.destination_ports.first == 0 or plan.source_ports.first == 0:
        raise PlanError(
            "UDP port 0 is reserved",
            code="plan.port-zero",
            where="plan.udp_ports",
            next_step="Begin the range at 1 or above (R4814-03).",
        )


def _check_connections(plan: AddressPlan) -> None:
    """With state, which host and port a frame has follows from its connection."""
    if plan.nat is None:
        return
    ranges = (plan.left.host_range, plan.right.host_range, plan.source_ports, plan.destination_ports)
    if plan.fixed_source or any(each.mode != "pseudorandom" and _values(each) > 1 for each in ranges):
        raise PlanError(
            f"{plan.title} has connections, each with hosts and ports of its own",
            code="plan.no-modes-with-connections",
            where="fixed source" if plan.fixed_source else "mode",
            next_step="Omit it. The order of the connections can be chosen instead (R9693-05).",
        )
    if plan.four_tuples > MAX_FOUR_TUPLES:
        raise PlanError(
            f"{plan.title} has {plan.four_tuples} four tuples: more than 2^62",
            code="plan.too-many-tuples",
            where="plan.udp_ports",
            next_step="Use fewer ports or hosts (R9693-04).",
        )


def _values(each: Hosts | UdpRange) -> int:
    return each.values if isinstance(each, UdpRange) else each.count


def _check_network_choices(plan: AddressPlan) -> None:
    chosen = [name for name in ("fixed_source_network", "common_network") if getattr(plan, name)]
    if chosen and plan.left.host_range.network_range is None:
        raise PlanError(
            f"{plan.title} has only one network, which has no number",
            code="plan.one-network-only",
            where=chosen[0].replace("_", " "),
            next_step="Use a plan with networks (nets-...).",
        )
    if not plan.common_network:
        return
    counts = [side.host_range.network_count for side in plan.sides]
    if counts[0] != counts[1]:
        raise PlanError(
            f"{counts[0]} networks on the left and {counts[1]} on the right cannot share one number",
            code="plan.network-counts-differ",
            where="common network",
            next_step="Give both sides the same --networks.",
        )
    if plan.fixed_source or plan.fixed_source_network:
        raise PlanError(
            "a fixed source network and one number for both sides would also fix the destination network",
            code="plan.network-fixed-twice",
            where="common network",
            next_step="Omit one of them.",
        )


def _check_version(side: PlanSide) -> None:
    gateways = () if side.gateway is None else (side.gateway,)
    peers = () if side.peers is None else (side.peers.base,)
    for thing in (*side.dut, *gateways, *peers, *side.routes):
        if thing.version != side.ip_version:
            raise PlanError(
                f"{thing} is an IPv{thing.version} address in an IPv{side.ip_version} plan",
                code="plan.address-of-other-version",
                where=_where(side),
            )


def _check_peers(plan: AddressPlan, side: PlanSide) -> None:
    """Each side can address the hosts of the other."""
    other = plan.side("right" if side.name == "left" else "left")
    if side.peers is None:
        if other.ip_version != side.ip_version:
            raise PlanError(
                f"IPv{other.ip_version} hosts on the {other.name} have no IPv{side.ip_version} address on the"
                f" {side.name}",
                code="plan.peers-missing",
                where=_where(side),
                next_step="State the addresses to which the DUT translates theirs (peers).",
            )
        return
    peers = side.peers
    for translated in (peers.first_address, peers.last_address):
        if translated in side.host_range:
            raise PlanError(
                f"{translated} is both one of the {_hosts(side)} and an address that the DUT translates to",
                code="plan.peers-overlap-hosts",
                where=_where(side),
                next_step="Move one of the ranges.",
            )


def _check_block(plan: AddressPlan, side: PlanSide) -> None:
    block = BENCHMARKING_BLOCK[side.ip_version, side.name]
    if plan.nat is not None and (side.ip_version, side.name) == (4, "left"):
        block = PRIVATE_BLOCK
    translation = plan.translation
    if translation is not None and not translation.needs_mapping and side.ip_version == 6:
        block = translation.prefix  # the block's hosts of IPv4, behind whatever prefix the user has
    host_range = side.host_range
    # The block is a prefix and both numbers run upwards, so the outermost addresses stand for all.
    for address in (
        host_range.first_address,
        host_range.address(host_range.count - 1),
        host_range.address(0, host_range.network_count - 1),
        host_range.last_address,
    ):
        if address not in block:
            misprint = next((f": {text}" for network, text in _MISPRINTS if address in network), "")
            raise PlanError(
                f"{_hosts(side)} are outside {block}, the benchmarking block of this side",
                code="plan.outside-benchmarking-block",
                where=_where(side),
                next_step=f"Use addresses in {block}{misprint}.",
            )


def _check_interfaces(side: PlanSide) -> None:
    if not side.dut:
        raise PlanError(
            "the DUT has no interface address",
            code="plan.dut-interface-missing",
            where=_where(side),
            next_step="Give each side one address at least.",
        )
    for interface in side.dut:
        length = interface.network.prefixlen
        if interface.version == 6 and length > 64 and length != 126:
            raise PlanError(
                f"DUT {interface}: the prefix length of an IPv6 interface must be 126, or at most 64",
                code="plan.wrong-prefix-length",
                where=_where(side),
                next_step="Use /64 (R5180-03).",
            )
    if side.gateway is None:
        if side.routes:
            raise PlanError(
                f"a route to {side.routes[0]}, but no gateway to route to",
                code="plan.route-without-gateway",
                where=_where(side),
            )
        return
    if len(side.dut) != 1:
        raise PlanError(
            f"{len(side.dut)} DUT interfaces on the link to one gateway",
            code="plan.several-dut-interfaces",
            where=_where(side),
            next_step="Give one.",
        )
    if side.dut[0].network != side.gateway.network:
        raise PlanError(
            f"DUT {side.dut[0]} and gateway {side.gateway} are not on the same link",
            code="plan.gateway-not-on-link",
            where=_where(side),
        )
    if side.dut[0].ip == side.gateway.ip:
        raise PlanError(
            f"DUT and gateway have the same address {side.gateway.ip}",
            code="plan.gateway-is-the-dut",
            where=_where(side),
        )


def _check_host_networks(plan: AddressPlan, side: PlanSide) -> None:
    """The hosts of every network lie in a network of the DUT's interface or routes and are not its reserved
    addresses."""
    reached, host_range = side.host_networks, side.host_range
    if side.prefixes is not None:
        return  # hosts and routes are made of them
    if not reached:
        raise PlanError(
            f"{_hosts(side)} are neither on the link nor reached by a route",
            code="plan.hosts-unreachable",
            where=_where(side),
        )
    for number in range(host_range.network_count):
        if isinstance(host_range, HostList):
            first, last = host_range.first_address, host_range.last_address
        else:
            first, last = host_range.address(0, number), host_range.address(host_range.count - 1, number)
        # Usually network n is the n-th; the rest is looked at only if it is not.
        inside = next(
            (n for n in (reached[number % len(reached)], *reached) if first in n and last in n), None
        )
        if inside is None:
            what = "link" if side.is_direct else "route"
            shown = (
                f"the DUT's {what} {reached[0]}"
                if len(reached) == 1
                else f"each of the DUT's {len(reached)} {what}s"
            )
            raise PlanError(
                f"hosts {first} .. {last} are outside {shown}",
                code="plan.hosts-outside-network",
                where=_where(side),
            )
        if plan.is_own and not side.is_direct:
            continue  # what a plan file says are hosts are hosts: the network is not one of a link
        if inside.num_addresses > 2 and inside.network_address in host_range:
            raise PlanError(
                f"host {inside.network_address} is the network address of {inside}",
                code="plan.host-is-network-address",
                where=_where(side),
            )
        if inside.version == 4 and inside.num_addresses > 2 and inside.broadcast_address in host_range:
            raise PlanError(
                f"host {inside.broadcast_address} is the broadcast address of {inside}",
                code="plan.host-is-broadcast-address",
                where=_where(side),
            )


def _check_owners(plan: AddressPlan, side: PlanSide) -> None:
    """No address has two owners, whatever the side."""
    for other in plan.sides:
        owners = [("DUT", interface.ip) for interface in other.dut]
        if other.gateway is not None:
            owners.append(("gateway", other.gateway.ip))
        for owner, address in owners:
            if address in side.host_range:
                raise PlanError(
                    f"{address} is both the {owner} of the {other.name} side and one of the {_hosts(side)}",
                    code="plan.host-address-taken",
                    where=_where(side),
                    next_step="Move the host range.",
                )


def _check_disjoint(plan: AddressPlan) -> None:
    """Links and host networks do not overlap, of one side or of both."""
    named: list[tuple[Network, str]] = []
    for side in plan.sides:
        link = "the hosts' link" if side.is_direct else "the link"
        named += [
            (interface.network, f"{link} {interface.network} of the {side.name} side")
            for interface in side.dut
        ]
        named += [
            (route, f"the host network {route} of the {side.name} side")
            for route in side.routes
            if not _lies_behind_prefix(plan, route)
        ]
    if plan.translation is not None:
        named.append((plan.translation.prefix, f"the prefix {plan.translation.prefix}"))
    if plan.nat is not None:
        if not plan.nat.is_own_address:
            named.append((plan.nat.pool, f"the pool {plan.nat.pool}"))
        if plan.nat.prefix is not None:
            named.append((plan.nat.prefix, f"the prefix {plan.nat.prefix}"))
    named.sort(key=lambda entry: (entry[0].version, int(entry[0].network_address), entry[0].prefixlen))
    for (network, name), (following, other) in pairwise(named):
        if network.version == following.version and int(network.broadcast_address) >= int(
            following.network_address
        ):
            raise PlanError(
                f"{name} overlaps {other}",
                code="plan.networks-overlap",
                where="plan",
                next_step="Give each its own addresses.",
            )


def _check_prefixes_disjoint(plan: AddressPlan) -> None:
    """The same of prefixes that are too many to be listed as routes."""
    for side, other in (plan.sides, plan.sides[::-1]):
        if side.prefixes is None or side.routes:
            continue
        named = [(link.network, f"the link {link.network}") for each in plan.sides for link in each.dut]
        named += [(route, f"the host network {route} of the {other.name} side") for route in other.routes]
        clashes = [(side.prefixes.overlapping(network), words) for network, words in named]
        if other.prefixes is not None and not other.routes:
            found, of_other = side.prefixes.overlap_with(other.prefixes)
            clashes.append((found, f"{of_other} of the {other.name} side"))
        for found, words in clashes:
            if found is not None:
                raise PlanError(
                    f"the prefix {found} of the {side.name} side overlaps {words}",
                    code="plan.networks-overlap",
                    where=_where(side),
                    next_step="Give each its own addresses.",
                )


def _lies_behind_prefix(plan: AddressPlan, route: Network) -> bool:
    """Whether they are the hosts that are meant to."""
    translation = plan.translation
    return translation is not None and not translation.needs_mapping and route == translation.ipv6_hosts


def _hosts(side: PlanSide) -> str:
    return f"hosts {side.host_range.first_address} .. {side.host_range.last_address}"


def _where(side: PlanSide) -> str:
    return f"plan.{side.name}"


MOST_UNSUSPICIOUS_DIRECT_HOSTS = 2048
"""Hosts on the link of one side up to which a neighbour table is not a concern (SEED-06)."""


def plan_warnings(plan: AddressPlan) -> list[str]:
    """Sentences for people, before anything is sent or set up; none for gateway plans (SEED-06, SEED-80)."""
    return [warning for part in plan.plans for warning in _warnings(part)]


def _warnings(plan: AddressPlan) -> list[str]:
    crowded = [
        side for side in plan.sides if side.is_direct and side.dut_neighbors > MOST_UNSUSPICIOUS_DIRECT_HOSTS
    ]
    if not crowded:
        return []
    counts = " and ".join(f"{side.dut_neighbors:,} on the {side.name} side" for side in crowded)
    protocol = " and ".join(
        dict.fromkeys("ARP" if side.ip_version == 4 else "Neighbour Discovery" for side in crowded)
    )
    return [
        f"The DUT must resolve every host by {protocol}: {counts}. With more than"
        f" {MOST_UNSUSPICIOUS_DIRECT_HOSTS:,} on a side its neighbour table may distort or"
        " end the test, and to other devices this looks like a denial-of-service attack,"
        " so use isolated test environments only (RFC 6815). Gateway plans need only two"
        " entries, however many hosts there are."
    ]
