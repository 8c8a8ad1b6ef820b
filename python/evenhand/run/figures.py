# SPDX-License-Identifier: Apache-2.0
"""Station 9: what documents of results say in addition to their one number."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from evenhand.procedure.registry import LATENCY
from evenhand.run.campaign_record import PointRecord, Repetition
from evenhand.trial import TIME_LEFT_OUT, TimeLeftOut, read_time_left_out, show_share

__all__ = [
    "LEAST_FOR_WORST",
    "TIME_LEFT_OUT",
    "TimeLeftOut",
    "is_worst_the_maximum",
    "losses_of",
    "show_share",
    "stated_time_left_out",
    "sustainable_of",
    "time_left_out_at",
    "time_left_out_of",
]
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


def time_left_out_of(repetition: Repetition) -> TimeLeftOut | None:
    """How much of the time of its trials was not judged: of what it was asked for, not of a search for the
    tester's own ceiling. Where the trials were not read, as its result states it. None if no trial was judged
    by its clean time."""
    trials = [
        trial.result for search in repetition.searches if search.is_measurement for trial in search.trials
    ]
    return TimeLeftOut.of(trials) if trials else stated_time_left_out(repetition.result)


def stated_time_left_out(result: Mapping[str, Any] | None) -> TimeLeftOut | None:
    """The same, as a result states it."""
    return read_time_left_out((result or {}).get(TIME_LEFT_OUT))


def time_left_out_at(found: PointRecord) -> TimeLeftOut | None:
    """The same of a point: of its repetitions that have ended."""
    return TimeLeftOut.together(
        time_left_out_of(repetition) for repetition in found.repetitions if repetition.finished_at is not None
    )


def is_worst_the_maximum(result: Mapping[str, Any] | None) -> bool:
    """Whether the worst-case latency, the 99.9th percentile (R8219-09), is the highest delay that was
    measured: of fewer than a thousand tagged frames it is (RFC 2330, 11.3)."""
    goal = (result or {}).get("goal")
    if not isinstance(goal, Mapping) or goal.get("test") != LATENCY.name:
        return False
    tags = goal.get("tagged_frames")
    return isinstance(tags, int) and not isinstance(tags, bool) and 0 < tags < LEAST_FOR_WORST
