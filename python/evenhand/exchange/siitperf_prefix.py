# SPDX-License-Identifier: Apache-2.0
"""Exchange: the translation prefix that a siitperf.conf does not name, but that follows from its addresses
(RFC 6052)."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

from evenhand.base.errors import PlanError
from evenhand.plan import Address, make_mix
from evenhand.plan.translation import PREFIX_LENGTHS, embed, embedded_octets


def prefixes_between(behind: Address, host: Address) -> list[ipaddress.IPv6Network]:
    """Those behind which this IPv4 host has this IPv6 address."""
    assert isinstance(host, ipaddress.IPv4Address)
    prefixes = [ipaddress.IPv6Network((behind, length), strict=False) for length in PREFIX_LENGTHS]
    return [prefix for prefix in prefixes if embed(prefix, host) == behind]


def host_behind(prefix: ipaddress.IPv6Network, behind: Address) -> ipaddress.IPv4Address:
    """The IPv4 host that has this address behind the prefix."""
    return ipaddress.IPv4Address(bytes(behind.packed[octet] for octet in embedded_octets(prefix.prefixlen)))


def plan_behind(
    name: str, prefixes: Iterable[ipaddress.IPv6Network], *, beside: str | None = None
) -> tuple[str, str]:
    """The plan of this name with the first of these prefixes that it can have, and an empty text; or the name
    alone, and why it has none of them.

    Args:
        beside: The plan of native traffic that must be sent with it.
    """
    why = ""
    for prefix in prefixes:
        wanted = f"{name}@{prefix}"
        try:
            return make_mix(wanted if beside is None else f"{wanted}+{beside}").name, ""
        except PlanError as error:
            why = error.what
    return name, why
