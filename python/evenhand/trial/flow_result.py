# SPDX-License-Identifier: Apache-2.0
"""Station 7, trial result: what one direction of a trial counted of one flow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evenhand.trial.contract_values import optional, whole


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowLatency:
    """Latency of the received frames of a flow; percentiles are at most 1.6 % too high. None where there is
    no such frame."""

    min_ns: float | None
    mean_ns: float | None
    max_ns: float | None
    p50_ns: float | None
    p99_ns: float | None
    p999_ns: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowResult:
    """What was counted of one flow, besides the counts of its class."""

    name: str
    loss_at_most: float | None
    """Its own limit; None: it is judged with all others without one."""
    duplicated_frames: int
    reordered_frames: int
    """Frames that came after a later one of the same flow."""
    late_frames: int
    remarked_frames: int
    """Received with another traffic class or flow label than the flow's."""
    latency: FlowLatency


def read_flow_result(document: Mapping[str, Any] | None) -> FlowResult | None:
    """ValueError, KeyError or TypeError if the document is outside the contract."""
    if document is None:
        return None
    latency = document["latency"]
    counts = ("duplicated_frames", "reordered_frames", "late_frames", "remarked_frames")
    times = ("min_ns", "mean_ns", "max_ns", "p50_ns", "p99_ns", "p999_ns")
    return FlowResult(
        name=str(document["name"]),
        loss_at_most=optional(document["loss_at_most"]),
        latency=FlowLatency(**{key: optional(latency[key]) for key in times}),
        **{key: whole(document, key) for key in counts},
    )
