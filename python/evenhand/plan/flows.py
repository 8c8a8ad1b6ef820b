# SPDX-License-Identifier: Apache-2.0
"""Station 1: several flows at once: which frame of a direction belongs to which of them. A sequence that
repeats, so that all shares are exact, and so that the receiver knows the flow of every frame that is lost.

A flow may have the header of TCP or ICMP in place of UDP's, without any state, and octets of its own behind
the header, in front of the tag."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import repeat
from typing import Any, Literal

from evenhand.base.errors import PlanError
from evenhand.base.units import format_ratio
from evenhand.plan.field_pattern import FieldPattern
from evenhand.plan.flow_hosts import FlowHosts, FlowPrefixes, fit_hosts
from evenhand.plan.host_list import Hosts
from evenhand.plan.imix import in_drawn_order
from evenhand.plan.ranges import IpVersion
from evenhand.plan.sides import BOTH_DIRECTIONS, SIDES, Direction, SideName
from evenhand.plan.stream import SMALLEST_FRAME

UDP_OCTETS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Transport:
    """Ports are those of the flow, of ICMP its identifier and its sequence number; checksums are computed."""

    protocol: Literal["tcp", "icmp"]
    """icmp: ICMPv6 in IPv6."""
    header: bytes
    """20 octets of TCP, 8 of ICMP; 0 where each frame has its own values."""

    @classmethod
    def of_tcp(
        cls, *, sequence: int = 0, acknowledgement: int = 0, flags: int = 0, window: int = 0
    ) -> Transport:
        """A header without options.

        Args:
            flags: The nine bits from NS to FIN.
        """
        fields = (
            (0).to_bytes(4),
            sequence.to_bytes(4),
            acknowledgement.to_bytes(4),
            (5 << 12 | flags).to_bytes(2),
            window.to_bytes(2),
            (0).to_bytes(4),
        )
        return cls(protocol="tcp", header=b"".join(fields))

    @classmethod
    def of_echo(cls, version: IpVersion, *, is_reply: bool = False) -> Transport:
        """An echo request or reply."""
        kind = (0 if is_reply else 8) if version == 4 else 128 + is_reply
        return cls(protocol="icmp", header=bytes([kind, *bytes(7)]))

    @property
    def more_octets(self) -> int:
        """How much longer it is than UDP's header."""
        return len(self.header) - UDP_OCTETS

    @property
    def words(self) -> str:
        return {"tcp": "TCP", "icmp": "ICMP"}[self.protocol]

    def to_document(self) -> dict[str, Any]:
        """As the engine reads it (contract/request.schema.json)."""
        return {"protocol": self.protocol, "header": self.header.hex()}


MOST_PAYLOAD_OCTETS = 128
"""The longest payload of a flow."""
FLOW_NAME = r"^[A-Za-z0-9][A-Za-z0-9 ._+-]{0,39}$"
MOST_FLOWS = 64
LONGEST_CYCLE = 65_536
"""Frames among which shares are exact."""
DSCP_NAMES = {
    "CS0": 0,
    **{f"CS{precedence}": 8 * precedence for precedence in range(1, 8)},
    **{f"AF{group}{drop}": 8 * group + 2 * drop for group in range(1, 5) for drop in range(1, 4)},
    "EF": 46,
    "VA": 44,
    "LE": 1,
}
"""Per-hop behaviours and their code points (RFC 2474, RFC 2597, RFC 3246, RFC 5865, RFC 8622)."""
ECN_NAMES = {"NOT-ECT": 0, "ECT(1)": 1, "ECT(0)": 2, "CE": 3}
"""Code points of ECN (RFC 3168)."""

_MAY_BE_ZERO = ("loss_at_most", "source_port", "destination_port", "shuffle")
"""Keys whose 0 says something else than their absence."""
LOCK_STEP_FIELDS = (
    "left",
    "right",
    "source-port",
    "destination-port",
    "dscp",
    "flow-label",
    "vlan-priority",
    "vlan",
)
"""Fields that have patterns, as a plan file calls them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """One of the flows of a plan; what it does not say of its frames, the plan does."""

    name: str
    share: int
    """Frames among as many as all shares of a direction are together."""
    direction: Direction | None = None
    """The only direction in which it is sent; None: both."""
    dscp: int | FieldPattern = 0
    ecn: int = 0
    flow_label: int | FieldPattern = 0
    """In IPv6."""
    vlan_priority: int | FieldPattern = 0
    """The priority in the VLAN tags of the side that sends."""
    vlan: int | FieldPattern = 0
    """The VLAN in the innermost tag of the side that sends; 0: that of the side."""
    source_port: int | FieldPattern | None = None
    destination_port: int | FieldPattern | None = None
    left: FlowHosts | FlowPrefixes | None = None
    """Hosts of the left side; None: those of the plan."""
    right: FlowHosts | FlowPrefixes | None = None
    lock_step: tuple[str, ...] = ()
    """Those of `LOCK_STEP_FIELDS` whose values go together: the first of each, the second of each. All others
    are independent of each other."""
    frame_size: int | None = None
    """Octets with the FCS and the tags of the side that sends; None: that of the trial."""
    loss_at_most: float | None = None
    """Its own largest loss ratio; None: it is judged by that of the trial, with all others without one."""
    transport: Transport | None = None
    """The header in place of UDP's; None: UDP's."""
    payload: bytes = b""
    """Octets right behind the header, in front of the tag."""
    shuffle: int | None = None
    """A seed: flows with the same one exchange their places among the frames, in a pseudorandom order; None:
    it is evenly spread."""

    def to_document(self) -> dict[str, Any]:
        """What it says, without what is as in every other frame."""
        fields = (
            "dscp",
            "ecn",
            "flow_label",
            "vlan_priority",
            "vlan",
            "source_port",
            "destination_port",
            "frame_size",
            "loss_at_most",
            "shuffle",
        )
        said = {key: getattr(self, key) for key in fields}
        kept = {
            key: self._document_of(key, value) if isinstance(value, FieldPattern) else value
            for key, value in said.items()
            if value is not None and (value != 0 or key in _MAY_BE_ZERO)
        }
        if self.transport is not None:
            kept["transport"] = self.transport.to_document()
        if self.payload:
            kept["payload"] = self.payload.hex()
        hosts = {
            f"{side}_host": self._document_of(side, of_side)
            for side, of_side in (("left", self.left), ("right", self.right))
            if of_side is not None
        }
        direction = {} if self.direction is None else {"direction": self.direction}
        return {"name": self.name, "share": self.share, **direction, **kept, **hosts}

    def _document_of(self, key: str, pattern: FieldPattern | FlowHosts | FlowPrefixes) -> dict[str, Any]:
        in_lock_step = {"lock_step": True} if key.replace("_", "-") in self.lock_step else {}
        return {**pattern.to_document(), **in_lock_step}

    def pattern(self, key: str) -> FieldPattern | None:
        """That of one of `LOCK_STEP_FIELDS`; None for a single value."""
        value = getattr(self, key.replace("-", "_"))
        if isinstance(value, FlowHosts):
            return value.pattern
        return value if isinstance(value, FieldPattern) else None

    @property
    def more_octets(self) -> int:
        """By how much header and payload are longer than UDP's header."""
        return len(self.payload) + (self.transport.more_octets if self.transport else 0)

    @property
    def words(self) -> str:
        """`voice (DSCP 46, destination port 5060)`."""
        said = {
            "left hosts": self.left,
            "right hosts": self.right,
            "DSCP": self.dscp or None,
            "ECN": self.ecn or None,
            "flow label": self.flow_label or None,
            "VLAN priority": self.vlan_priority or None,
            "VLAN": self.vlan or None,
            "source port": self.source_port,
            "destination port": self.destination_port,
        }
        parts = [f"{key} {_words_of(value)}" for key, value in said.items() if value is not None]
        if self.transport is not None:
            parts.append(f"{self.transport.words} header")
        if self.payload:
            parts.append(f"payload of {len(self.payload)} octets")
        if self.lock_step:
            parts.append(f"{' and '.join(self.lock_step)} in lock-step")
        if self.frame_size is not None:
            parts.append(f"{self.frame_size} octets")
        if self.shuffle is not None:
            parts.append(f"order drawn with the seed {self.shuffle}")
        if self.loss_at_most is not None:
            parts.append(f"may lose at most {format_ratio(self.loss_at_most)}")
        return self.name + (f" ({', '.join(parts)})" if parts else "")


def _words_of(value: int | FieldPattern | FlowHosts | FlowPrefixes) -> str:
    if isinstance(value, FlowHosts | FlowPrefixes):
        return value.words
    return value.words() if isinstance(value, FieldPattern) else str(value)


def is_flow_name(text: str) -> bool:
    """Whether a flow of a plan can be called so."""
    return re.fullmatch(FLOW_NAME, text) is not None


@lru_cache(maxsize=16)
def flow_cycle(shares: tuple[int, ...], shuffles: tuple[int | None, ...] = ()) -> tuple[int, ...]:
    """Which flow each frame of a period is of, by its index: each as evenly spread as can be, and those that
    exchange their places together. The period is then as long as one can be, so that it seldom repeats.

    Args:
        shares: The share of each flow, in lowest terms.
        shuffles: The seed of each flow that exchanges its places with others; empty: none does.
    """
    spread: dict[tuple[int, int | None], list[int]] = {}
    for index in range(len(shares)):
        seed = shuffles[index] if shuffles else None
        spread.setdefault((index, None) if seed is None else (-1, seed), []).append(index)
    sums = [sum(shares[index] for index in indices) for indices in spread.values()]
    together = math.lcm(*sums)
    places = sorted(
        ((2 * n + 1) * (together // share), number) for number, share in enumerate(sums) for n in range(share)
    )
    is_drawn = any(seed is not None for _, seed in spread)
    turns = LONGEST_CYCLE // len(places) if is_drawn else 1
    each_next: list[Iterator[int]] = []
    for (index, seed), indices in spread.items():
        own = [index for index in indices for _ in range(shares[index] * turns)]
        each_next.append(repeat(index) if seed is None else iter(in_drawn_order(own, seed)))
    return tuple(next(each_next[number]) for _ in range(turns) for _, number in places)


def cycle_of(flows: Sequence[Flow]) -> tuple[int, ...]:
    return flow_cycle(tuple(flow.share for flow in flows), tuple(flow.shuffle for flow in flows))


def flows_in(flows: Sequence[Flow], direction: Direction) -> tuple[Flow, ...]:
    """Those that are sent in a direction, with their shares of its frames in lowest terms."""
    found = [flow for flow in flows if flow.direction in (None, direction)]
    divisor = math.gcd(*(flow.share for flow in found)) or 1
    return tuple(replace(flow, share=flow.share // divisor) for flow in found)


def check_flow_directions(flows: Sequence[Flow], directions: Sequence[Direction]) -> None:
    """PlanError for a direction in which none of the flows of a plan is sent."""
    without = next((each for each in directions if flows and not flows_in(flows, each)), None)
    if without is not None:
        other = "reverse" if without == "forward" else "forward"
        raise PlanError(
            f"no flow of the plan is sent in the {without} direction",
            code="plan.no-flow-of-direction",
            where="direction",
            next_step=f"Use --direction {other}, or give the plan a flow of that direction.",
        )


def flow_octets(flows: Sequence[Flow], frame_size: int) -> tuple[int, ...]:
    """Frame sizes in the order of the sequence of flows of one direction; a single one if all flows have the
    same."""
    sizes = [frame_size if flow.frame_size is None else flow.frame_size for flow in flows]
    return (sizes[0],) if len(set(sizes)) == 1 else tuple(sizes[index] for index in cycle_of(flows))


def flow_classes(flows: Sequence[Flow], frame_size: int) -> dict[str, Any]:
    """The engine's `mix`, for flows of one direction."""
    classes = []
    for flow in flows:
        said = flow.to_document()
        del said["share"]
        for key in ("direction", "shuffle"):
            said.pop(key, None)
        prefixes = ((side, getattr(flow, side)) for side in SIDES)
        said |= {f"{side}_host": of.to_request() for side, of in prefixes if isinstance(of, FlowPrefixes)}
        classes.append({**said, "frame_size": frame_size if flow.frame_size is None else flow.frame_size})
    return {"classes": classes, "cycle": list(cycle_of(flows))}


def flow_lines(flows: Sequence[Flow]) -> list[str]:
    """Sentences for below a result."""
    if all(flow.direction is None for flow in flows):
        return [_flow_line(flows, "of a direction")] if flows else []
    return [
        _flow_line(found, f"of the {direction} direction")
        for direction in BOTH_DIRECTIONS
        if (found := flows_in(flows, direction))
    ]


def _flow_line(flows: Sequence[Flow], which: str) -> str:
    period = len(cycle_of(flows))
    turns = period // sum(flow.share for flow in flows)
    parts = "; ".join(f"{flow.share * turns} of {flow.words}" for flow in flows)
    return f"Flows: of every {period} frames {which}, {parts}."


def fit_flows(flows: Sequence[Flow], ranges: Mapping[SideName, Hosts]) -> tuple[Flow, ...]:
    """The flows of a plan of which only some hosts are used.

    Args:
        ranges: The hosts of each side that are used. With a single one, a flow has that one.

    Raises:
        PlanError: A flow has hosts that are not used.
    """
    return tuple(_fit(flow, ranges) if flow.left or flow.right else flow for flow in flows)


def _fit(flow: Flow, ranges: Mapping[SideName, Hosts]) -> Flow:
    left, right = (fit_hosts(flow.name, side, getattr(flow, side), ranges[side]) for side in SIDES)
    fitted = replace(flow, left=left, right=right)
    lock_step = tuple(key for key in flow.lock_step if fitted.pattern(key) is not None)
    return replace(fitted, lock_step=lock_step if len(lock_step) > 1 else ())


def has_limits(flows: Sequence[Flow]) -> bool:
    return any(flow.loss_at_most is not None for flow in flows)


def make_flows(asked: Sequence[Flow], shares: Sequence[Fraction], *, where: str = "flow") -> tuple[Flow, ...]:
    """The flows with these shares of all frames, in lowest terms.

    Args:
        asked: With any share.
        shares: In relation to each other.

    Raises:
        PlanError: More than 64 in a direction, two of one name, or shares that no 65,536 frames have.
    """
    _check_names(asked, where)
    unit = math.lcm(*(share.denominator for share in shares))
    counts = [int(share * unit) for share in shares]
    divisor = math.gcd(*counts)
    flows = tuple(replace(flow, share=count // divisor) for flow, count in zip(asked, counts, strict=True))
    for direction in BOTH_DIRECTIONS:
        found = flows_in(flows, direction)
        if len(found) > MOST_FLOWS:
            raise PlanError(
                f"{len(found)} flows",
                code="plan.too-many-flows",
                where=where,
                next_step=f"Use at most {MOST_FLOWS} in a direction.",
            )
        if (period := sum(flow.share for flow in found)) > LONGEST_CYCLE:
            raise PlanError(
                f"these shares are exact only among {period} frames",
                code="plan.flow-shares",
                where=f"{where}.share",
                next_step=f"Use shares that are exact among at most {LONGEST_CYCLE}, such as 1 and 9.",
            )
    return flows


def _check_names(flows: Sequence[Flow], where: str) -> None:
    """Flows of one name are those of both directions, and judged together."""
    named: dict[str, Flow] = {}
    for flow in flows:
        same = named.setdefault(flow.name, flow)
        if same is flow:
            continue
        if {same.direction, flow.direction} != set(BOTH_DIRECTIONS) or same.loss_at_most != flow.loss_at_most:
            raise PlanError(
                f"two flows are called {flow.name!r}",
                code="plan.flow-named-twice",
                where=f"{where}.name",
                next_step="Give each a name of its own, or let one be forward, the other reverse, and both"
                " have one limit.",
            )
        named[flow.name] = replace(flow, direction=None)


def check_flows(flows: Sequence[Flow], ip_version: IpVersion) -> None:
    """PlanError for what frames of this IP version cannot have, and for fields not fit for lock-step."""
    for flow in flows:
        _check_lock_step(flow)
        if flow.flow_label and ip_version == 4:
            raise PlanError(
                f"the flow {flow.name!r} has a flow label, and an IPv4 header has none",
                code="plan.flow-label-in-ipv4",
                where="flow.flow-label",
                next_step="Omit it, or use IPv6.",
            )
        smallest = SMALLEST_FRAME[ip_version] + flow.more_octets
        if flow.frame_size is not None and flow.frame_size < smallest:
            raise PlanError(
                f"the flow {flow.name!r} has frames of {flow.frame_size} octets",
                code="plan.flow-too-small",
                where="flow.frame-size",
                next_step=f"An IPv{ip_version} frame has at least {smallest}: headers, payload, tag and FCS.",
            )


def _check_lock_step(flow: Flow) -> None:
    shapes = {}
    for key in flow.lock_step:
        if (pattern := flow.pattern(key)) is None:
            raise PlanError(
                f"the flow {flow.name!r} has no several values of {key} to be in lock-step",
                code="plan.lock-step",
                where="flow.lock-step",
                next_step=f"Give {key} a list or a range of single values, or omit it here.",
            )
        shapes[key] = pattern.shape
    if len(set(shapes.values())) > 1 or len(flow.lock_step) == 1:
        counts = ", ".join(f"{key} has {count} ({mode})" for key, (count, mode) in shapes.items())
        raise PlanError(
            f"the fields of the flow {flow.name!r} that are in lock-step do not go together: {counts}",
            code="plan.lock-step",
            where="flow.lock-step",
            next_step="Name at least two fields with as many values, chosen in the same way.",
        )
