# SPDX-License-Identifier: Apache-2.0
"""Campaign: how long it will still take, learnt from what its repetitions really took."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import lru_cache

from evenhand.base.errors import EvenhandError
from evenhand.base.time_span import TimeSpan
from evenhand.procedure.expected_time import (
    CEILING_S,
    CEILING_TRIAL_S,
    OPENING_S,
    ceiling_s,
    hosts_learning_s,
)
from evenhand.procedure.host_limits import PROBE_S, PROBES
from evenhand.procedure.limits import OF_HOST
from evenhand.procedure.maximum import TRIAL_S, TRIALS
from evenhand.run.campaign_status import PointStatus
from evenhand.spec.request import Point, plan_of, read_point
from evenhand.trial import CEILING_WAITS

MOST_KNOWN = 10_000
"""Points whose expected time is remembered."""
RULES_TRIED = 3
"""Numbers of rules with which a lab's router is tried, until one is right."""


def time_of(point: Point) -> TimeSpan:
    """All repetitions of a point, if no trial is INVALID; see `procedure.expected_time`. The engine is
    started, and a direct plan's hosts are learnt, once for each repetition."""
    request = read_point(point)
    waits_s = request.conditions["waits"].total_s
    one = request.procedure.expected_span(request.goal, waits_s).then(OPENING_S + _learning_s(point))
    return one.times(point.repetitions)


def ceiling_of(point: Point) -> tuple[str, float]:
    """Seconds to find the tester's ceiling, if the point needs it, and what it depends on: it is found once
    for all points of which that is the same, and kept."""
    depends = {
        "plan": point.plan,
        "options": dict(point.plan_options),
        "frame_size": point.frame_size,
        "directions": list(point.directions),
        **{key: point.goal.get(key) for key in ("host-macs", "limits", "loss-ratio")},
    }
    return json.dumps(depends, sort_keys=True, default=str), ceiling_s(read_point(point).goal)


def preparing_s(points: Iterable[Point], *, finds_rules: bool) -> float:
    """Seconds before the first point: the limits that this machine keeps, if they are to be measured, and how
    many rules a lab's router gets."""
    has_limits = any(point.goal.get("limits") == OF_HOST for point in points)
    probing_s = OPENING_S + PROBES * (PROBE_S + CEILING_WAITS.total_s) if has_limits else 0.0
    trying_s = OPENING_S + TRIALS * (TRIAL_S + CEILING_WAITS.total_s)
    return probing_s + (CEILING_S + RULES_TRIED * trying_s if finds_rules else 0.0)


def _learning_s(point: Point) -> float:
    if not plan_of(point).is_direct or point.goal.get("no-learning"):
        return 0.0
    return hosts_learning_s(point.hosts[side] * point.networks[side] for side in (0, 1))


NOTHING = TimeSpan.of(0.0)


@dataclass(frozen=True, slots=True)
class _Learnt:
    """What ended repetitions took, and what they should have, in seconds."""

    measured_s: float = 0.0
    expected_s: float = 0.0
    repetitions: int = 0

    def factor(self, *, is_wide: bool) -> float:
        """How far the expectation was off. What took longer may have been disturbed: the expectation counts
        as one repetition that it was right for. Where it was that of a range, it says nothing."""
        if not self.expected_s:
            return 1.0
        is_slow = self.measured_s > self.expected_s and not is_wide
        mean_s = self.expected_s / self.repetitions if is_slow else 0.0
        return (self.measured_s + mean_s) / (self.expected_s + mean_s)


@dataclass(slots=True)
class TimeLeft:
    """Expected times, corrected by how far they were off, procedure by procedure."""

    repeated: float = 1.0
    """How many trials are made for each that is valid: a host on which trials are repeated slows down all
    procedures."""
    _learnt: dict[str, _Learnt] = field(default_factory=dict)
    """By procedure: what has ended."""

    def learn(self, point: Point, measured_s: float, repetitions: int = 1) -> None:
        """Record how long so many repetitions of the point took in all, without the tester's ceiling."""
        if repetitions > 0:
            before = self._learnt.get(point.procedure, _Learnt())
            self._learnt[point.procedure] = _Learnt(
                measured_s=before.measured_s + measured_s,
                expected_s=before.expected_s + repetitions * self._of_one(point).middle_s,
                repetitions=before.repetitions + repetitions,
            )

    def left(
        self, left: Iterable[tuple[Point, int]], *, under_way: Iterable[tuple[Point, float]] = ()
    ) -> TimeSpan:
        """Time left for these points, so many repetitions of each.

        Args:
            under_way: Points with a repetition that has begun, and is among those that are left, and what it
                has taken so far. One that has taken longer than expected says already that the others will.
        """
        begun = list(under_way)
        paced = replace(self, _learnt=dict(self._learnt))
        for point, elapsed_s in begun:
            if elapsed_s > self._one(point).most_s:
                paced.learn(point, elapsed_s)
        whole = TimeSpan.sum(paced._one(point).times(repetitions) for point, repetitions in left)
        for point, elapsed_s in begun:
            one = paced._one(point)
            whole = TimeSpan(
                whole.least_s - min(elapsed_s, one.least_s), whole.most_s - min(elapsed_s, one.most_s)
            ).then(0.0)
        # Most DUTs take the longest time, which is off by no more than the middle of a narrow range may be.
        return whole if whole.is_wide else TimeSpan.of(whole.most_s)

    def _one(self, point: Point) -> TimeSpan:
        """Time of one repetition, as it was learnt."""
        one = self._of_one(point)
        learnt = self._learnt.get(point.procedure)
        if learnt is not None:
            factor = learnt.factor(is_wide=one.is_wide)
            return TimeSpan.of(factor * one.middle_s) if one.is_wide else one.times(factor)
        return one.times(self.repeated)

    def _of_one(self, point: Point) -> TimeSpan:
        return _expected(_Known(point))


@dataclass(frozen=True, slots=True, eq=False)
class _Known:
    """A point as a key. What it should take does not change while it is measured, and a display asks for it
    twice a second, of every point."""

    point: Point

    def __hash__(self) -> int:
        return hash(self.point.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Known) and self.point == other.point


@lru_cache(maxsize=MOST_KNOWN)
def _expected(known: _Known) -> TimeSpan:
    """Time of one repetition; nothing for a point of a file that another user, or another version, has
    written, and that cannot be measured here."""
    try:
        return time_of(replace(known.point, repetitions=1))
    except UNREADABLE:
        return NOTHING


@lru_cache(maxsize=MOST_KNOWN)
def _ceiling(known: _Known) -> tuple[str, float] | None:
    """See `ceiling_of`; None for such a point."""
    try:
        return ceiling_of(known.point)
    except UNREADABLE:
        return None


UNREADABLE = (EvenhandError, LookupError, TypeError, ValueError, AttributeError, ArithmeticError)


def _ceilings_s(points: Iterable[PointStatus]) -> float:
    """Time to find the tester's ceiling for all points that are left, where none with the same frames and
    limits has been measured."""
    wanted: dict[str, float] = {}
    found = set()
    for status in points:
        if (ceiling := _ceiling(_Known(status.point))) is None:
            continue
        depends, seconds = ceiling
        if status.finished or status.ceiling_trials:
            found.add(depends)
        elif status.left:
            wanted[depends] = seconds
    return sum(seconds for depends, seconds in wanted.items() if depends not in found)


def _learnt_from(points: Iterable[PointStatus]) -> TimeLeft:
    """Made from what a file says."""
    known = list(points)
    trials = sum(point.trial_count for point in known)
    valid = trials - sum(point.invalid_trials for point in known)
    learnt = TimeLeft(repeated=trials / valid if valid else 1.0 + trials)
    for point in known:
        own_s = max(0.0, point.measured_s - point.ceiling_trials * CEILING_TRIAL_S)
        learnt.learn(point.point, own_s, point.finished)
    return learnt


def time_left(points: Iterable[PointStatus], *, testbed_count: int = 1) -> TimeSpan:
    """The time left of a campaign according to its file; what the repetition under way has taken already is
    not left.

    Args:
        testbed_count: Testbeds that measure at the same time.
    """
    known = list(points)
    under_way = [(point.point, point.under_way_s) for point in known if point.left and point.under_way_s]
    left = ((point.point, point.left) for point in known)
    whole = _learnt_from(known).left(left, under_way=under_way).then(_ceilings_s(known))
    return whole.times(1 / testbed_count)
