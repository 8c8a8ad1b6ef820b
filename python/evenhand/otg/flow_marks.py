# SPDX-License-Identifier: Apache-2.0
"""OTG: what marks the frames of one flow: DSCP, flow label and VLAN priority."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evenhand.exchange.otg_flow import choice_of
from evenhand.otg.patterns import Numbers, numbers_of
from evenhand.otg.refusals import other_keys

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
    flow_label: Numbers = (0,)
    vlan_priority: Numbers | None = None
    """None: it has no VLAN header, and any that its side adds have 0."""

    @property
    def are_usual(self) -> bool:
        """Whether every test frame has them."""
        return not any(any(each or ()) for each in (self.dscp, self.flow_label, self.vlan_priority))

    def read(self, kind: str, name: str, field: Mapping[str, Any], at: str, errors: list[str]) -> None:
        """A field of `MARKS`; what of it cannot be sent is added to the errors."""
        if kind == "vlan":
            self._read_vlan(field, at, errors)
        elif kind == "ipv4":
            self._set_octets(_octets_of_priority(field, at, errors), at, errors)
        elif name == "flow_label":
            self.flow_label = numbers_of(field, at, errors, most=0xFFFFF)
        else:
            self._set_octets(numbers_of(field, at, errors, most=255), at, errors)

    def _read_vlan(self, field: Mapping[str, Any], at: str, errors: list[str]) -> None:
        numbers = tuple(numbers_of(field, at, errors, most=7))
        if self.vlan_priority not in (None, numbers):
            errors.append(f"{at}: both tags of a frame have the same priority here")
        self.vlan_priority = numbers

    def _set_octets(self, octets: Numbers, at: str, errors: list[str]) -> None:
        if any(octet & 3 for octet in octets):
            errors.append(f"{at}: the two lowest bits, ECN, are 0 in every test frame")
        self.dscp = [octet >> 2 for octet in octets]


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
        (ecn, *others) = numbers_of(inner.get("ecn", {}), f"{at}.dscp.ecn", errors, most=3)
        errors += [f"{at}.dscp.ecn: one value can be sent"] * bool(others)
        return [phb << 2 | ecn for phb in numbers_of(inner.get("phb", {}), f"{at}.dscp.phb", errors, most=63)]
    octet = 0
    for part, bit in _TOS.items():
        (value, *others) = numbers_of(
            inner.get(part, {}), f"{at}.tos.{part}", errors, most=7 if part == "precedence" else 1
        )
        errors += [f"{at}.tos.{part}: one value can be sent"] * bool(others)
        octet |= value << bit
    return (octet,)
