# SPDX-License-Identifier: Apache-2.0
"""Campaign: the order in which points are measured, the seed of each repetition, and what a changed file changes."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evenhand.campaign.options import AFTER
from evenhand.campaign.points import CampaignPlan
from evenhand.series.campaign import Point

_NOTHING = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One repetition of one point."""

    point: Point
    repetition: int
    """From 1."""
    seed: int
    """Its own."""


def jobs(plan: CampaignPlan) -> tuple[Job, ...]:
    """Every repetition of every point, in the order of measuring.

    Suite by suite, all repetitions of a point in a row. Within a suite points with a single address pair come first (SEED-02). The others
    are shuffled if the plan says so, by its seed: else a DUT that drifts, because it warms up or its tables fill, would look like a trend
    over the number of hosts. A point that takes its load from another one comes after all those that give it.
    """
    ordered: list[Point] = []
    for suite in dict.fromkeys(point.suite for point in plan.points):
        of_suite = [point for point in plan.points if point.suite == suite]
        single = [point for point in of_suite if point.is_single_pair]
        others = [point for point in of_suite if not point.is_single_pair]
        if plan.order == "shuffled":
            random.Random(seed_of(plan.seed, f"order of {suite}", 0)).shuffle(others)
        for group in (single, others):
            ordered += sorted(group, key=lambda point: AFTER in point.goal)
    return tuple(
        Job(point=point, repetition=number, seed=seed_of(plan.seed, point.key, number))
        for point in ordered
        for number in range(1, point.repetitions + 1)
    )


def seed_of(seed: int, key: str, repetition: int) -> int:
    """64 bits for one repetition of one point: the same each time, and not the same for any two of a campaign."""
    text = json.dumps([seed, key, repetition])
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8, person=b"evenhand-seed").digest(), "big")


def difference(old_spec: Mapping[str, Any], new_spec: Mapping[str, Any]) -> list[str]:
    """What a reader must know who resumes a campaign whose file was changed: a line for each value; empty if nothing was."""
    old, new = (dict(_values_in(spec)) for spec in (old_spec, new_spec))
    lines = []
    for place in dict.fromkeys([*old, *new]):
        if old.get(place, _NOTHING) != new.get(place, _NOTHING):
            lines.append(f"{place}: {_shown(old.get(place, _NOTHING))} -> {_shown(new.get(place, _NOTHING))}")
    return lines


def _shown(value: Any) -> str:
    return "not there" if value is _NOTHING else json.dumps(value, ensure_ascii=False)


def _values_in(value: Any, place: str = "") -> list[tuple[str, Any]]:
    """Leaves with their places; a list of tables by the tables' names."""
    if isinstance(value, Mapping):
        return [leaf for key, item in value.items() for leaf in _values_in(item, f"{place}.{key}" if place else str(key))]
    if isinstance(value, Sequence) and not isinstance(value, str) and any(isinstance(item, Mapping) for item in value):
        return [leaf for item in value for leaf in _values_in(item, f"{place} {item.get('name')!r}")]
    return [(place, list(value) if isinstance(value, tuple) else value)]
