# SPDX-License-Identifier: Apache-2.0
"""OTG: what marks the frames of one flow: DSCP, flow label and VLAN priority, one value of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evenhand.exchange.otg_flow import choice_of
from evenhand.otg.refusals import other_keys

MARKS: Mapping[str, tuple[str, ...]] = {
    "vlan": ("priority",),
    "ipv4": ("priority",),
    "ipv6": ("traffic_class", "flow_label"),
}
"""Fields that are read here, by their header."""
_LARGEST = {"traffic_class": 255, "flow_label": 0xFFFFF, "priority": 7}
_TOS = {"precedence": 5, "delay": 4, "throughput": 3, "reliability": 2, "monetary": 1, "unused": 0}
"""The lowest bit of each part in the octet."""


@dataclass(slots=True)
class FlowMarks:
    """Those of one flow."""

    dscp: int = 0
    flow_label: int = 0
    vlan_priority: int | None = None
    """None: it has no VLAN header, and any that its side adds have 0."""

    @property
    def are_usual(self) -> bool:
        """Whether every test frame has them."""
        return not (self.dscp or self.flow_label or self.vlan_priority)

    def read(self, kind: str, name: str, field: Mapping[str, Any], at: str, errors: list[str]) -> None:
        """A field of `MARKS`; what of it cannot be sent is added to the errors."""
        if kind == "vlan":
            self._read_vlan(field, at, errors)
        elif kind == "ipv4":
            self._set_octet(_octet_of_priority(field, at, errors), at, errors)
        elif name == "flow_label":
            self.flow_label = _value(field, _LARGEST[name], at, errors)
        else:
            self._set_octet(_value(field, _LARGEST[name], at, errors), at, errors)

    def _read_vlan(self, field: Mapping[str, Any], at: str, errors: list[str]) -> None:
        number = _value(field, _LARGEST["priority"], at, errors)
        if self.vlan_priority not in (None, number):
            errors.append(f"{at}: {number}, but the outer tag has {self.vlan_priority}: both have the same")
        self.vlan_priority = number

    def _set_octet(self, octet: int, at: str, errors: list[str]) -> None:
        if octet & 3:
            errors.append(f"{at}: the two lowest bits, ECN, are 0 in every test frame")
        self.dscp = octet >> 2


def _octet_of_priority(field: Mapping[str, Any], at: str, errors: list[str]) -> int:
    """The octet of IPv4's priority, however it is written."""
    errors += other_keys(field, "flows[].packet[].ipv4.priority", at)
    choice = choice_of(field, "dscp")
    inner = field.get(choice, {})
    if choice == "raw":
        return _value(inner, 255, f"{at}.raw", errors)
    if choice not in ("tos", "dscp"):
        errors.append(f"{at}: {choice} is not known here")
        return 0
    errors += other_keys(inner, f"flows[].packet[].ipv4.priority.{choice}", f"{at}.{choice}")
    if choice == "dscp":
        phb = _value(inner.get("phb", {}), 63, f"{at}.dscp.phb", errors)
        return phb << 2 | _value(inner.get("ecn", {}), 3, f"{at}.dscp.ecn", errors)
    return sum(
        _value(inner.get(part, {}), 7 if part == "precedence" else 1, f"{at}.tos.{part}", errors) << bit
        for part, bit in _TOS.items()
    )


def _value(field: Mapping[str, Any], largest: int, at: str, errors: list[str]) -> int:
    """The one value of a pattern; OTG's default is 0."""
    choice = choice_of(field, "value")
    number = field.get("value", 0) if choice == "value" else None
    if type(number) is not int or not 0 <= number <= largest:
        errors.append(f"{at}: one value from 0 to {largest:,} can be sent")
        return 0
    return number
