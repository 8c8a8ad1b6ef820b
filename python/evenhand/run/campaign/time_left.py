# SPDX-License-Identifier: Apache-2.0
"""Campaign: how long it will still take, learnt from what its repetitions really took."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from evenhand.base.errors import EvenhandError
from evenhand.run.campaign.estimate import time_of
from evenhand.run.campaign_status import PointStatus
from evenhand.spec.point import Point


@dataclass(slots=True)
class TimeLeft:
    """Expected times, corrected by how far they were off: of the same procedure, else of all that was
    measured."""

    _expected_s: dict[str, float] = field(default_factory=dict)
    _sums: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Measured and expected seconds of what has ended."""

    def learn(self, point: Point, measured_s: float, repetitions: int = 1) -> None:
        """Record how long so many repetitions of the point took in all."""
        if repetitions > 0:
            measured, expected = self._sums.get(point.procedure, (0.0, 0.0))
            self._sums[point.procedure] = (
                measured + measured_s,
                expected + repetitions * self._of_one(point),
            )

    def left_s(
        self, left: Iterable[tuple[Point, int]], *, under_way: Iterable[tuple[Point, float]] = ()
    ) -> float:
        """Time left for these points, so many repetitions of each.

        Args:
            under_way: Points with a repetition that has begun, and is among those that are left, and what it
                has taken so far. One that has taken longer than expected says already that the others will.
        """
        begun = list(under_way)
        paced = replace(self, _sums=dict(self._sums))
        for point, elapsed_s in begun:
            if elapsed_s > self._of_one(point) * self._factor(point.procedure):
                paced.learn(point, elapsed_s)
        whole_s = sum(repetitions * paced._one_s(point) for point, repetitions in left)
        return max(0.0, whole_s - sum(min(elapsed_s, paced._one_s(point)) for point, elapsed_s in begun))

    def _one_s(self, point: Point) -> float:
        """Time of one repetition, as it was learnt."""
        return self._of_one(point) * self._factor(point.procedure)

    def _of_one(self, point: Point) -> float:
        if point.key not in self._expected_s:
            self._expected_s[point.key] = _expected_s(point)
        return self._expected_s[point.key]

    def _factor(self, procedure: str) -> float:
        """How far the expectation was off. That another procedure was quicker says nothing of this one; a
        host on which trials are repeated slows down all of them."""
        if procedure in self._sums:
            measured, expected = self._sums[procedure]
            return measured / expected if expected else 1.0
        measured = sum(measured for measured, _ in self._sums.values())
        expected = sum(expected for _, expected in self._sums.values())
        return max(1.0, measured / expected) if expected else 1.0


def _expected_s(point: Point) -> float:
    """Time of one repetition; 0 for a point of a file that another user, or another version, has written,
    and that cannot be measured here."""
    try:
        return time_of(point) / point.repetitions
    except (EvenhandError, LookupError, TypeError, ValueError, AttributeError, ArithmeticError):
        return 0.0


def _learnt_from(points: Iterable[PointStatus]) -> TimeLeft:
    """Made from what a file says."""
    learnt = TimeLeft()
    for point in points:
        learnt.learn(point.point, point.measured_s, point.finished)
    return learnt


def time_left_s(points: Iterable[PointStatus], *, testbed_count: int = 1) -> float:
    """The time left of a campaign according to its file; what the repetition under way has taken already is
    not left.

    Args:
        testbed_count: Testbeds that measure at the same time.
    """
    known = list(points)
    under_way = [(point.point, point.under_way_s) for point in known if point.left and point.under_way_s]
    left = ((point.point, point.left) for point in known)
    return _learnt_from(known).left_s(left, under_way=under_way) / testbed_count
