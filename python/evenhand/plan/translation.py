# SPDX-License-Identifier: Apache-2.0
"""Station 1, address plan: how a stateless translator turns the addresses of one IP version into those of the
other."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Any, Literal

from evenhand.base.errors import PlanError
from evenhand.plan.ranges import Network, UdpRange

PREFIX_LENGTHS = (32, 40, 48, 56, 64, 96)
"""RFC 6052, 2.2."""
_ZERO_OCTET = 8
"""Bits 64 to 71 of an address with an IPv4 address in it."""
_NO_PREFIXES = (
    (ipaddress.IPv6Network("64:ff9b::/96"), "is not for hosts of the benchmarking block (RFC 6052, 3.1)"),
    (ipaddress.IPv6Network("::/32"), "has addresses that no host on a link has (RFC 4291, 2.5)"),
    (ipaddress.IPv6Network("fe80::/10"), "has addresses of links alone, which are not forwarded"),
    (ipaddress.IPv6Network("ff00::/8"), "has multicast addresses"),
)
"""Behind which no translator has benchmarking hosts, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Translation:
    """What the DUT has to be configured for (RFC 7915)."""

    prefix: ipaddress.IPv6Network
    """Behind it the IPv4 hosts have their addresses on the IPv6 side (RFC 6052)."""
    ipv6_hosts: ipaddress.IPv6Network
    """The hosts of the IPv6 side."""
    ipv6_hosts_as_ipv4: ipaddress.IPv4Network
    """The same hosts as the IPv4 side knows them: bit for bit behind the prefix (RFC 7757), or, where
    `ipv6_hosts` is what lies behind `prefix` of them, as RFC 6052 says without a mapping."""

    def __post_init__(self) -> None:
        check_prefix(self.prefix, where="plan.translation")
        if self.ipv6_hosts.prefixlen != self.ipv6_hosts_as_ipv4.prefixlen + 96 and self.needs_mapping:
            raise PlanError(
                f"{self.ipv6_hosts} and {self.ipv6_hosts_as_ipv4} have different numbers of hosts",
                code="plan.host-counts-differ",
                where="plan.translation",
                next_step="Leave as many bits behind both prefixes.",
            )

    @property
    def needs_mapping(self) -> bool:
        """Whether a translator needs more than the prefix (an EAMT)."""
        return self.ipv6_hosts != network_behind(self.prefix, self.ipv6_hosts_as_ipv4)

    def embed(self, address: ipaddress.IPv4Address) -> ipaddress.IPv6Address:
        """The IPv6 address of an IPv4 host (RFC 6052, 2.2)."""
        return embed(self.prefix, address)

    def to_document(self) -> dict[str, Any]:
        return {
            "prefix": str(self.prefix),
            "ipv6_hosts": str(self.ipv6_hosts),
            "ipv6_hosts_as_ipv4": str(self.ipv6_hosts_as_ipv4),
            "needs_mapping": self.needs_mapping,
        }


def check_prefix(prefix: ipaddress.IPv6Network, *, where: str) -> None:
    """PlanError if no address can be embedded behind it as RFC 6052 says."""
    if prefix.prefixlen not in PREFIX_LENGTHS:
        raise PlanError(
            f"the translation prefix {prefix} has {prefix.prefixlen} bits",
            code="plan.wrong-prefix-length",
            where=where,
            next_step=f"Use one of {', '.join(map(str, PREFIX_LENGTHS[:-1]))} or {PREFIX_LENGTHS[-1]} bits"
            " (RFC 6052, 2.2).",
        )
    if prefix.network_address.packed[_ZERO_OCTET]:
        raise PlanError(
            f"bits 64 to 71 of the translation prefix {prefix} are not zero",
            code="plan.prefix-bits-not-zero",
            where=where,
            next_step="Use a prefix in which they are (RFC 6052, 2.2).",
        )
    for network, why in _NO_PREFIXES:
        if prefix.overlaps(network):
            raise PlanError(
                f"the translation prefix {prefix} {why}",
                code="plan.reserved-prefix",
                where=where,
                next_step="Use one of your own, or of 2001:db8::/32, which is for examples.",
            )


def embedded_octets(prefix_length: int) -> tuple[int, ...]:
    """Where the four octets of an IPv4 address are behind a prefix of one of PREFIX_LENGTHS, in bits (RFC
    6052, 2.2)."""
    first = prefix_length // 8
    return tuple([octet for octet in range(first, first + 5) if octet != _ZERO_OCTET][:4])


def embed(prefix: ipaddress.IPv6Network, address: ipaddress.IPv4Address) -> ipaddress.IPv6Address:
    """The IPv4 address behind a prefix of one of PREFIX_LENGTHS (RFC 6052, 2.2)."""
    octets = bytearray(prefix.network_address.packed)
    for at, octet in zip(embedded_octets(prefix.prefixlen), address.packed, strict=True):
        octets[at] = octet
    return ipaddress.IPv6Address(bytes(octets))


def network_behind(prefix: ipaddress.IPv6Network, network: ipaddress.IPv4Network) -> ipaddress.IPv6Network:
    """All IPv6 addresses that contain an address of this network: octet 8 counts as one of its bits."""
    octets = embedded_octets(prefix.prefixlen)
    whole, rest = divmod(network.prefixlen, 8)
    length = 8 * octets[whole] + rest if whole < len(octets) else 8 * octets[-1] + 8
    if not rest and whole:  # nothing of the octet in which it would go on
        length = 8 * octets[whole - 1] + 8
    return ipaddress.IPv6Network((embed(prefix, network.network_address), length))


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
