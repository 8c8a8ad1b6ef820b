# SPDX-License-Identifier: Apache-2.0
"""Testbed: the VLAN tags of a link: none, one of 802.1Q, or an outer one of 802.1ad and an inner one of
802.1Q."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evenhand.base.errors import RequestError
from evenhand.plan import SideCounts, SideName

MOST_TAGS = 2
LARGEST_VLAN = 4094
TAG_OCTETS = 4

Vlans = tuple[int, ...]
"""Outermost first."""
VlansOfSides = dict[SideName, Vlans]


def as_vlans(value: Any) -> Any:
    """`100` of a file as `(100,)`; what is neither a number nor a list is left to the caller's checks."""
    return (value,) if isinstance(value, int) and not isinstance(value, bool) else value


def parse_vlans(text: str, *, where: str) -> VlansOfSides:
    """`100` for both links, `100,200` for left and right, `200.100` for an outer and an inner tag, `none` for
    a link without.

    Raises:
        RequestError: It is not one of these, or no VLAN has this number.
    """
    sides = [_parse_side(part.strip(), text, where) for part in text.split(",")]
    if len(sides) > MOST_TAGS:
        raise _bad(text, where)
    return {"left": sides[0], "right": sides[-1]}


def tag_octets(vlans: Mapping[SideName, Vlans]) -> SideCounts:
    """Octets of the tags of each link; a side that is not named has none."""
    return SideCounts(TAG_OCTETS * len(vlans.get("left", ())), TAG_OCTETS * len(vlans.get("right", ())))


def show_vlans(vlans: Vlans) -> str:
    """`no VLAN tag`, `VLAN 100`, `VLAN 200 (802.1ad) and 100`."""
    if not vlans:
        return "no VLAN tag"
    return f"VLAN {vlans[0]}" if len(vlans) == 1 else f"VLAN {vlans[0]} (802.1ad) and {vlans[1]}"


_MOST_DIGITS = 4


def _parse_side(part: str, text: str, where: str) -> Vlans:
    if part == "none":
        return ()
    numbers = part.split(".")
    if len(numbers) > MOST_TAGS or not all(
        number.isdecimal() and len(number) <= _MOST_DIGITS and 1 <= int(number) <= LARGEST_VLAN
        for number in numbers
    ):
        raise _bad(text, where)
    return tuple(int(number) for number in numbers)


def _bad(text: str, where: str) -> RequestError:
    return RequestError(
        f"{text!r} is not a VLAN or a pair of VLANs",
        code="rig.not-a-vlan",
        where=where,
        next_step=f"Write 1 to {LARGEST_VLAN}, such as 100; two tags such as 200.100; or both"
        " links, such as 100,200 or 100,none.",
    )
