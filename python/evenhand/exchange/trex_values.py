# SPDX-License-Identifier: Apache-2.0
"""Exchange: what a TRex profile is made of: packets, variables, modes and streams, as values of
`trex_profile`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

HEADER_OCTETS: Mapping[str, int] = {
    "Ether": 14,
    "Dot1Q": 4,
    "IP": 20,
    "IPv6": 40,
    "UDP": 8,
    "TCP": 20,
    "ICMP": 8,
    "Raw": 0,
}
"""Layers of scapy that are understood."""
IGNORED = ("STLVmFixIpv4", "STLVmFixChecksumHw", "STLFlowStats", "STLFlowLatencyStats")
"""Every frame here has right checksums, and is counted and timed."""
MOST_PADDING = 1 << 16


class ProfileError(Exception):
    """Something in a profile that is not understood."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(what)
        self.line, self.what = line, what


@dataclass(frozen=True, slots=True)
class Layer:
    """`IP(src="16.0.0.1")`."""

    kind: str
    fields: Mapping[str, Any]
    line: int


@dataclass(frozen=True, slots=True)
class Packet:
    """Layers, and octets behind them."""

    layers: tuple[Layer, ...]
    padding: int = 0

    @property
    def octets(self) -> int:
        """Without FCS, as Python's `len` of it."""
        return sum(HEADER_OCTETS[layer.kind] for layer in self.layers) + self.padding

    def over(self, other: object, line: int) -> Packet:
        """What `/` makes of both."""
        if isinstance(other, Packet):
            return Packet(self.layers + other.layers, self.padding + other.padding)
        if isinstance(other, str | bytes) and len(other) <= MOST_PADDING:
            return Packet(self.layers, self.padding + len(other))
        raise ProfileError(line, "only packets and texts can follow a packet")


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowVar:
    """A variable of the field engine."""

    name: str
    op: str
    first: int
    last: int
    step: int
    octets: int
    line: int
    values: tuple[int, ...] = ()
    """A list of values, one after the other, in place of a range."""
    notes: tuple[tuple[str, str], ...] = ()
    """Arguments that are not carried over, and what is sent instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """Where a variable goes."""

    name: str
    place: str
    """`IP.src`."""
    fixup: int
    line: int


@dataclass(slots=True)
class FieldEngine:
    """Variables and writes, in their order."""

    variables: dict[str, FlowVar] = field(default_factory=dict)
    writes: list[Write] = field(default_factory=list)

    def add(self, part: object, line: int) -> None:
        match part:
            case FlowVar():
                self.variables[part.name] = part
            case Write():
                self.writes.append(part)
            case FieldEngine():
                self.variables |= part.variables
                self.writes += part.writes
            case list() | tuple():
                for each in part:
                    self.add(each, line)
            case None:
                pass
            case _:
                raise ProfileError(line, f"{type(part).__name__} is no part of a field engine")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode:
    """`STLTXCont(pps=10)`."""

    kind: str
    rate: str
    """`pps`, `bps_L1`, `bps_L2` or `percentage`."""
    value: float
    packets: int | None
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TrexStream:
    """`STLStream(...)`."""

    packet: Packet
    engine: FieldEngine
    mode: Mode
    line: int
    sizes: tuple[tuple[int, int], ...] = ()
    """Octets without FCS and frames per second of streams that differ in these alone; none if it is one."""
    extras: tuple[str, ...] = ()
    """Its arguments that have no part in what is sent here, or are not understood."""
