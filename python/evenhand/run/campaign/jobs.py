# SPDX-License-Identifier: Apache-2.0
"""Campaign: the order in which points are measured, the seed of each repetition, and what a changed file
changes."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evenhand.spec.point import Point
from evenhand.spec.points import CampaignPlan
from evenhand.spec.request import AFTER

_NOTHING = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where in a campaign something is measured."""

    round: int
    """Number of the round, from 1."""
    rounds: int
    point: int
    """Its place among the points of the round, from 1."""
    point_count: int

    def __str__(self) -> str:
        point = f"{self.point} of {self.point_count}"
        return point if self.rounds == 1 else f"round {self.round} of {self.rounds}, point {point}"


WHOLE = Place(round=1, rounds=1, point=1, point_count=1)
"""The place of what is measured without rounds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One repetition of one point."""

    point: Point
    repetition: int
    """Number of the repetition, from 1."""
    seed: int
    """Its own."""
    place: Place = WHOLE


def jobs(plan: CampaignPlan) -> tuple[Job, ...]:
    """Every repetition of every point, in the order of measuring.

    Suite by suite, and in rounds: each has a share of the repetitions of all points, so that a DUT that
    drifts, because it warms up or its tables fill, does so for all of them. Each round has an order of its
    own, shuffled by the plan's seed if the plan says so. In the first one points with a single address pair
    come first (SEED-02). Points that take their load from another one have rounds of their own, after those
    of all that give it.
    """
    found: list[Job] = []
    for suite in dict.fromkeys(point.suite for point in plan.points):
        of_suite = [point for point in plan.points if point.suite == suite]
        for is_after in (False, True):
            stage = [point for point in of_suite if (AFTER in point.goal) == is_after]
            rounds = max((point.rounds for point in stage), default=0)
            for number in range(1, rounds + 1):
                ordered = _order_of_round(plan, suite, of_suite, number)
                points = [
                    point for point in ordered if (AFTER in point.goal) == is_after and point.rounds >= number
                ]
                for place, point in enumerate(points, start=1):
                    where = Place(round=number, rounds=rounds, point=place, point_count=len(points))
                    for repetition in plan.numbers_in_round(point, number):
                        seed = seed_of(plan.seed, point.key, repetition)
                        found.append(Job(point=point, repetition=repetition, seed=seed, place=where))
    return tuple(found)


def _order_of_round(plan: CampaignPlan, suite: str, points: Sequence[Point], number: int) -> list[Point]:
    first = [point for point in points if number == 1 and point.is_single_pair]
    others = [point for point in points if number > 1 or not point.is_single_pair]
    if plan.order == "shuffled":
        random.Random(seed_of(plan.seed, f"order of {suite}", number - 1)).shuffle(others)
    return first + others


def seed_of(seed: int, key: str, repetition: int) -> int:
    """64 bits for one repetition of one point: the same each time, and not the same for any two of a
    campaign."""
    text = json.dumps([seed, key, repetition])
    return int.from_bytes(
        hashlib.blake2b(text.encode(), digest_size=8, person=b"evenhand-seed").digest(), "big"
    )


def difference(old_spec: Mapping[str, Any], new_spec: Mapping[str, Any]) -> list[str]:
    """What a reader must know who resumes a campaign whose file was changed: a line for each value; empty if
    nothing was. An option that an earlier version did not have, and that has not been set, is not a
    change."""
    old, new = (dict(_values_in(spec)) for spec in (old_spec, new_spec))
    lines = []
    for place in dict.fromkeys([*old, *new]):
        if place not in old and new[place] is None:
            continue
        if old.get(place, _NOTHING) != new.get(place, _NOTHING):
            lines.append(f"{place}: {_shown(old.get(place, _NOTHING))} -> {_shown(new.get(place, _NOTHING))}")
    return lines


def _shown(value: Any) -> str:
    return "not there" if value is _NOTHING else json.dumps(value, ensure_ascii=False)


def _values_in(value: Any, place: str = "") -> list[tuple[str, Any]]:
    """Leaves with their places; a list of tables by the tables' names."""
    if isinstance(value, Mapping):
        return [
            leaf
            for key, item in value.items()
            for leaf in _values_in(item, f"{place}.{key}" if place else str(key))
        ]
    if (
        isinstance(value, Sequence)
        and not isinstance(value, str)
        and any(isinstance(item, Mapping) for item in value)
    ):
        return [leaf for item in value for leaf in _values_in(item, f"{place} {item.get('name')!r}")]
    return [(place, list(value) if isinstance(value, tuple) else value)]
