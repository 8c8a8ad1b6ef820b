# SPDX-License-Identifier: Apache-2.0
"""Station 1: several flows at once: which frame of a direction belongs to which of them. A sequence that
repeats, so that all shares are exact, and so that the receiver knows the flow of every frame that is lost."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

from evenhand.base.errors import PlanError
from evenhand.base.units import format_ratio
from evenhand.plan.ranges import IpVersion
from evenhand.plan.stream import SMALLEST_FRAME

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """One of the flows of a plan; what it does not say of its frames, the plan does."""

    name: str
    share: int
    """Frames among as many as all shares are together."""
    dscp: int = 0
    flow_label: int = 0
    """In IPv6."""
    vlan_priority: int = 0
    """The priority in the VLAN tags of the side that sends."""
    source_port: int | None = None
    destination_port: int | None = None
    frame_size: int | None = None
    """Octets with the FCS and the tags of the side that sends; None: that of the trial."""
    loss_at_most: float | None = None
    """Its own largest loss ratio; None: it is judged by that of the trial, with all others without one."""

    def to_document(self) -> dict[str, Any]:
        """What it says, without what is as in every other frame."""
        fields = (
            "dscp",
            "flow_label",
            "vlan_priority",
            "source_port",
            "destination_port",
            "frame_size",
            "loss_at_most",
        )
        said = {key: getattr(self, key) for key in fields}
        kept = {
            key: value
            for key, value in said.items()
            if value is not None and (value != 0 or key == "loss_at_most")
        }
        return {"name": self.name, "share": self.share, **kept}

    @property
    def words(self) -> str:
        """`voice (DSCP 46, destination port 5060)`."""
        said = {
            "DSCP": self.dscp or None,
            "flow label": self.flow_label or None,
            "VLAN priority": self.vlan_priority or None,
            "source port": self.source_port,
            "destination port": self.destination_port,
        }
        parts = [f"{key} {value}" for key, value in said.items() if value is not None]
        if self.frame_size is not None:
            parts.append(f"{self.frame_size} octets")
        if self.loss_at_most is not None:
            parts.append(f"may lose at most {format_ratio(self.loss_at_most)}")
        return self.name + (f" ({', '.join(parts)})" if parts else "")


def is_flow_name(text: str) -> bool:
    """Whether a flow of a plan can be called so."""
    return re.fullmatch(FLOW_NAME, text) is not None


@lru_cache(maxsize=16)
def flow_cycle(shares: tuple[int, ...]) -> tuple[int, ...]:
    """Which flow each frame of a period is of, by its index: each as evenly spread as can be.

    Args:
        shares: The share of each flow, in lowest terms.
    """
    together = math.lcm(*shares)
    places = sorted(
        ((2 * n + 1) * (together // share), index) for index, share in enumerate(shares) for n in range(share)
    )
    return tuple(index for _, index in places)


def cycle_of(flows: Sequence[Flow]) -> tuple[int, ...]:
    return flow_cycle(tuple(flow.share for flow in flows))


def flow_octets(flows: Sequence[Flow], frame_size: int) -> tuple[int, ...]:
    """Frame sizes in the order of the sequence; a single one if all flows have the same."""
    sizes = [frame_size if flow.frame_size is None else flow.frame_size for flow in flows]
    return (sizes[0],) if len(set(sizes)) == 1 else tuple(sizes[index] for index in cycle_of(flows))


def flow_classes(flows: Sequence[Flow], frame_size: int) -> dict[str, Any]:
    """The engine's `mix`."""
    classes = []
    for flow in flows:
        said = flow.to_document()
        del said["share"]
        classes.append({**said, "frame_size": frame_size if flow.frame_size is None else flow.frame_size})
    return {"classes": classes, "cycle": list(cycle_of(flows))}


def flow_lines(flows: Sequence[Flow]) -> list[str]:
    """Sentences for below a result."""
    if not flows:
        return []
    period = sum(flow.share for flow in flows)
    parts = "; ".join(f"{flow.share} of {flow.words}" for flow in flows)
    return [f"Flows: of every {period} frames of a direction, {parts}."]


def has_limits(flows: Sequence[Flow]) -> bool:
    return any(flow.loss_at_most is not None for flow in flows)


def make_flows(asked: Sequence[Flow], shares: Sequence[Fraction], *, where: str = "flow") -> tuple[Flow, ...]:
    """The flows with these shares of all frames, in lowest terms.

    Args:
        asked: With any share.
        shares: In relation to each other.

    Raises:
        PlanError: More than 64, one named twice, or shares that no 65,536 frames have.
    """
    if len(asked) > MOST_FLOWS:
        raise PlanError(
            f"{len(asked)} flows",
            code="plan.too-many-flows",
            where=where,
            next_step=f"Use at most {MOST_FLOWS}.",
        )
    names = [flow.name for flow in asked]
    if (twice := next((name for name in names if names.count(name) > 1), None)) is not None:
        raise PlanError(
            f"two flows are called {twice!r}",
            code="plan.flow-named-twice",
            where=f"{where}.name",
            next_step="Give each a name of its own.",
        )
    unit = math.lcm(*(share.denominator for share in shares))
    counts = [int(share * unit) for share in shares]
    divisor = math.gcd(*counts)
    counts = [count // divisor for count in counts]
    if sum(counts) > LONGEST_CYCLE:
        raise PlanError(
            f"these shares are exact only among {sum(counts)} frames",
            code="plan.flow-shares",
            where=f"{where}.share",
            next_step=f"Use shares that are exact among at most {LONGEST_CYCLE}, such as 1 and 9.",
        )
    return tuple(replace(flow, share=count) for flow, count in zip(asked, counts, strict=True))


def check_flows(flows: Sequence[Flow], ip_version: IpVersion) -> None:
    """PlanError for what frames of this IP version cannot have."""
    for flow in flows:
        if flow.flow_label and ip_version == 4:
            raise PlanError(
                f"the flow {flow.name!r} has a flow label, and an IPv4 header has none",
                code="plan.flow-label-in-ipv4",
                where="flow.flow-label",
                next_step="Omit it, or use IPv6.",
            )
        smallest = SMALLEST_FRAME[ip_version]
        if flow.frame_size is not None and flow.frame_size < smallest:
            raise PlanError(
                f"the flow {flow.name!r} has frames of {flow.frame_size} octets",
                code="plan.flow-too-small",
                where="flow.frame-size",
                next_step=f"An IPv{ip_version} frame has at least {smallest}: headers, the tag and the FCS.",
            )
