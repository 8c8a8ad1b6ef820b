# SPDX-License-Identifier: Apache-2.0
"""OTG: what marks the frames of one flow: DSCP, ECN, flow label and VLAN priority."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evenhand.exchange.otg_flow import choice_of
from evenhand.otg.patterns import Numbers, numbers_of
from evenhand.otg.refusals import other_keys
from evenhand.plan.field_pattern import LONGEST_LIST

MARKS: Mapping[str, tuple[str, ...]] = {
    "vlan": ("priority",),
    "ipv4": ("priority",),
    "ipv6": ("traffic_class", "flow_label"),
}
"""Fields that are read here, by their header."""
_TOS = {"precedence": 5, "delay": 4, "throughput": 3, "reliability": 2, "monetary": 1, "unused": 0}
"""The lowest bit of each part in the octet."""


@dataclass(slots=True)
class FlowMarks:
    """Those of one flow, in the order of its frames."""

    dscp: Numbers = (0,)
    ecn: Numbers = (0,)
    flow_label: Numbers = (0,)
    vlan_priority: Numbers | None = None
    """None: it has no VLAN header, and any that its side adds have 0."""

    @property
    def are_usual(self) -> bool:
        """Whether every test frame has them."""
        return not any(map(any, (self.dscp, self.ecn, self.flow_label, self.vlan_priority or ())))

    def read(self, kind: str, name: str, field: Mapping[str, Any], at: str, errors: list[str]) -> None:
        """A field of `MARKS`; what of it cannot be sent is added to the errors."""
        if kind == "vlan":
            self._read_vlan(field, at, errors)
        elif kind == "ipv4":
            self._set_octets(_octets_of_priority(field, at, errors))
        elif name == "flow_label":
            self.flow_label = numbers_of(field, at, errors, most=0xFFFFF)
        else:
            self._set_octets(numbers_of(field, at, errors, most=255))

    def _read_vlan(self, field: Mapping[str, Any], at: str, errors: list[str]) -> None:
        numbers = tuple(numbers_of(field, at, errors, most=7))
        if self.vlan_priority not in (None, numbers):
            errors.append(f"{at}: both tags of a frame have the same priority here")
        self.vlan_priority = numbers

    def _set_octets(self, octets: Numbers) -> None:
        self.dscp, self.ecn = ([octet >> 2 for octet in octets], [octet & 3 for octet in octets])
        if len({*self.ecn}) == 1:
            self.ecn = self.ecn[:1]
        if len({*self.dscp}) == 1:
            self.dscp = self.dscp[:1]


def _octets_of_priority(field: Mapping[str, Any], at: str, errors: list[str]) -> Numbers:
    """The octet of IPv4's priority, however it is written."""
    errors += other_keys(field, "flows[].packet[].ipv4.priority", at)
    choice = choice_of(field, "dscp")
    inner = field.get(choice, {})
    if choice == "raw":
        return numbers_of(inner, f"{at}.raw", errors, most=255)
    if choice not in ("tos", "dscp"):
        errors.append(f"{at}: {choice} is not known here")
        return (0,)
    errors += other_keys(inner, f"flows[].packet[].ipv4.priority.{choice}", f"{at}.{choice}")
    if choice == "dscp":
        ecn = numbers_of(inner.get("ecn", {}), f"{at}.dscp.ecn", errors, most=3)
        phb = numbers_of(inner.get("phb", {}), f"{at}.dscp.phb", errors, most=63)
        if (period := math.lcm(len(phb), len(ecn))) > LONGEST_LIST:
            errors.append(f"{at}.dscp: phb and ecn repeat after {period:,} frames, at most {LONGEST_LIST:,}")
            return (0,)
        return [phb[place % len(phb)] << 2 | ecn[place % len(ecn)] for place in range(period)]
    octet = 0
    for part, bit in _TOS.items():
        (value, *others) = numbers_of(
            inner.get(part, {}), f"{at}.tos.{part}", errors, most=7 if part == "precedence" else 1
        )
        errors += [f"{at}.tos.{part}: one value can be sent"] * bool(others)
        octet |= value << bit
    return (octet,)
