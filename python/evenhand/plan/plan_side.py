# SPDX-License-Identifier: Apache-2.0
"""Station 1, address plan: one side of a plan, and the blocks that its addresses are of."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from evenhand.plan.ranges import HostRange, Interface, IpVersion, Network
from evenhand.plan.sides import SideName

BENCHMARKING_BLOCK: dict[tuple[IpVersion, SideName], Network] = {
    (4, "left"): ipaddress.ip_network("198.18.0.0/16"),
    (4, "right"): ipaddress.ip_network("198.19.0.0/16"),
    (6, "left"): ipaddress.ip_network("2001:2::/49"),
    (6, "right"): ipaddress.ip_network("2001:2:0:8000::/49"),
}
"""Blocks of the two sides (SEED-03, SEED-04; RFC 5180 erratum 1752)."""

PRIVATE_BLOCK: Network = ipaddress.ip_network("10.0.0.0/8")
"""Addresses of IPv4 hosts behind a NAT (RFC 1918)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSide:
    """One side of the set-up: the link between tester and DUT, and the hosts on it or behind it."""

    name: SideName
    dut: tuple[Interface, ...]
    """Addresses and prefix lengths of the DUT's interface: one, or one for each network if the hosts are on
    the link. The tester resolves the first."""
    gateway: Interface | None
    """The tester's own interface, next hop of the DUT's routes to the hosts; None if the hosts are on the
    link (direct forms)."""
    host_range: HostRange
    routes: tuple[Network, ...]
    """Networks that the DUT routes to `gateway`; none in direct forms."""
    peers: HostRange | None = None
    """The addresses that hosts of the other side have on this one, where the DUT translates; None: their
    own. Where it keeps state, those that it may give them (the pool)."""
    added_octets: int = 0
    """How much larger frames are on this side than the frame size that is asked for. A translator makes them
    larger on one side."""

    @property
    def ip_version(self) -> IpVersion:
        return self.host_range.ip_version

    @property
    def is_direct(self) -> bool:
        """Whether the hosts are on the link, so that the DUT resolves each of them."""
        return self.gateway is None

    @property
    def host_networks(self) -> tuple[Network, ...]:
        """The networks that the hosts are in."""
        return tuple(interface.network for interface in self.dut) if self.is_direct else self.routes

    @property
    def dut_neighbors(self) -> int:
        """Neighbour entries that the DUT needs on this side (SEED-19, SEED-20)."""
        return self.host_range.address_count if self.is_direct else 1
