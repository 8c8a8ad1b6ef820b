# SPDX-License-Identifier: Apache-2.0
"""Analysis: what a comparison of runs says: of each point and of the whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from evenhand.analysis.medians import MedianRatio
from evenhand.base.validation.document import Documented
from evenhand.procedure.descriptor import Figure
from evenhand.procedure.statistics import Interval, Statistics
from evenhand.run.figures import TIME_LEFT_OUT, TimeLeftOut, show_share

METHOD = (
    "A ratio is the median of one run divided by the median of the other. A repetition of the same"
    " measurement would give a slightly different ratio: the interval contains all factors between the"
    " runs that an exact Mann-Whitney test does not reject (Hodges-Lehmann). If the runs differ by a"
    " factor, the interval covers it with the probability in brackets, whatever the distribution of"
    " the independent repetitions."
)
TOO_FEW = "Intervals need at least four repetitions in both runs."
ONE_SESSION = (
    "Each run is one session: the intervals cover the noise within it, but not what changes from one"
    " session to the next, such as a reboot, so two runs of the same DUT may differ. To cover that as"
    " well, measure several sessions of each side and name them all: evenhand compare A1 A2 A3 A4"
    " --against B1 --against B2 --against B3 --against B4."
)
OF_SESSIONS = (
    "Each value belongs to one session and is the median of its repetitions, so what changes from one"
    " session to the next is part of the noise."
)
TOO_FEW_SESSIONS = "Intervals need at least four sessions of both sides."
SAME_LEFT_OUT = 0.1
"""Shares of the sending time that were not judged may differ by this, and no one is told."""
FailBy: TypeAlias = Literal["interval", "median"]
"""What must lie below a limit: the whole interval of the performance, or its point estimate alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedValue:
    """What one of the other runs found at a point."""

    key: str | None
    """Key of the point there; None: it has none like this."""
    statistics: Statistics | None
    at_maximum: int
    """How many of its values are lower bounds: the highest load that was tried passed, or the tester could
    not keep a higher one."""
    reason: str | None
    """Why there is no number, or no ratio."""
    ratio: MedianRatio | None
    """This run's median over that of the first run."""
    performance: float | None
    """The same where more of the figure is better, else its reciprocal: below 1 is worse. None: no number, so
    it is not known."""
    unlike: tuple[str, ...]
    """What was not alike when it was measured."""
    is_at_least: bool = False
    """Whether the median is a lower bound."""
    upper: float | None = None
    """The median limit lies between the median and this (`PointRecord.median_upper`)."""
    time_left_out: TimeLeftOut | None = None
    """How much of the time of its trials was not judged; None: all were judged as a whole."""
    gate: Interval | None = None
    """Interval of the performance, at the level that a gate of so many points needs. None: too few
    repetitions, or no number at an end, or a median is a lower bound: then only the point estimate can be
    judged."""

    @property
    def is_interval_too_weak(self) -> bool:
        """Whether the ratio's interval says nothing, since there are too few repetitions."""
        return self.ratio is not None and self.ratio.interval is not None and self.ratio.firm_interval is None

    @property
    def is_different(self) -> bool | None:
        """Whether the interval of the ratio leaves out 1; None with too few repetitions for an interval that
        says anything, or where a median is a lower bound and hides it."""
        return None if self.ratio is None else self.ratio.is_different

    def to_document(self) -> dict[str, Any]:
        return {
            "key": self.key,
            "statistics": None if self.statistics is None else self.statistics.to_document(),
            "upper": self.upper,
            "at_maximum": self.at_maximum,
            "reason": self.reason,
            "ratio": None if self.ratio is None else self.ratio.to_document(),
            "performance": self.performance,
            "gate_interval": None
            if self.gate is None
            else {"low": self.gate.low, "high": self.gate.high, "level": self.gate.level},
            "is_different": self.is_different,
            "unlike": list(self.unlike),
            **time_left_out_document(self.time_left_out),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class PointComparison:
    """A point of the first run, and what the others found there."""

    key: str
    figure: Figure
    statistics: Statistics | None
    """Statistics of the first run."""
    at_maximum: int
    """How many of its values are lower bounds."""
    reason: str | None
    others: tuple[ComparedValue, ...]
    """Values in the order of the runs."""
    is_at_least: bool = False
    """Whether the median is a lower bound."""
    upper: float | None = None
    """As `ComparedValue.upper`, of the first run."""
    time_left_out: TimeLeftOut | None = None
    """As `ComparedValue.time_left_out`, of the first run."""

    def is_judged_unlike(self, other: int) -> bool:
        """Whether the share of the time that was not judged is another one by more than `SAME_LEFT_OUT`, if
        both have a number; `other` counts from 0, the second run."""
        value = self.others[other]
        if self.statistics is None or value.statistics is None:
            return False
        return differs_in_time_left_out(self.time_left_out, value.time_left_out)

    def to_document(self) -> dict[str, Any]:
        return {
            "key": self.key,
            "figure": self.figure.to_document(),
            "statistics": None if self.statistics is None else self.statistics.to_document(),
            "upper": self.upper,
            "at_maximum": self.at_maximum,
            "reason": self.reason,
            "others": [other.to_document() for other in self.others],
            **time_left_out_document(self.time_left_out),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupDifference(Documented):
    """Something that is not the same in all runs."""

    what: str
    """`versions: engine`, `testbed: dut.os`."""
    values: tuple[str | None, ...]
    """Values as text, in the order of the runs; None: not there, or not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRun(Documented):
    """Which run."""

    file: str
    name: str
    created_at: str
    sessions: tuple[str, ...] = ()
    """Files of a side whose values are those of its sessions; empty: a run whose values are those of its
    repetitions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Below:
    """A point where a run is worse than the limit, or has lost its number."""

    run: ComparedRun
    key: str
    performance: float | None
    by: FailBy
    """What was below; also with intervals asked for, a point that has none is judged by its median."""

    def to_document(self) -> dict[str, Any]:
        return {"file": self.run.file, "key": self.key, "performance": self.performance, "by": self.by}


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedUnlike:
    """A point where the share of the time that was not judged is another one than in the first run."""

    run: ComparedRun
    key: str
    first: TimeLeftOut | None
    other: TimeLeftOut | None

    @property
    def shares(self) -> tuple[float, float]:
        """The shares of both runs; 0 where all trials were judged as a whole."""
        return share_left_out(self.first), share_left_out(self.other)

    @property
    def line(self) -> str:
        """For people."""
        first, other = map(show_share, self.shares)
        return (
            f"{self.run.file}, {self.key}: {other} of the sending time was left out, and {first} in the first"
            " run; losses near what was left out cannot be seen"
        )

    def to_document(self) -> dict[str, Any]:
        first, other = self.shares
        return {
            "file": self.run.file,
            "key": self.key,
            "first_time_left_out_share": first,
            "time_left_out_share": other,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The first run is what the others are held against."""

    runs: tuple[ComparedRun, ...]
    points: tuple[PointComparison, ...]
    unlike: tuple[str, ...]
    """What they do not measure alike; not empty only if that was allowed."""
    differences: tuple[SetupDifference, ...]
    notes: tuple[str, ...] = ()
    """What makes their points no other question, but may move an answer within the brackets of the
    searches."""

    @property
    def is_of_sessions(self) -> bool:
        return any(run.sessions for run in self.runs)

    @property
    def judged_unlike(self) -> tuple[JudgedUnlike, ...]:
        """Points of which one run judged much more of its time than the first one did."""
        return tuple(
            JudgedUnlike(
                run=self.runs[i + 1], key=point.key, first=point.time_left_out, other=value.time_left_out
            )
            for i in range(len(self.runs) - 1)
            for point in self.points
            for value in [point.others[i]]
            if point.is_judged_unlike(i)
        )

    def performances(self, other: int) -> list[float]:
        """Performances of all points that have one; `other` counts from 0, the second run."""
        found = (point.others[other].performance for point in self.points)
        return [performance for performance in found if performance is not None]

    def below(self, limit: float, by: FailBy = "interval") -> tuple[Below, ...]:
        """Points whose performance is below it; also those that have a number in the first run and none in
        another.

        Args:
            by: `interval`: the whole of `ComparedValue.gate`, and the point estimate where there is none; so
                nothing passes unjudged.
        """
        return tuple(
            Below(run=self.runs[i + 1], key=point.key, performance=other.performance, by=judged)
            for point in self.points
            if point.statistics is not None
            for i, other in enumerate(point.others)
            for judged, value in [_judged(other, by)]
            if (other.statistics is None if value is None else value < limit)
        )

    @property
    def without_gate(self) -> int:
        """How many of the values have a performance, and no interval for a gate."""
        return sum(
            other.performance is not None and other.gate is None
            for point in self.points
            for other in point.others
        )

    def to_document(self) -> dict[str, Any]:
        return {
            "runs": [run.to_document() for run in self.runs],
            "points": [point.to_document() for point in self.points],
            "unlike": list(self.unlike),
            "differences": [difference.to_document() for difference in self.differences],
            "notes": list(self.notes),
            "judged_unlike": [each.to_document() for each in self.judged_unlike],
            "method": METHOD,
            "unit": "session" if self.is_of_sessions else "repetition",
            "assumption": OF_SESSIONS if self.is_of_sessions else ONE_SESSION,
        }


def share_left_out(found: TimeLeftOut | None) -> float:
    """0 where all trials were judged as a whole."""
    return 0.0 if found is None else found.share


def differs_in_time_left_out(one: TimeLeftOut | None, another: TimeLeftOut | None) -> bool:
    """Whether the shares of the time that were not judged differ by more than `SAME_LEFT_OUT`: then two
    numbers are no answers to quite the same question."""
    return abs(share_left_out(one) - share_left_out(another)) > SAME_LEFT_OUT


def time_left_out_document(found: TimeLeftOut | None) -> dict[str, Any]:
    """Nothing if all trials were judged as a whole."""
    return {} if found is None else {TIME_LEFT_OUT: found.to_document()}


def _judged(value: ComparedValue, by: FailBy) -> tuple[FailBy, float | None]:
    """What it is judged by, and which number must not be below the limit."""
    return (
        ("median", value.performance)
        if by == "median" or value.gate is None
        else ("interval", value.gate.high)
    )
