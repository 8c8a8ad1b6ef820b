# SPDX-License-Identifier: Apache-2.0
"""Station 1, address plan: the sides of a set-up, the directions between them, and counts per side."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from evenhand.base.units import format_count
from evenhand.plan.host_list import Hosts
from evenhand.plan.prefixes import PrefixSet
from evenhand.plan.ranges import HostRange, Interface, IpVersion, Network

SideName = Literal["left", "right"]
Direction = Literal["forward", "reverse"]
SIDES: tuple[SideName, SideName] = ("left", "right")
BOTH_DIRECTIONS: tuple[Direction, ...] = ("forward", "reverse")


def sending_side(direction: Direction) -> SideName:
    """The side from which the tester sends this direction."""
    return "left" if direction == "forward" else "right"


def receiving_side(direction: Direction) -> SideName:
    """The side on which the frames of this direction arrive at the tester."""
    return "right" if direction == "forward" else "left"


class SideCounts(NamedTuple):
    """A count for each side: hosts of each network, networks, addresses, octets of tags. Equal to, and read
    like, a tuple of two numbers."""

    left: int
    right: int

    def of(self, side: SideName) -> int:
        """The count of this side."""
        return self.left if side == "left" else self.right

    @classmethod
    def largest(cls, all_counts: Iterable[SideCounts]) -> SideCounts:
        """The largest count of each side; ValueError if there are none."""
        return cls(*(max(counts) for counts in zip(*all_counts, strict=True)))

    def times(self, others: tuple[int, int]) -> SideCounts:
        """Side by side: the hosts of each network times the networks are the addresses."""
        return SideCounts(self.left * others[0], self.right * others[1])

    @property
    def written(self) -> str:
        """The counts as an option or a key of a file has them: `65534`, or `65534,253` where the sides
        differ."""
        return str(self.left) if self.left == self.right else f"{self.left},{self.right}"

    def __str__(self) -> str:
        """`65,534 x 253`."""
        return f"{format_count(self.left)} x {format_count(self.right)}"

    def to_document(self) -> dict[str, int]:
        """`{"left": 10, "right": 20}`."""
        return self._asdict()


ONE_EACH = SideCounts(1, 1)
"""One network on each side, or one host: a single address pair."""
NO_TAGS = SideCounts(0, 0)
"""Octets of VLAN tags where no frame has any."""


BENCHMARKING_BLOCK: dict[tuple[IpVersion, SideName], Network] = {
    (4, "left"): ipaddress.ip_network("198.18.0.0/16"),
    (4, "right"): ipaddress.ip_network("198.19.0.0/16"),
    (6, "left"): ipaddress.ip_network("2001:2::/49"),
    (6, "right"): ipaddress.ip_network("2001:2:0:8000::/49"),
}
"""Blocks of the two sides (SEED-03, SEED-04; RFC 5180 erratum 1752)."""

PRIVATE_BLOCK: Network = ipaddress.ip_network("10.0.0.0/8")
"""Addresses of IPv4 hosts behind a NAT (RFC 1918)."""


MOST_ROUTE_OBJECTS = 4096
"""Routes up to which they are listed one by one, also where they are a set of prefixes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSide:
    """One side of the set-up: the link between tester and DUT, and the hosts on it or behind it."""

    name: SideName
    dut: tuple[Interface, ...]
    """Addresses and prefix lengths of the DUT's interface: one, or one for each network if the hosts are on
    the link. The tester resolves the first."""
    gateway: Interface | None
    """The tester's own interface, next hop of the DUT's routes to the hosts; None if the hosts are on the
    link (direct plans)."""
    host_range: Hosts
    routes: tuple[Network, ...]
    """Networks that the DUT routes to `gateway`; none in direct plans. The `prefixes` are among them, if
    there are at most MOST_ROUTE_OBJECTS."""
    peers: HostRange | None = None
    """The addresses that hosts of the other side have on this one, where the DUT translates; None: their
    own. Where it keeps state, those that it may give them (the pool)."""
    added_octets: int = 0
    """How much larger frames are on this side than the frame size that is asked for. A translator makes them
    larger on one side."""
    prefixes: PrefixSet | None = None
    """What the DUT routes to `gateway`, where hosts are those of a list of prefixes; None: `routes` say all.
    """

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
    def route_count(self) -> int:
        """How many networks the DUT routes to `gateway`."""
        return len(self.routes) if self.prefixes is None else self.prefixes.count

    @property
    def dut_neighbors(self) -> int:
        """Neighbour entries that the DUT needs on this side (SEED-19, SEED-20)."""
        return self.host_range.address_count if self.is_direct else 1
