# SPDX-License-Identifier: Apache-2.0
"""OTG: the fields of the frames of a flow: the numbers of a field in the order of the frames, whatever
pattern they are written as; the header behind IP: UDP's, or TCP's or ICMP's as fields without state; what
marks frames: DSCP, ECN, flow label and VLAN priority; and their sizes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Any

from evenhand.base.errors import EvenhandError
from evenhand.exchange.otg_flow import choice_of
from evenhand.otg.refusals import other_keys
from evenhand.plan import FieldPattern, FrameSize, Imix, IpVersion, Mode, Transport, is_weighted, parse_imix
from evenhand.plan.field_pattern import LONGEST_LIST

LARGEST_PORT = 65535
Numbers = Sequence[int]
"""Frame k of a flow has number k, again from the first after the last; never empty."""


def numbers_of(
    field: Mapping[str, Any], at: str, errors: list[str], *, least: int = 0, most: int, default: int = 0
) -> Numbers:
    """Those of a value, of values, or of an increment or decrement with any step.

    Args:
        default: OTG's own number, where the field has none.
        errors: What cannot be sent is added; the numbers are then one that can.
    """
    choice = choice_of(field, "value")
    inner: Any = field.get(choice, default if choice == "value" else {})
    found: Numbers = ()
    if choice == "value":
        found = (inner,)
    elif choice == "values":
        found = tuple(inner or (default,))
    elif choice in ("increment", "decrement"):
        start, step, count = (int(inner.get(key, usual)) for key, usual in (("start", default), *_ONE))
        rise = step if choice == "increment" else -step
        found = range(start, start + rise * count, rise) if rise and count > 1 else (start,)
    else:
        errors.append(f"{at}: {choice}: only value, values, increment and decrement can be sent here")
        return (least,)
    if len(found) > LONGEST_LIST and not isinstance(found, range):
        errors.append(f"{at}: {len(found):,} values, at most {LONGEST_LIST:,}")
        return (least,)
    ends = (found[0], found[-1]) if isinstance(found, range) else found
    if wrong := [number for number in ends if type(number) is not int or not least <= number <= most]:
        missing = ", OTG's default," if not field else ""
        errors.append(f"{at}: {wrong[0]}{missing} is not from {least:,} to {most:,}, which can be sent")
        return (least,)
    return found


_ONE = (("step", 1), ("count", 1))


def is_side_by_side(numbers: Numbers) -> bool:
    """Whether each is one above or one below the last throughout, as a range of a plan has them."""
    if isinstance(numbers, range):
        return abs(numbers.step) == 1
    steps = {b - a for a, b in pairwise(numbers)}
    return steps in (set(), {1}, {-1})


def as_pattern(numbers: Numbers) -> dict[str, Any]:
    """Numbers that lie side by side, as OTG writes them."""
    if len(numbers) == 1:
        return {"choice": "value", "value": numbers[0]}
    choice = "increment" if numbers[1] > numbers[0] else "decrement"
    return {"choice": choice, choice: {"start": numbers[0], "step": 1, "count": len(numbers)}}


def as_field(numbers: Numbers) -> int | FieldPattern:
    """The same for a flow of a plan: one number, or one after the other with the flow's frames."""
    if len(numbers) == 1:
        return numbers[0]
    steps = {b - a for a, b in pairwise(numbers)}
    step = numbers[1] - numbers[0]
    if len(steps) > 1 or step == 0:
        return FieldPattern(values=tuple(numbers), mode="increment")
    mode: Mode = "increment" if step > 0 else "decrement"
    return FieldPattern(first=min(numbers[0], numbers[-1]), count=len(numbers), step=abs(step), mode=mode)


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


IMIX = "64:7,570:4,1518:1"
"""That of OTG's name."""
MOST_SIZES = 64
"""How many sizes the frames of a port have at most."""
_ENDS = {"increment": ("start", "end"), "random": ("min", "max")}
_USUAL_ENDS = (64, 1518)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Octets with the FCS."""

    octets: Sequence[int] = (64,)
    """In turn: in the order of the frames. Drawn: all from the least to the largest. In shares: each once."""
    shares: tuple[int, ...] = ()
    """Those of `octets`; empty: all are equal."""
    is_drawn: bool = False
    imix: Imix | None = None
    """The same for frames that are alike in all else."""

    @property
    def frame_size(self) -> FrameSize:
        """What frames have that are no flows of a plan."""
        return self.octets[0] if self.imix is None else self.imix

    @property
    def are_in_turn(self) -> bool:
        return len(self.octets) > 1 and not self.is_drawn and not self.shares

    @property
    def least(self) -> int:
        return self.octets[0] if self.is_drawn else min(self.octets)

    @property
    def mean(self) -> Fraction:
        if self.is_drawn:
            return Fraction(self.octets[0] + self.octets[-1], 2)
        weights = self.shares or (1,) * len(self.octets)
        octets = sum(size * weight for size, weight in zip(self.octets, weights, strict=True))
        return Fraction(octets, sum(weights))

    def counted(self, most: int) -> tuple[tuple[int, int], ...]:
        """Sizes with their shares. If more are drawn from than can be sent, these are an even number from the
        least to the largest, as far from each other as whole octets allow: their mean is that of all.

        Args:
            most: Drawn sizes that can be sent, at least 2.
        """
        count = len(self.octets)
        if self.is_drawn and count > most:
            # An odd number of gaps: no size lies in the middle between two octets, so all are rounded alike
            # from both ends.
            gaps, span = most - most % 2 - 1, self.octets[-1] - self.octets[0]
            sizes = (self.octets[0] + (2 * n * span + gaps) // (2 * gaps) for n in range(gaps + 1))
            return tuple((size, 1) for size in sizes)
        return tuple(zip(self.octets, self.shares or (1,) * count, strict=True))


def read_sizes(size: Mapping[str, Any] | None, at: str, errors: list[str]) -> Sizes:
    """The sizes of a flow; what cannot be sent is added to the errors.

    Args:
        at: The flow's place in the configuration.
    """
    choice, given = choice_of(size, "fixed"), size or {}
    inner = given.get(choice, {})
    if choice == "fixed":
        return Sizes(octets=(int(given.get("fixed", 64)),))
    if choice in _ENDS:
        errors += other_keys(inner, f"flows[].size.{choice}", f"{at}.size.{choice}")
        start, end = (
            int(inner.get(key, usual)) for key, usual in zip(_ENDS[choice], _USUAL_ENDS, strict=True)
        )
        found = range(start, end + 1, max(int(inner.get("step", 1)), 1))
        if not found:
            errors.append(f"{at}.size.{choice}: no size is from {start} to {end}")
            return Sizes()
        is_drawn = choice == "random" and len(found) > 1
        if len(found) > MOST_SIZES and not is_drawn:
            errors.append(f"{at}.size: {len(found):,} sizes in turn, at most {MOST_SIZES}")
            return Sizes()
        return Sizes(octets=found, is_drawn=is_drawn)
    if choice != "weight_pairs":
        errors.append(f"{at}.size: {choice}: sizes are fixed, increment, random or weight_pairs")
        return Sizes()
    return _read_weights(inner, at, errors)


def _read_weights(pairs: Mapping[str, Any], at: str, errors: list[str]) -> Sizes:
    if choice_of(pairs, "predefined") == "predefined":
        name = pairs.get("predefined", "unspecified")
        if name != "imix":
            errors.append(f"{at}.size: weight_pairs.predefined {name}: write its sizes and weights as custom")
            return Sizes()
        written = IMIX
    else:
        weights = [(each.get("size", 64), float(each.get("weight", 1))) for each in pairs.get("custom", [])]
        if not all(weight.is_integer() for _, weight in weights):
            errors.append(f"{at}.size: weight_pairs.custom: weights are whole numbers here")
            return Sizes()
        written = ",".join(f"{size}:{weight:.0f}" for size, weight in weights)
    try:
        if not is_weighted(written):
            return Sizes(octets=(int(written.split(":")[0]),))
        imix = parse_imix(written, where="size")
    except (EvenhandError, ValueError) as error:
        errors.append(f"{at}.size: weight_pairs: {error}")
        return Sizes()
    counts = Counter(imix.octets)
    return Sizes(octets=tuple(counts), shares=tuple(counts.values()), imix=imix)
