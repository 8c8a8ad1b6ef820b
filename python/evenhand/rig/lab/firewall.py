# SPDX-License-Identifier: Apache-2.0
"""A firewall in the DUT of a Linux lab: rules that each forwarded frame is held against, and none matches.
With enough of them the DUT is slower than a tester that has only one CPU."""

from __future__ import annotations

from collections.abc import Iterator

from evenhand.rig.lab.nft import set_rules

MOST_RULES = 10_000
_TABLE = "evenhand_firewall"
_ADDRESSES = {"ip": "192.0.2.{}", "ip6": "2001:db8::{}"}
"""Addresses for documentation (RFC 5737, RFC 3849): no plan has them. The number may have two hexadecimal
digits."""


def start_firewall(rules: int) -> None:
    """Set so many rules for each IP version. Call inside the DUT's namespace.

    Raises:
        HostError: No nft, or the kernel refuses its rules.
    """
    set_rules(firewall_rules(rules), what="the firewall")


def firewall_rules(rules: int) -> str:
    """What nft reads. Each rule is of its own: nft makes no set of them."""
    return "\n".join(line for family in _ADDRESSES for line in _table(family, rules))


def _table(family: str, rules: int) -> Iterator[str]:
    yield f"table {family} {_TABLE} {{"
    yield "  chain forward {"
    yield "    type filter hook forward priority 0; policy accept;"
    for number in range(rules):
        yield f"    {family} saddr {_ADDRESSES[family].format(1 + number % 99)} counter drop"
    yield "  }"
    yield "}"
