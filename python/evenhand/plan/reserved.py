# SPDX-License-Identifier: Apache-2.0
"""Station 1, address plan: which addresses are reserved for benchmarking, and what of a plan is not."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from evenhand.plan.host_list import HostList, Hosts
from evenhand.plan.prefixes import WIDTH, Addresses
from evenhand.plan.ranges import Address, Network
from evenhand.plan.sides import PlanSide, SideName

RESERVED: tuple[Network, ...] = tuple(map(ipaddress.ip_network, ("198.18.0.0/15", "2001:2::/48")))
"""For the hosts of a benchmark (RFC 2544 C.2.2, RFC 5180 section 8, RFC 6815)."""
OF_LINKS: tuple[Network, ...] = (
    *RESERVED,
    *map(ipaddress.ip_network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")),
)
"""For links between tester and DUT also what no router forwards to the Internet (RFC 1918, RFC 4193)."""


class _Span(NamedTuple):
    """Addresses that ascend: a side's hosts, or a link of it."""

    side: SideName
    first: Address
    last: Address
    reserved: Sequence[Network]
    of_side: Hosts | None
    """The side's hosts, if it is they."""

    @property
    def text(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first} .. {self.last}"


def outside_words(sides: Iterable[PlanSide]) -> list[str]:
    """What of these sides' addresses is not reserved for benchmarking: `16.0.0.1 .. 16.9.255.254 (right)`;
    empty if all of it is."""
    return [
        f"{span.text} ({span.side})"
        for span in _spans(sides)
        if not all(any(end in network for network in span.reserved) for end in (span.first, span.last))
    ]


def not_named(sides: Iterable[PlanSide], named: Sequence[Network]) -> str | None:
    """The first addresses that are neither reserved for benchmarking nor in one of these networks; None if
    there are none."""
    for span in _spans(sides):
        known = (*span.reserved, *named)
        if any(span.first in network and span.last in network for network in known):
            continue
        if not isinstance(span.of_side, HostList):
            return span.text
        found = _first_outside(span.of_side, known)
        if found is not None:
            return found
    return None


def _spans(sides: Iterable[PlanSide]) -> Iterator[_Span]:
    for side in sides:
        own = side.host_range
        yield _Span(side.name, own.first_address, own.last_address, RESERVED, own)
        for interface in side.dut:
            link = interface.network
            yield _Span(side.name, link.network_address, link.broadcast_address, OF_LINKS, None)


def _first_outside(listed: HostList, known: Iterable[Network]) -> str | None:
    """The first entry that is in none of the networks."""
    first, last = listed.bounds()
    is_known = first.is_before(first)  # none
    for network in known:
        if network.version == listed.version:
            begin, end = map(Addresses.of, (network.network_address, network.broadcast_address))
            is_known |= ~first.is_before(begin) & ~end.is_before(last)
    unknown = (~is_known).nonzero()[0]
    if not len(unknown):
        return None
    octets = WIDTH[listed.version] // 8
    ends = (each.number(int(unknown[0])).to_bytes(octets, "big") for each in (first, last))
    return " .. ".join(str(ipaddress.ip_address(end)) for end in ends)
