# SPDX-License-Identifier: Apache-2.0
"""OTG: the header behind IP: UDP's, or TCP's or ICMP's as fields without state. What marks frames of a
flow: DSCP, ECN, flow label and VLAN priority."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from evenhand.exchange.otg_flow import choice_of
from evenhand.otg.patterns import LARGEST_PORT, Numbers, numbers_of
from evenhand.otg.refusals import other_keys
from evenhand.plan import IpVersion, Transport
from evenhand.plan.field_pattern import LONGEST_LIST

UDP_PORTS = ("src_port", "dst_port")
TRANSPORTS: Mapping[str, int] = {"udp": 0, "tcp": 0, "icmp": 4, "icmpv6": 6}
"""Headers behind IP, and the IP version that they belong to; 0: both."""
PROTOCOLS: Mapping[str, int] = {"udp": 17, "tcp": 6, "icmp": 1, "icmpv6": 58}
"""Their numbers in the IP header."""
_ECHOES: Mapping[int, str] = {4: "icmp", 6: "icmpv6"}
_FLAGS = ("ctl_fin", "ctl_syn", "ctl_rst", "ctl_psh", "ctl_ack", "ctl_urg", "ecn_echo", "ecn_cwr", "ecn_ns")
"""From the lowest bit on."""
_ECHO = ("identifier", "sequence_number")
_LARGEST_WORD = 0xFFFFFFFF
_TCP_WORDS = 5
"""A header of TCP without options."""


@dataclass(slots=True)
class ReadHeader:
    """What of it is the same in all frames, and what may differ."""

    transport: Transport | None = None
    """None: UDP's."""
    ports: dict[str, tuple[str, Mapping[str, Any]]] = field(default_factory=dict)
    """Place and pattern of the two numbers that are drawn as UDP ports, by their names in UDP: TCP's ports,
    ICMP's identifier and sequence number."""
    least: int = 1
    """The least that these may be."""


def read_header(
    kind: str, fields: Mapping[str, Any], at: str, version: IpVersion, errors: list[str]
) -> ReadHeader:
    """A header of `TRANSPORTS`; what of it cannot be sent is added to the errors.

    Args:
        fields: The header's, without its choice.
        at: Its place in the configuration.
    """
    if TRANSPORTS[kind] not in (0, version):
        errors.append(f"{at}: the IP header in front is IPv{version}'s: write {_ECHOES[version]}")
    errors += other_keys(fields, f"flows[].packet[].{kind}", at)
    if kind not in ("udp", "tcp"):
        return _read_echo(kind, fields.get("echo", {}), f"{at}.echo", version, errors)
    found = ReadHeader(ports={name: (f"{at}.{name}", fields.get(name, {})) for name in UDP_PORTS})
    if kind == "tcp":
        one = _OneValue(fields, at, errors)
        if one("data_offset", 15, _TCP_WORDS) not in (0, _TCP_WORDS):
            errors.append(f"{at}.data_offset: a header without options has {_TCP_WORDS} words")
        found.transport = Transport.of_tcp(
            sequence=one("seq_num", _LARGEST_WORD),
            acknowledgement=one("ack_num", _LARGEST_WORD),
            flags=sum(one(name, 1) << bit for bit, name in enumerate(_FLAGS)),
            window=one("window", LARGEST_PORT),
        )
    return found


def _read_echo(
    kind: str, echo: Mapping[str, Any], at: str, version: IpVersion, errors: list[str]
) -> ReadHeader:
    errors += other_keys(echo, f"flows[].packet[].{kind}.echo", at)
    request = Transport.of_echo(version).header[0]
    reply = Transport.of_echo(version, is_reply=True).header[0]
    one = _OneValue(echo, at, errors)
    if (of_type := one("type", 255, request)) not in (request, reply):
        errors.append(f"{at}.type: {of_type}: an echo is {request}, a request, or {reply}, a reply")
    if one("code", 255):
        errors.append(f"{at}.code: that of an echo is 0")
    ports = {port: (f"{at}.{name}", echo.get(name, {})) for port, name in zip(UDP_PORTS, _ECHO, strict=True)}
    return ReadHeader(transport=Transport.of_echo(version, is_reply=of_type == reply), ports=ports, least=0)


@dataclass(frozen=True, slots=True)
class _OneValue:
    """Fields that all frames have alike."""

    fields: Mapping[str, Any]
    at: str
    errors: list[str]

    def __call__(self, name: str, most: int, usual: int = 0) -> int:
        if name not in self.fields:
            return usual
        at = f"{self.at}.{name}"
        (number, *others) = numbers_of(self.fields[name], at, self.errors, most=most)
        if others:
            self.errors.append(f"{at}: one value can be sent")
        return number


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
