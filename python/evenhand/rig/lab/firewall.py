# SPDX-License-Identifier: Apache-2.0
"""A firewall in the DUT of a Linux lab: rules that each forwarded frame is held against, and none matches.
With enough of them the DUT is slower than a tester that has only one CPU."""

from __future__ import annotations

from collections.abc import Iterator

from evenhand.rig.lab.nft import set_rules

MOST_RULES = 10_000
_TABLE = "evenhand_firewall"
_FAMILIES = ("ip", "ip6")
_OCTETS = "@nh,96,32"
"""Octets 12 to 15 of the IP header: the source address of IPv4, and the second quarter of that of IPv6. A
whole address of IPv6 would be compared by another way of the kernel, which takes ten times as long: then the
curves of the two versions would say nothing of each other."""
_DOCUMENTATION = 0xC0000200
"""192.0.2.0, of a network for documentation (RFC 5737): no plan has its addresses, and none of IPv6 has that
in its second quarter."""


def start_firewall(rules: int) -> None:
    """Set so many rules for each IP version. Call inside the DUT's namespace.

    Raises:
        HostError: No nft, or the kernel refuses its rules.
    """
    set_rules(firewall_rules(rules), what="the firewall")


def firewall_rules(rules: int) -> str:
    """What nft reads. Each rule is of its own: nft makes no set of them. A rule costs the same with both IP
    versions."""
    return "\n".join(line for family in _FAMILIES for line in _table(family, rules))


def _table(family: str, rules: int) -> Iterator[str]:
    yield f"table {family} {_TABLE} {{"
    yield "  chain forward {"
    yield "    type filter hook forward priority 0; policy accept;"
    for number in range(rules):
        yield f"    {_OCTETS} {_DOCUMENTATION + 1 + number % 99:#x} counter drop"
    yield "  }"
    yield "}"
