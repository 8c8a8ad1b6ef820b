# SPDX-License-Identifier: Apache-2.0
"""Station 1, address plan: the topologies by name. docs/reference/plans.md shows them all."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from functools import lru_cache

from evenhand.base.errors import PlanError, suggestion
from evenhand.base.validation.typed_fields import check_type, plain
from evenhand.plan.model import AddressPlan, plan_title
from evenhand.plan.ranges import Mode, UdpRange
from evenhand.plan.topology import Counts, PeerAddresses, SideAddresses, Topology
from evenhand.plan.translation import (
    RFC9693_DESTINATION_PORTS,
    RFC9693_SOURCE_PORTS,
    Nat,
    Translation,
    check_prefix,
    embed,
    embedded_octets,
    network_behind,
)

_DERIVED = "derived from Figures 3 and 5"
_V6_HOST = 2
"""Last 16 bits of every IPv6 host; those of the DUT are 1."""

gateway_v4 = Topology(
    name="gateway_v4",
    figure="Figure 3",
    left=SideAddresses(dut="10.0.0.1/24", gateway="10.0.0.2/24", host_network="198.18.0.0/16"),
    right=SideAddresses(dut="10.0.1.1/24", gateway="10.0.1.2/24", host_network="198.19.0.0/16"),
    first_host=1,
    most_hosts=65534,
)
"""IPv4 hosts behind gateways (SEED-13, SEED-14)."""

gateway_v6 = Topology(
    name="gateway_v6",
    figure="Figure 5",
    left=SideAddresses(dut="2001:2:0:1000::1/64", gateway="2001:2:0:1000::2/64", host_network="2001:2::/64"),
    right=SideAddresses(
        dut="2001:2:0:9000::1/64", gateway="2001:2:0:9000::2/64", host_network="2001:2:0:8000::/64"
    ),
    first_host=0,
    most_hosts=65536,
    interface_id=_V6_HOST,
)
"""IPv6 hosts behind gateways (SEED-16, SEED-17)."""

direct_v4_net24 = Topology(
    name="direct_v4_net24",
    figure="Figure 1",
    left=SideAddresses(dut="198.18.0.1/24", host_network="198.18.0.0/24"),
    right=SideAddresses(dut="198.19.0.1/24", host_network="198.19.0.0/24"),
    first_host=2,
    most_hosts=253,
)
"""IPv4 hosts on the link, a /24 (SEED-10)."""

direct_v4_net16 = Topology(
    name="direct_v4_net16",
    figure="Figure 2",
    left=SideAddresses(dut="198.18.0.1/16", host_network="198.18.0.0/16"),
    right=SideAddresses(dut="198.19.0.1/16", host_network="198.19.0.0/16"),
    first_host=2,
    most_hosts=65533,
)
"""IPv4 hosts on the link, a /16 (SEED-11, SEED-12)."""

direct_v6 = Topology(
    name="direct_v6",
    figure="Figure 4",
    left=SideAddresses(dut="2001:2::1/64", host_network="2001:2::/64"),
    right=SideAddresses(dut="2001:2:0:8000::1/64", host_network="2001:2:0:8000::/64"),
    first_host=0,
    most_hosts=65536,
    interface_id=_V6_HOST,
)
"""IPv6 hosts on the link (SEED-15)."""

nets_v4_single_host = Topology(
    name="nets_v4_single_host",
    figure="section 2.1, as RFC 2544 section 12",
    left=direct_v4_net24.left,
    right=direct_v4_net24.right,
    first_host=2,
    most_hosts=1,
    most_networks=256,
)
"""256 IPv4 networks on the link with one host each (SEED-31)."""

nets_v4_multi_host = Topology(
    name="nets_v4_multi_host",
    figure="Figure 1 for each network",
    left=direct_v4_net24.left,
    right=direct_v4_net24.right,
    first_host=2,
    most_hosts=253,
    most_networks=256,
)
"""256 IPv4 networks on the link with all their hosts (SEED-31)."""

nets_v4_gateway = Topology(
    name="nets_v4_gateway",
    figure=_DERIVED,
    left=SideAddresses(dut="10.0.0.1/24", gateway="10.0.0.2/24", host_network="198.18.0.0/24"),
    right=SideAddresses(dut="10.0.1.1/24", gateway="10.0.1.2/24", host_network="198.19.0.0/24"),
    first_host=1,
    most_hosts=254,
    most_networks=256,
)
"""256 IPv4 networks behind gateways (SEED-36)."""

nets_v6_direct = Topology(
    name="nets_v6_direct",
    figure="section 2.2; Figure 4 for each network",
    left=direct_v6.left,
    right=direct_v6.right,
    first_host=0,
    most_hosts=65536,
    most_networks=256,
    interface_id=_V6_HOST,
)
"""256 IPv6 networks on the link (SEED-32)."""

nets_v6_gateway = Topology(
    name="nets_v6_gateway",
    figure=_DERIVED,
    left=gateway_v6.left,
    right=gateway_v6.right,
    first_host=0,
    most_hosts=65536,
    most_networks=256,
    interface_id=_V6_HOST,
)
"""256 IPv6 networks behind gateways (SEED-36)."""

classic_v4 = Topology(
    name="classic_v4",
    figure="RFC 2544 C.2.2",
    left=SideAddresses(dut="198.18.1.1/24", gateway="198.18.1.10/24", host_network="198.18.65.0/24"),
    right=SideAddresses(dut="198.19.1.1/24", gateway="198.19.1.10/24", host_network="198.19.65.0/24"),
    first_host=2,
    most_hosts=1,
    most_networks=190,
)
"""Networks 65 .. 254 behind phantom routers, one end node each (R2544-38)."""


_PREFIX = ipaddress.IPv6Network("2001:2:0:64::/96")
"""Prefix of translators, unless another one is asked for."""


def _behind(prefix: ipaddress.IPv6Network, network: ipaddress.IPv4Network) -> PeerAddresses:
    """Hosts with the addresses of an IPv4 network behind a prefix. Their number is the last two octets."""
    high, low = embedded_octets(prefix.prefixlen)[2:]
    return PeerAddresses(base=str(embed(prefix, network.network_address)), offset=high, gap=low - high - 1)


def _siit(
    name: str, rfc: str, ipv6_hosts: str | None = None, prefix: ipaddress.IPv6Network = _PREFIX
) -> Topology:
    """IPv6 on the left, IPv4 on the right, and a stateless translator between them (RFC 7915).

    Args:
        ipv6_hosts: None: they lie behind the prefix.
    """
    left, right = ipaddress.IPv4Network("198.18.0.0/16"), ipaddress.IPv4Network("198.19.0.0/16")
    ipv6_network = network_behind(prefix, left) if ipv6_hosts is None else ipaddress.IPv6Network(ipv6_hosts)
    number = _behind(prefix, left) if ipv6_hosts is None else None
    return Topology(
        name=name,
        figure=f"{_DERIVED}; {rfc}",
        left=SideAddresses(
            dut="2001:2:0:1000::1/64",
            gateway="2001:2:0:1000::2/64",
            host_network=str(ipv6_network),
            host_offset=14 if number is None else number.offset,
            host_gap=0 if number is None else number.gap,
            peers=_behind(prefix, right),
            added_octets=20,
        ),
        right=SideAddresses(
            dut="10.0.1.1/24",
            gateway="10.0.1.2/24",
            host_network=str(right),
            peers=PeerAddresses(base=str(left.network_address), offset=2),
        ),
        first_host=1,
        most_hosts=65534,
        translation=Translation(prefix=prefix, ipv6_hosts=ipv6_network, ipv6_hosts_as_ipv4=left),
    )


siit = _siit("siit", "RFC 6052")
"""All IPv6 addresses are the prefix 2001:2:0:64::/96 and an IPv4 address. The well-known prefix 64:ff9b::/96
is not for addresses of the benchmarking block (RFC 6052, 3.1)."""

siit_eam = _siit("siit_eam", "RFC 7757", "2001:2::/112")
"""The IPv6 hosts have no IPv4 address in theirs: the DUT maps 2001:2::/112 to 198.18.0.0/16."""


def _nat(
    name: str, inside: str, outside: Topology, pool: str | None, prefix: ipaddress.IPv6Network = _PREFIX
) -> Topology:
    """Hosts on the left that open connections to those on the right, through a DUT that translates their
    addresses and ports and keeps state (RFC 9693). The links are those of gateway plans: no one could reach a
    host on the link of the left before it has opened a connection.

    Args:
        pool: None: the address of the DUT's own interface, as behind a NAT that masquerades.
    """
    own = ipaddress.ip_interface(outside.right.dut).ip
    inside_network, pool_network = ipaddress.ip_network(inside), ipaddress.ip_network(pool or own)
    number = int(own) % 65536
    inner = gateway_v4 if inside_network.version == 4 else gateway_v6
    is_nat64 = inside_network.version == 6 and pool_network.version == 4
    outside_hosts = ipaddress.ip_network(outside.right.host_network)
    return Topology(
        name=name,
        figure=f"{_DERIVED}; RFC 9693",
        left=SideAddresses(
            dut=inner.left.dut,
            gateway=inner.left.gateway,
            host_network=inside,
            host_offset=2 if inside_network.version == 4 else 14,
            peers=_behind(prefix, outside_hosts)
            if is_nat64 and isinstance(outside_hosts, ipaddress.IPv4Network)
            else None,
            added_octets=20 if is_nat64 else 0,
        ),
        right=SideAddresses(
            dut=outside.right.dut,
            gateway=outside.right.gateway,
            host_network=outside.right.host_network,
            peers=PeerAddresses(
                base=str(own - number if pool is None else pool_network.network_address),
                offset=2 if pool_network.version == 4 else 14,
                only=number if pool is None else None,
            ),
        ),
        first_host=1,
        most_hosts=65534,
        nat=Nat(
            inside=inside_network,
            pool=pool_network,
            prefix=prefix if is_nat64 else None,
            is_own_address=pool is None,
        ),
        source_ports=RFC9693_SOURCE_PORTS,
        destination_ports=RFC9693_DESTINATION_PORTS,
    )


nat44 = _nat("nat44", "10.16.0.0/16", gateway_v4, "198.18.0.0/16")
"""IPv4 hosts behind an IPv4 pool (R9693-16)."""

nat64 = _nat("nat64", "2001:2::/112", gateway_v4, "198.18.0.0/16")
"""IPv6 hosts behind an IPv4 pool; the IPv4 hosts lie behind the prefix 2001:2:0:64::/96."""

nat66 = _nat("nat66", "2001:2::/112", gateway_v6, "2001:2:0:4000::/112")
"""IPv6 hosts behind an IPv6 pool."""

nat44_masquerade = _nat("nat44_masquerade", "10.16.0.0/16", gateway_v4, None)
"""IPv4 hosts behind the address of the DUT's own interface, as the target MASQUERADE of Linux does it; the
next two likewise."""

nat64_masquerade = _nat("nat64_masquerade", "2001:2::/112", gateway_v4, None)

nat66_masquerade = _nat("nat66_masquerade", "2001:2::/112", gateway_v6, None)

TOPOLOGIES: dict[str, Topology] = {
    topology.name: topology
    for topology in (
        gateway_v4,
        gateway_v6,
        direct_v4_net24,
        direct_v4_net16,
        direct_v6,
        nets_v4_single_host,
        nets_v4_multi_host,
        nets_v4_gateway,
        nets_v6_direct,
        nets_v6_gateway,
        classic_v4,
        siit,
        siit_eam,
        nat44,
        nat64,
        nat66,
        nat44_masquerade,
        nat64_masquerade,
        nat66_masquerade,
    )
}
"""Every plan that can be named; the recommended form comes first (SEED-05)."""


_BEHIND_PREFIX: dict[str, Callable[[str, ipaddress.IPv6Network], Topology]] = {
    "siit": lambda name, prefix: _siit(name, "RFC 6052", prefix=prefix),
    "siit_eam": lambda name, prefix: _siit(name, "RFC 7757", "2001:2::/112", prefix),
    "nat64": lambda name, prefix: _nat(name, "2001:2::/112", gateway_v4, "198.18.0.0/16", prefix),
    "nat64_masquerade": lambda name, prefix: _nat(name, "2001:2::/112", gateway_v4, None, prefix),
}
"""Plans that take a prefix of the user's."""


def masqueraded(name: str) -> str:
    """The name of the plan of the same NAT, as a user writes it, whose pool is the address of the DUT's own
    interface: `nat64-masquerade@2001:db8::/40` of `nat64@2001:db8::/40`."""
    plan, at, prefix = name.partition("@")
    return f"{plan}-masquerade{at}{prefix}"


def find_topology(name: str) -> Topology | None:
    """The topology of a plan's name, such as `gateway-v4` or `siit@2001:db8::/40`; None if there is none, as
    for a mix. `-` and `_` are the same."""
    try:
        return _topology_of(name.replace("-", "_"))
    except PlanError:
        return None


@lru_cache(maxsize=256)
def _topology_of(name: str) -> Topology | None:
    """The same; PlanError for a prefix that no plan can have."""
    plan, at, text = name.partition("@")
    if not at:
        return TOPOLOGIES.get(plan)
    if plan not in TOPOLOGIES or "+" in text:  # a mix
        return None
    if plan not in _BEHIND_PREFIX:
        raise PlanError(
            f"{plan_title(plan)} has no translation prefix, but @{text} is given",
            code="plan.takes-no-prefix",
            next_step=f"Omit it, or use one of: {', '.join(map(plan_title, _BEHIND_PREFIX))}.",
        )
    try:
        prefix = ipaddress.IPv6Network(text)
    except ValueError as error:
        raise PlanError(
            f"{text!r} is not an IPv6 prefix: {error}",
            code="plan.not-a-prefix",
            next_step=f"Write it as in {plan_title(plan)}@2001:db8::/32, with zeros behind its bits.",
        ) from error
    check_prefix(prefix, where="plan")
    if prefix == _PREFIX:
        return TOPOLOGIES[plan]
    return _BEHIND_PREFIX[plan](f"{plan}@{prefix}", prefix)


def make_plan(
    name: str,
    hosts: Counts = None,
    *,
    networks: Counts = None,
    host_mode: Mode = "pseudorandom",
    network_mode: Mode = "pseudorandom",
    fixed_source: bool = False,
    fixed_source_network: bool = False,
    common_network: bool = False,
    source_ports: UdpRange | None = None,
    destination_ports: UdpRange | None = None,
) -> AddressPlan:
    """The plan of this name; `-` and `_` are the same. PlanError names the plans there are; a mix of two
    plans is not one of them. `siit@2001:db8::/40` is `siit` with that translation prefix. RequestError for a
    value of the wrong type."""
    check_type(name, str, where="plan")
    for counts, where in ((hosts, "hosts"), (networks, "networks")):
        check_type(counts, int | tuple[int, int] | None, where=where)
    for mode, where in ((host_mode, "host_mode"), (network_mode, "network_mode")):
        check_type(mode, Mode, where=where)
    choices = {
        "fixed_source": fixed_source,
        "fixed_source_network": fixed_source_network,
        "common_network": common_network,
    }
    for where, choice in choices.items():
        check_type(choice, bool, where=where)
    for ports, where in ((source_ports, "source_ports"), (destination_ports, "destination_ports")):
        check_type(ports, UdpRange | None, where=where)
    topology = _topology_of(name.replace("-", "_"))
    if topology is None:
        titles = [plan_title(known) for known in TOPOLOGIES]
        parts = [plan_title(part) for part in name.split("+")]
        unknown = [part for part in parts if _topology_of(part.replace("-", "_")) is None]
        if len(parts) > 1 and not unknown:
            raise PlanError(
                f"{name!r} is a mix of plans, but a single plan is needed here",
                code="plan.single-plan-needed",
                next_step=f"Name one at a time: {' or '.join(parts)}.",
            )
        name = unknown[0]
        plan, at, prefix = name.partition("@")
        near = suggestion(plan_title(plan.lower()), titles)
        raise PlanError(
            f"{name!r} is not a plan",
            code="plan.unknown-name",
            where="plan",
            next_step=f"Did you mean {near}{at}{prefix}?" if near else f"Use one of: {', '.join(titles)}.",
        )
    return topology(
        plain(hosts, Counts),
        network_counts=plain(networks, Counts),
        host_mode=host_mode,
        network_mode=network_mode,
        fixed_source=fixed_source,
        fixed_source_network=fixed_source_network,
        common_network=common_network,
        source_ports=source_ports,
        destination_ports=destination_ports,
    )
