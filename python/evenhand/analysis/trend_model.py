# SPDX-License-Identifier: Apache-2.0
"""Analysis: what a trend says: each point in all runs, its levels, and where one follows another."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, TypeAlias

from evenhand.analysis.comparison_model import (
    SetupDifference,
    differs_in_time_left_out,
    time_left_out_document,
)
from evenhand.analysis.medians import MedianRatio
from evenhand.base.validation.document import Documented
from evenhand.procedure.descriptor import Figure
from evenhand.procedure.statistics import Statistics
from evenhand.run.figures import TimeLeftOut
from evenhand.spec.request import Point

Over: TypeAlias = Literal["time", "version"]
"""What the runs are in the order of: when they were begun, or the version of their DUT."""
By: TypeAlias = Literal["levels", "compare"]
"""How a change was found: all runs cut into levels, or, with few runs, one held against the one before."""
Judged: TypeAlias = Literal["levels", "compare", "nothing"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendRun(Documented):
    """A run of the trend."""

    file: str
    name: str
    created_at: str
    """UTC, as the file has it."""
    version: str | None
    """Version of its DUT, such as the kernel; None: nothing states it."""
    is_finished: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendValue:
    """What one run found at a point."""

    run: int
    """Its place in `Trend.runs`."""
    statistics: Statistics | None
    """Statistics of its repetitions; None: no number."""
    upper: float | None = None
    """The median limit lies between the median and this (`PointRecord.median_upper`)."""
    lower: float | None = None
    """The same below it, of a figure that is better the lower it is; None: the median itself."""
    is_at_least: bool = False
    """Whether the median is a lower bound."""
    reason: str | None = None
    """Why there is no number."""
    time_left_out: TimeLeftOut | None = None
    """How much of the time of its trials was not judged; None: all were judged as a whole."""
    is_apart: bool = False
    """Set aside: compared with its neighbours it is of no level. As the last of its point it may be the first
    of a new one."""

    @property
    def median(self) -> float | None:
        return None if self.statistics is None else self.statistics.median

    def to_document(self) -> dict[str, Any]:
        return {
            "run": self.run,
            "statistics": None if self.statistics is None else self.statistics.to_document(),
            "upper": self.upper,
            "is_at_least": self.is_at_least,
            "reason": self.reason,
            "is_apart": self.is_apart,
            **time_left_out_document(self.time_left_out),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Level(Documented):
    """Runs in which a point stayed the same but for noise."""

    first_run: int
    last_run: int
    runs: int
    """How many have a number and are not set aside."""
    median: float
    """Median of the medians of these runs."""
    is_at_least: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change from one level to the next, or from one run to the next."""

    before_run: int
    """The last run with a number before it."""
    run: int
    """The first run after it."""
    before: float
    after: float
    """Medians."""
    ratio: MedianRatio
    """After over before."""
    performance: float | None
    """Below 1 is worse; None: from something to nothing, where less is better."""
    by: By
    differences: tuple[SetupDifference, ...]
    """Differences between the set-ups of these two runs."""

    @property
    def is_regression(self) -> bool:
        return self.performance is not None and self.performance < 1

    def to_document(self) -> dict[str, Any]:
        return {
            "before_run": self.before_run,
            "run": self.run,
            "before": self.before,
            "after": self.after,
            "ratio": self.ratio.to_document(),
            "performance": self.performance,
            "is_regression": self.is_regression,
            "by": self.by,
            "differences": [difference.to_document() for difference in self.differences],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class PointTrend:
    """A point in all runs."""

    key: str
    """Key of the point in the latest run that has it."""
    point: Point
    """There."""
    figure: Figure
    testbed: Mapping[str, str]
    """What makes its testbed this one: name, DUT, tester."""
    values: tuple[TrendValue, ...]
    """One for each run, in their order."""
    levels: tuple[Level, ...]
    """Empty if there are too few runs to find any."""
    changes: tuple[Change, ...]
    judged_by: Judged
    unlike: tuple[str, ...] = ()
    """What was measured otherwise than at another point of the same trend that is otherwise the same."""

    @property
    def measured(self) -> tuple[TrendValue, ...]:
        """Those with a number."""
        return tuple(value for value in self.values if value.statistics is not None)

    @property
    def judged_unlike(self) -> tuple[tuple[TrendValue, TrendValue], ...]:
        """A run with a number and the next one, where the share of the time that was not judged is another
        one by more than `compare` leaves unsaid."""
        return tuple(
            (before, after)
            for before, after in pairwise(self.measured)
            if differs_in_time_left_out(before.time_left_out, after.time_left_out)
        )

    @property
    def performance(self) -> float | None:
        """After all changes over before the first one; below 1 is worse. 1 without a change; None: from
        something to nothing, where less is better."""
        found = [change.performance for change in self.changes]
        return None if None in found else math.prod(each for each in found if each is not None)

    def to_document(self) -> dict[str, Any]:
        return {
            "key": self.key,
            "suite": self.point.suite,
            "procedure": self.point.procedure,
            "plan": self.point.plan,
            "hosts": list(self.point.hosts),
            "networks": list(self.point.networks),
            "frame_size": self.point.frame_size,
            "directions": list(self.point.directions),
            "hash_type": self.point.hash_type,
            "figure": self.figure.to_document(),
            "testbed": dict(self.testbed),
            "values": [value.to_document() for value in self.values],
            "levels": [level.to_document() for level in self.levels],
            "changes": [change.to_document() for change in self.changes],
            "performance": self.performance,
            "judged_by": self.judged_by,
            "unlike": list(self.unlike),
            "judged_unlike": [
                {"before_run": before.run, "run": after.run} for before, after in self.judged_unlike
            ],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend(Documented):
    """Points over runs."""

    over: Over
    runs: tuple[TrendRun, ...]
    """Runs in the order of `over`; of one version, by time."""
    points: tuple[PointTrend, ...]

    @property
    def changes(self) -> tuple[tuple[PointTrend, Change], ...]:
        """All of them, the latest first, and of one run the largest loss first."""
        found = ((point, change) for point in self.points for change in point.changes)
        return tuple(
            sorted(
                found,
                key=lambda each: (-each[1].run, 2.0 if each[1].performance is None else each[1].performance),
            )
        )

    @property
    def unlike(self) -> tuple[str, ...]:
        """What was not alike when points were measured."""
        return tuple(dict.fromkeys(line for point in self.points for line in point.unlike))
