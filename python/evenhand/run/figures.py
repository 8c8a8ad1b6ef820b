# SPDX-License-Identifier: Apache-2.0
"""Station 9: what documents of results say in addition to their one number."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from evenhand.procedure.registry import LATENCY

LEAST_FOR_WORST = 1000
"""Values from which on the 99.9th percentile is not their maximum."""
_DIRECTIONS = ("forward", "reverse")


def losses_of(result: Mapping[str, Any] | None) -> Mapping[str, float]:
    """What each direction lost at the throughput, as a share of what was offered in it. Empty if the file
    does not state it, or not soundly."""
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
    on. None if the file does not state it, or not soundly."""
    stated = (result or {}).get("sustainable_fps_per_direction")
    if isinstance(stated, bool) or not isinstance(stated, int | float):
        return None
    return float(stated) if 0 < stated < math.inf else None


def is_worst_the_maximum(result: Mapping[str, Any] | None) -> bool:
    """Whether the worst-case latency, the 99.9th percentile (R8219-09), is the highest delay that was
    measured: of fewer than a thousand tagged frames it is (RFC 2330, 11.3)."""
    goal = (result or {}).get("goal")
    if not isinstance(goal, Mapping) or goal.get("test") != LATENCY.name:
        return False
    tags = goal.get("tagged_frames")
    return isinstance(tags, int) and not isinstance(tags, bool) and 0 < tags < LEAST_FOR_WORST
