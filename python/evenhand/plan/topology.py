# SPDX-License-Identifier: Apache-2.0
"""Station 1, address plan: what topologies have in common, so that each is a few facts and no code."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from evenhand.base.errors import PlanError
from evenhand.plan.model import AddressPlan, plan_title
from evenhand.plan.ranges import HostRange, Interface, IpVersion, Mode, Network, NetworkRange, UdpRange
from evenhand.plan.sides import PlanSide, SideCounts, SideName
from evenhand.plan.translation import Nat, Translation
from evenhand.plan.validate import check_plan

Counts = int | tuple[int, int] | None
"""Count for both sides, or for left and right; None for the maximum."""

CLASSIC_SOURCE_PORT = UdpRange(first=0xC020, last=0xC020, mode="fixed")
CLASSIC_DESTINATION_PORT = UdpRange(first=7, last=7, mode="fixed")
"""The UDP ports of RFC 2544, C.2.6.4 (R2544-31)."""
RFC4814_SOURCE_PORTS = UdpRange(first=1024, last=65535)
"""R4814-02."""
RFC4814_DESTINATION_PORTS = UdpRange(first=1, last=49151)
"""R4814-03."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerAddresses:
    """The addresses that a translator gives to the other side's hosts on this side, as text; with state,
    those that it may choose from."""

    base: str
    """The address whose 16-bit host number is 0."""
    offset: int
    """Octet at which that number begins: 2 in IPv4, 14 behind an IPv6 prefix of 96 bits."""
    gap: int = 0
    """Octets between the two of the number: 1 behind an IPv6 prefix of 40 bits."""
    only: int | None = None
    """The number of the only address that there is; None: there is one for each host of the other side."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SideAddresses:
    """The addresses of one side, as text."""

    dut: str
    """The DUT's interface; with the hosts on the link, that of network 0."""
    gateway: str | None = None
    """The tester's interface that the DUT routes to; None if the hosts are on the link."""
    host_network: str
    """Network 0 of the hosts."""
    host_offset: int | None = None
    """Octet at which the 16-bit number of a host begins in its address. None: 2 in IPv4, 12 in IPv6."""
    host_gap: int = 0
    """Octets between the two of the number."""
    peers: PeerAddresses | None = None
    """Where the DUT translates: how the hosts of the other side are addressed here."""
    added_octets: int = 0
    """How much larger frames are here than the frame size that is asked for."""

    @property
    def ip_version(self) -> IpVersion:
        return 4 if ipaddress.ip_network(self.host_network).version == 4 else 6

    @property
    def number_offset(self) -> int:
        return self.host_offset if self.host_offset is not None else 2 if self.ip_version == 4 else 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """A named way to connect tester and DUT. Called, it makes the plan of so many hosts and networks."""

    name: str
    figure: str
    left: SideAddresses
    right: SideAddresses
    first_host: int
    """The 16-bit number of the first host in its address."""
    most_hosts: int
    """Most hosts of a network, and the default."""
    most_networks: int | None = None
    """Most networks of a side, and the default; None if there is one that has no number."""
    translation: Translation | None = None
    """What the DUT must be configured for, where it translates without state."""
    nat: Nat | None = None
    """The same with state."""
    source_ports: UdpRange = RFC4814_SOURCE_PORTS
    """Source ports unless others are asked for; `destination_ports` likewise."""
    destination_ports: UdpRange = RFC4814_DESTINATION_PORTS
    interface_id: int = 0
    """What follows the host number of an IPv6 address."""

    @property
    def ip_version(self) -> IpVersion:
        """IP version of both sides, unless the DUT translates; then of the left."""
        return self.left.ip_version

    def __call__(
        self,
        host_counts: Counts = None,
        *,
        network_counts: Counts = None,
        host_mode: Mode = "pseudorandom",
        network_mode: Mode = "pseudorandom",
        fixed_source: bool = False,
        fixed_source_network: bool = False,
        common_network: bool = False,
        source_ports: UdpRange | None = None,
        destination_ports: UdpRange | None = None,
    ) -> AddressPlan:
        """The checked plan.

        Args:
            host_counts: Hosts of each network, for both sides or for (left, right); 1 to the maximum, which
                is the default (SEED-42). One host in one network is a single address pair.
            network_counts: Networks of each side; likewise. Topologies without networks take 1 only.
            fixed_source: Every frame comes from the first host of its side (SEED-35).
            fixed_source_network: Every frame comes from the first network of its side, and any host of it
                (SEED-83).
            common_network: One number for the networks of source and destination, instead of one each
                (SEED-82).
            source_ports: Source ports of both directions; with state, those of the frames that open
                connections; None for the topology's. `destination_ports` likewise.

        Raises:
            PlanError: A count outside the topology's limits.
        """
        if self.most_networks is None and network_mode != "pseudorandom":
            raise PlanError(
                f"{network_mode} networks: {plan_title(self.name)} has only one network, which has no number",
                code="plan.one-network-only",
                where="network mode",
                next_step="Omit it, or use a plan with networks, such as nets-v4-gateway.",
            )
        hosts, networks = self._hosts_of_sides(host_counts), self._networks_of_sides(network_counts)

        def side(name: SideName, addresses: SideAddresses) -> PlanSide:
            network_0 = ipaddress.ip_network(addresses.host_network)
            dut = ipaddress.ip_interface(addresses.dut)
            network_count, ip_version = networks.of(name), addresses.ip_version
            return PlanSide(
                name=name,
                dut=(dut,)
                if addresses.gateway
                else tuple(_interface_of(dut, n) for n in range(network_count)),
                gateway=ipaddress.ip_interface(addresses.gateway) if addresses.gateway else None,
                host_range=HostRange(
                    base=network_0.network_address + (0 if ip_version == 4 else self.interface_id),
                    offset=addresses.number_offset,
                    gap=addresses.host_gap,
                    first=self.first_host,
                    count=hosts.of(name),
                    mode=host_mode,
                    network_range=None
                    if self.most_networks is None
                    else NetworkRange(
                        offset=2 if ip_version == 4 else 6, count=network_count, mode=network_mode
                    ),
                ),
                routes=tuple(_network_of(network_0, n) for n in range(network_count))
                if addresses.gateway
                else (),
                peers=None
                if addresses.peers is None
                else HostRange(
                    base=ipaddress.ip_address(addresses.peers.base),
                    offset=addresses.peers.offset,
                    gap=addresses.peers.gap,
                    first=self.first_host if addresses.peers.only is None else addresses.peers.only,
                    count=1
                    if addresses.peers.only is not None
                    else hosts.right
                    if name == "left"
                    else hosts.left,
                    mode=host_mode,
                ),
                added_octets=addresses.added_octets,
            )

        plan = AddressPlan(
            name=self.name,
            figure=self.figure,
            left=side("left", self.left),
            right=side("right", self.right),
            source_ports=source_ports or self.source_ports,
            destination_ports=destination_ports or self.destination_ports,
            fixed_source=fixed_source,
            fixed_source_network=fixed_source_network,
            common_network=common_network,
            translation=self.translation,
            nat=self.nat,
        )
        check_plan(plan)
        return plan

    def _hosts_of_sides(self, counts: Counts) -> SideCounts:
        most = max(_both(counts, 0))
        if self.most_networks is not None and self.ip_version == 4 and most > 0xFF:
            raise PlanError(
                f"{most} hosts in each network: in {plan_title(self.name)} the number of the"
                " network occupies the octet that hosts above 255 need",
                code="plan.octet-needed-twice",
                where="hosts",
                next_step="Use gateway-v4 or direct-v4-net16: one network with more than 65,000 hosts"
                " (SEED-34).",
            )
        return self._limited(counts, self.most_hosts, "hosts", "in each network")

    def _networks_of_sides(self, counts: Counts) -> SideCounts:
        if self.most_networks is not None:
            return self._limited(counts, self.most_networks, "networks", "on each side")
        most = max(_both(counts, 1))
        if most > 1 and self.ip_version == 4:
            raise PlanError(
                f"{most} networks: {plan_title(self.name)} has one, because in IPv4 either"
                " networks or hosts use the third octet",
                code="plan.one-network-only",
                where="networks",
                next_step="Use nets-v4-gateway or nets-v4-multi-host: up to 256 networks with up to 254"
                " hosts each (SEED-34).",
            )
        if most > 1:
            raise PlanError(
                f"{most} networks: {plan_title(self.name)} has one",
                code="plan.one-network-only",
                where="networks",
                next_step="Use nets-v6-gateway or nets-v6-direct.",
            )
        return self._limited(counts, 1, "networks", "on each side")

    def _limited(self, counts: Counts, maximum: int, what: str, where: str) -> SideCounts:
        for n in _both(counts, maximum):
            if not 1 <= n <= maximum:
                limits = "1" if maximum == 1 else f"1 to {maximum}"
                raise PlanError(
                    f"{n} {what}: {plan_title(self.name)} has {limits} {where}",
                    code="plan.count-out-of-range",
                    where=what,
                    next_step=f"Use {limits}.",
                )
        return _both(counts, maximum)


def _both(counts: Counts, default: int) -> SideCounts:
    if isinstance(counts, tuple):
        return SideCounts(*counts)
    return SideCounts(default, default) if counts is None else SideCounts(counts, counts)


def _network_of(network_0: Network, number: int) -> Network:
    """Network `number` of those that follow one another from `network_0` on: bits 16-23 of IPv4 /24, 56-63 of
    IPv6 /64."""
    return ipaddress.ip_network(
        (network_0.network_address + number * network_0.num_addresses, network_0.prefixlen)
    )


def _interface_of(interface_0: Interface, number: int) -> Interface:
    return ipaddress.ip_interface(
        (interface_0.ip + number * interface_0.network.num_addresses, interface_0.network.prefixlen)
    )
