# SPDX-License-Identifier: Apache-2.0
"""Station 9: the one number of a procedure, from its document."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from evenhand.series.campaign import ProcedureName

DELAYS: Mapping[str, tuple[str, ...]] = {
    "latency": ("typical", "latency"),
    "pdv": ("pdv",),
    "ipdv": ("ipdv_max",),
}
"""Names of the figure in the document of each of them; latency by RFC 8219, or by RFC 2544."""
LEAST_FOR_WORST = 1000
"""Values from which on the 99.9th percentile is not their maximum."""
_DIRECTIONS = ("forward", "reverse")
US_PER_S = 1e6
NS_PER_US = 1e3


def value_of(procedure: ProcedureName, result: Mapping[str, Any]) -> float | None:
    """In the unit of `FIGURES`; None if it ended without one. Of two directions the worse one counts.

    Args:
        result: As `to_document()` of the procedure's result gives it; also the shorter form that a search has
            in a run file.
    """
    match procedure:
        case "throughput":
            return _number(result.get("throughput_fps_per_direction"))
        case "loss":
            points = result.get("points") or [{}]
            return _number(points[0].get("loss_ratio"))
        case "back-to-back":
            return _number(result.get("average_frames", result.get("longest_burst_frames")))
        case "burst":
            # Of several sizes of bursts the first is the point's.
            interval_s = _number((result.get("intervals") or [result])[0].get("interval_s"))
            return None if interval_s is None else interval_s * US_PER_S
        case "recovery":
            return _worst(_number(figures.get("average_s")) for figures in _figures(result))
        case "latency" | "pdv" | "ipdv":
            names = DELAYS[procedure]
            found: list[Mapping[str, Any]] = [
                next((of[name] for name in names if of.get(name)), {}) for of in _figures(result)
            ]
            value_ns = _worst(_number(statistics.get("median_ns")) for statistics in found)
            return None if value_ns is None else value_ns / NS_PER_US


def losses_of(result: Mapping[str, Any] | None) -> Mapping[str, float]:
    """What each direction lost at the throughput, as a share of what was offered in it. Empty if the file
    does not tell, or not soundly."""
    stored = (result or {}).get("loss_by_direction")
    found = (
        {name: of.get("loss_ratio") for name, of in stored.items() if isinstance(of, Mapping)}
        if isinstance(stored, Mapping)
        else {}
    )
    return {
        name: float(ratio)
        for name in _DIRECTIONS
        if isinstance(ratio := found.get(name), int | float)
        and not isinstance(ratio, bool)
        and 0 <= ratio <= 1
    }


def sustainable_of(result: Mapping[str, Any] | None) -> float | None:
    """Per direction: what the DUT would sustain, if a queue of it was filling in what the throughput rests
    on. None if the file does not tell, or not soundly."""
    told = (result or {}).get("sustainable_fps_per_direction")
    if isinstance(told, bool) or not isinstance(told, int | float):
        return None
    return float(told) if 0 < told < math.inf else None


def is_worst_the_maximum(result: Mapping[str, Any] | None) -> bool:
    """Whether the worst-case latency, the 99.9th percentile (R8219-09), is the highest delay that was
    measured: of fewer than a thousand tagged frames it is (RFC 2330, 11.3)."""
    goal = (result or {}).get("goal")
    if not isinstance(goal, Mapping) or goal.get("test") != "latency":
        return False
    tags = goal.get("tagged_frames")
    return isinstance(tags, int) and not isinstance(tags, bool) and 0 < tags < LEAST_FOR_WORST


def _figures(result: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return list((result.get("figures") or {}).values())


def _worst(values: Any) -> float | None:
    """None if any direction has none."""
    found = list(values)
    return None if not found or None in found else max(found)


def _number(value: Any) -> float | None:
    return None if value is None else float(value)
