# SPDX-License-Identifier: Apache-2.0
"""Station 1, address plan: a device that translates statefully (NAT44, NAT64, NAT66), and its connections."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Any, Literal

from evenhand.plan.ranges import Network, UdpRange
from evenhand.plan.translation import check_prefix

RFC9693_SOURCE_PORTS = UdpRange(first=10000, last=49999)
RFC9693_DESTINATION_PORTS = UdpRange(first=1, last=100)
"""40,000 x 100: the ranges of RFC 9693, 4.4, which a table of usual size can hold (R9693-04)."""
ANY_PORT = UdpRange(first=1, last=65535)
TupleOrder = Literal["pseudorandom", "increasing", "decreasing"]
"""Order in which the four tuples of a plan are given to the connections (R9693-05)."""
TUPLE_ORDERS: tuple[TupleOrder, ...] = ("pseudorandom", "increasing", "decreasing")
MAX_CONNECTIONS = 2**32 - 1
MAX_FOUR_TUPLES = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class Nat:
    """What the DUT has to be configured for (RFC 3022, RFC 6146): hosts of the left open connections, and the
    right knows them by addresses of a pool and by any UDP port."""

    inside: Network
    """The hosts of the left are in it."""
    pool: Network
    """What the DUT may translate them to; the plan's right side uses the first of these addresses."""
    prefix: ipaddress.IPv6Network | None = None
    """Prefix of a NAT64: behind it the IPv4 hosts have their addresses on the IPv6 side (RFC 6052)."""
    is_own_address: bool = False
    """The pool is the address of the DUT's own interface to the right (masquerade)."""

    def __post_init__(self) -> None:
        if self.prefix is not None:
            check_prefix(self.prefix, where="plan.nat")

    @property
    def title(self) -> str:
        """`NAT44`, `NAT64` or `NAT66`."""
        return f"NAT{self.inside.version}{self.pool.version}"

    def to_document(self) -> dict[str, Any]:
        return {
            "kind": self.title,
            "inside": str(self.inside),
            "pool": str(self.pool),
            "prefix": None if self.prefix is None else str(self.prefix),
        }
