# SPDX-License-Identifier: Apache-2.0
"""Station 1, address plan: the topologies by name. docs/reference/plans.md shows them all."""

from __future__ import annotations

import ipaddress

from evenhand.base.errors import PlanError
from evenhand.base.suggestion import suggestion
from evenhand.plan.model import AddressPlan, plan_title
from evenhand.plan.nat import RFC9693_DESTINATION_PORTS, RFC9693_SOURCE_PORTS, Nat
from evenhand.plan.ranges import Mode, UdpRange
from evenhand.plan.topology import Counts, PeerAddresses, SideAddresses, Topology
from evenhand.plan.translation import Translation

_DERIVED = "derived from Figures 3 and 5"
_V6_HOST = 2
"""Last 16 bits of every IPv6 host; those of the DUT are 1."""

gateway_v4 = Topology(
    name="gateway_v4",
    figure="Figure 3",
    left=SideAddresses(dut="10.0.0.1/24", gateway="10.0.0.2/24", hosts="198.18.0.0/16"),
    right=SideAddresses(dut="10.0.1.1/24", gateway="10.0.1.2/24", hosts="198.19.0.0/16"),
    first_host=1,
    hosts=65534,
)
"""IPv4 hosts behind gateways (SEED-13, SEED-14)."""

gateway_v6 = Topology(
    name="gateway_v6",
    figure="Figure 5",
    left=SideAddresses(dut="2001:2:0:1000::1/64", gateway="2001:2:0:1000::2/64", hosts="2001:2::/64"),
    right=SideAddresses(dut="2001:2:0:9000::1/64", gateway="2001:2:0:9000::2/64", hosts="2001:2:0:8000::/64"),
    first_host=0,
    hosts=65536,
    interface_id=_V6_HOST,
)
"""IPv6 hosts behind gateways (SEED-16, SEED-17)."""

direct_v4_net24 = Topology(
    name="direct_v4_net24",
    figure="Figure 1",
    left=SideAddresses(dut="198.18.0.1/24", hosts="198.18.0.0/24"),
    right=SideAddresses(dut="198.19.0.1/24", hosts="198.19.0.0/24"),
    first_host=2,
    hosts=253,
)
"""IPv4 hosts on the link, a /24 (SEED-10)."""

direct_v4_net16 = Topology(
    name="direct_v4_net16",
    figure="Figure 2",
    left=SideAddresses(dut="198.18.0.1/16", hosts="198.18.0.0/16"),
    right=SideAddresses(dut="198.19.0.1/16", hosts="198.19.0.0/16"),
    first_host=2,
    hosts=65533,
)
"""IPv4 hosts on the link, a /16 (SEED-11, SEED-12)."""

direct_v6 = Topology(
    name="direct_v6",
    figure="Figure 4",
    left=SideAddresses(dut="2001:2::1/64", hosts="2001:2::/64"),
    right=SideAddresses(dut="2001:2:0:8000::1/64", hosts="2001:2:0:8000::/64"),
    first_host=0,
    hosts=65536,
    interface_id=_V6_HOST,
)
"""IPv6 hosts on the link (SEED-15)."""

nets_v4_single_host = Topology(
    name="nets_v4_single_host",
    figure="section 2.1, as RFC 2544 section 12",
    left=direct_v4_net24.left,
    right=direct_v4_net24.right,
    first_host=2,
    hosts=1,
    networks=256,
)
"""256 IPv4 networks on the link with one host each (SEED-31)."""

nets_v4_multi_host = Topology(
    name="nets_v4_multi_host",
    figure="Figure 1 for each network",
    left=direct_v4_net24.left,
    right=direct_v4_net24.right,
    first_host=2,
    hosts=253,
    networks=256,
)
"""256 IPv4 networks on the link with all their hosts (SEED-31)."""

nets_v4_gateway = Topology(
    name="nets_v4_gateway",
    figure=_DERIVED,
    left=SideAddresses(dut="10.0.0.1/24", gateway="10.0.0.2/24", hosts="198.18.0.0/24"),
    right=SideAddresses(dut="10.0.1.1/24", gateway="10.0.1.2/24", hosts="198.19.0.0/24"),
    first_host=1,
    hosts=254,
    networks=256,
)
"""256 IPv4 networks behind gateways (SEED-36)."""

nets_v6_direct = Topology(
    name="nets_v6_direct",
    figure="section 2.2; Figure 4 for each network",
    left=direct_v6.left,
    right=direct_v6.right,
    first_host=0,
    hosts=65536,
    networks=256,
    interface_id=_V6_HOST,
)
"""256 IPv6 networks on the link (SEED-32)."""

nets_v6_gateway = Topology(
    name="nets_v6_gateway",
    figure=_DERIVED,
    left=gateway_v6.left,
    right=gateway_v6.right,
    first_host=0,
    hosts=65536,
    networks=256,
    interface_id=_V6_HOST,
)
"""256 IPv6 networks behind gateways (SEED-36)."""

classic_v4 = Topology(
    name="classic_v4",
    figure="RFC 2544 C.2.2",
    left=SideAddresses(dut="198.18.1.1/24", gateway="198.18.1.10/24", hosts="198.18.65.0/24"),
    right=SideAddresses(dut="198.19.1.1/24", gateway="198.19.1.10/24", hosts="198.19.65.0/24"),
    first_host=2,
    hosts=1,
    networks=190,
)
"""Networks 65 .. 254 behind phantom routers, one end node each (R2544-38)."""


def _siit(name: str, rfc: str, ipv6_hosts: str) -> Topology:
    """IPv6 on the left, IPv4 on the right, and a stateless translator between them (RFC 7915)."""
    translation = Translation(
        prefix=ipaddress.IPv6Network("2001:2:0:64::/96"),
        ipv6_hosts=ipaddress.IPv6Network(ipv6_hosts),
        ipv6_hosts_as_ipv4=ipaddress.IPv4Network("198.18.0.0/16"),
    )
    ipv4_hosts = ipaddress.IPv4Network("198.19.0.0/16")
    return Topology(
        name=name,
        figure=f"{_DERIVED}; {rfc}",
        left=SideAddresses(
            dut="2001:2:0:1000::1/64",
            gateway="2001:2:0:1000::2/64",
            hosts=ipv6_hosts,
            host_offset=14,
            peers=PeerAddresses(base=str(translation.embed(ipv4_hosts.network_address)), offset=14),
            added_octets=20,
        ),
        right=SideAddresses(
            dut="10.0.1.1/24",
            gateway="10.0.1.2/24",
            hosts=str(ipv4_hosts),
            peers=PeerAddresses(base=str(translation.ipv6_hosts_as_ipv4.network_address), offset=2),
        ),
        first_host=1,
        hosts=65534,
        translation=translation,
    )


siit = _siit("siit", "RFC 6052", "2001:2:0:64::c612:0/112")
"""All IPv6 addresses are the prefix 2001:2:0:64::/96 and an IPv4 address. The well-known prefix 64:ff9b::/96
is not for addresses of the benchmarking block (RFC 6052, 3.1)."""

siit_eam = _siit("siit_eam", "RFC 7757", "2001:2::/112")
"""The IPv6 hosts have no IPv4 address in theirs: the DUT maps 2001:2::/112 to 198.18.0.0/16."""


def _nat(name: str, inside: str, outside: Topology, pool: str) -> Topology:
    """Hosts on the left that open connections to those on the right, through a DUT that translates their
    addresses and ports and keeps state (RFC 9693). The links are those of gateway plans: nobody could reach a
    host on the link of the left before it has opened a connection."""
    inside_network, pool_network = ipaddress.ip_network(inside), ipaddress.ip_network(pool)
    inner = gateway_v4 if inside_network.version == 4 else gateway_v6
    is_nat64 = inside_network.version == 6 and pool_network.version == 4
    translation_prefix = ipaddress.IPv6Network("2001:2:0:64::/96") if is_nat64 else None
    outside_hosts = ipaddress.ip_network(outside.right.hosts).network_address
    return Topology(
        name=name,
        figure=f"{_DERIVED}; RFC 9693",
        left=SideAddresses(
            dut=inner.left.dut,
            gateway=inner.left.gateway,
            hosts=inside,
            host_offset=2 if inside_network.version == 4 else 14,
            peers=None
            if translation_prefix is None
            else PeerAddresses(base=str(translation_prefix.network_address + int(outside_hosts)), offset=14),
            added_octets=20 if is_nat64 else 0,
        ),
        right=SideAddresses(
            dut=outside.right.dut,
            gateway=outside.right.gateway,
            hosts=outside.right.hosts,
            peers=PeerAddresses(
                base=str(pool_network.network_address), offset=2 if pool_network.version == 4 else 14
            ),
        ),
        first_host=1,
        hosts=65534,
        nat=Nat(inside=inside_network, pool=pool_network, prefix=translation_prefix),
        source_ports=RFC9693_SOURCE_PORTS,
        destination_ports=RFC9693_DESTINATION_PORTS,
    )


nat44 = _nat("nat44", "10.16.0.0/16", gateway_v4, "198.18.0.0/16")
"""IPv4 hosts behind an IPv4 pool (R9693-16)."""

nat64 = _nat("nat64", "2001:2::/112", gateway_v4, "198.18.0.0/16")
"""IPv6 hosts behind an IPv4 pool; the IPv4 hosts lie behind the prefix 2001:2:0:64::/96."""

nat66 = _nat("nat66", "2001:2::/112", gateway_v6, "2001:2:0:4000::/112")
"""IPv6 hosts behind an IPv6 pool."""

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
    )
}
"""Every plan that can be named; the recommended form comes first (SEED-05)."""


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
    plans is none of them."""
    topology = TOPOLOGIES.get(name.replace("-", "_"))
    if topology is None:
        titles = [plan_title(known) for known in TOPOLOGIES]
        parts = [plan_title(part) for part in name.split("+")]
        if len(parts) > 1 and all(part in titles for part in parts):
            raise PlanError(
                f"{name!r} is a mix of plans, but a single plan is needed here",
                code="plan.single-plan-needed",
                next_step=f"Name one at a time: {' or '.join(parts)}.",
            )
        name = next((part for part in parts if part not in titles), name)
        near = suggestion(plan_title(name.lower()), titles)
        raise PlanError(
            f"{name!r} is not a plan",
            code="plan.unknown-name",
            next_step=f"Did you mean {near}?" if near else f"Use one of: {', '.join(titles)}.",
        )
    return topology(
        hosts,
        networks=networks,
        host_mode=host_mode,
        network_mode=network_mode,
        fixed_source=fixed_source,
        fixed_source_network=fixed_source_network,
        common_network=common_network,
        source_ports=source_ports,
        destination_ports=destination_ports,
    )
