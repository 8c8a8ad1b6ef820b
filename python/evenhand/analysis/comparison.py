# SPDX-License-Identifier: Apache-2.0
"""Analysis: two runs or more, point by point: ratios of medians, and what differs in the set-ups. Unlike runs
are refused."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Literal, TypeAlias

from evenhand.analysis.matching import (
    Match,
    flat,
    match_points,
    measured_conditions,
    show_in_short,
    start_of,
    unlike_in,
)
from evenhand.analysis.medians import MedianRatio, median_ratio
from evenhand.analysis.ranks import ratio_interval
from evenhand.analysis.words import join
from evenhand.base.errors import RequestError
from evenhand.base.units import format_count
from evenhand.procedure.descriptor import Figure
from evenhand.procedure.registry import PROCEDURES
from evenhand.procedure.statistics import Interval, Statistics
from evenhand.run.campaign_record import CampaignRecord, PointRecord, PointState

MOST_NAMED = 5
SAME_START = 0.05
"""Searches that begin where others ended begin at loads that differ by the noise; that is no other
setting."""
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
NOT_TOLD = ("own_dut.neighbor_table.", "dut.neighbor_table.", "dut.connection_table.counted.")
"""Of a testbed, in a campaign and in the run of a verb: what its kernel has counted since it was started,
which is no set-up."""


FailBy: TypeAlias = Literal["interval", "median"]
"""What must lie below a limit: the whole interval of the performance, or its point estimate alone."""
GATE_ERROR = 0.05
"""Most probability with which a comparison of runs that are alike, but for noise, fails by intervals at a
limit of 1 or below: it is divided by the number of points (Bonferroni)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedValue:
    """What one of the other runs found at a point."""

    key: str | None
    """Of the point there; None: it has none like this."""
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
    it cannot be told."""
    unlike: tuple[str, ...]
    """In what it was not measured alike."""
    is_at_least: bool = False
    """Whether the median is a lower bound."""
    upper: float | None = None
    """The median limit lies between the median and this (`PointRecord.median_upper`)."""
    gate: Interval | None = None
    """Of the performance, at the level that a gate of so many points needs. None: too few repetitions, or no
    number at an end, or a median is a lower bound: then only the point estimate can be judged."""

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
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class PointComparison:
    """A point of the first run, and what the others found there."""

    key: str
    figure: Figure
    statistics: Statistics | None
    """Of the first run."""
    at_maximum: int
    """How many of its values are lower bounds."""
    reason: str | None
    others: tuple[ComparedValue, ...]
    """In the order of the runs."""
    is_at_least: bool = False
    """Whether the median is a lower bound."""
    upper: float | None = None
    """As `ComparedValue.upper`, of the first run."""

    def to_document(self) -> dict[str, Any]:
        return {
            "key": self.key,
            "figure": {
                "name": self.figure.name,
                "unit": self.figure.unit,
                "is_higher_better": self.figure.is_higher_better,
            },
            "statistics": None if self.statistics is None else self.statistics.to_document(),
            "upper": self.upper,
            "at_maximum": self.at_maximum,
            "reason": self.reason,
            "others": [other.to_document() for other in self.others],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupDifference:
    """Something that is not the same in all runs."""

    what: str
    """`versions: engine`, `testbed: dut.os`."""
    values: tuple[str | None, ...]
    """As text, in the order of the runs; None: not there, or not known."""

    def to_document(self) -> dict[str, Any]:
        return {"what": self.what, "values": list(self.values)}


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRun:
    """Which run."""

    file: str
    name: str
    created_at: str
    sessions: tuple[str, ...] = ()
    """Files of a side whose values are those of its sessions; empty: a run whose values are those of its
    repetitions."""

    def to_document(self) -> dict[str, Any]:
        return {
            "file": self.file,
            "name": self.name,
            "created_at": self.created_at,
            "sessions": list(self.sessions),
        }


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
class Comparison:
    """The first run is what the others are held against."""

    runs: tuple[ComparedRun, ...]
    points: tuple[PointComparison, ...]
    unlike: tuple[str, ...]
    """In what they do not measure the same; not empty only if that was allowed."""
    differences: tuple[SetupDifference, ...]
    notes: tuple[str, ...] = ()
    """What makes their points no other question, but may move an answer within the brackets of the
    searches."""

    @property
    def is_of_sessions(self) -> bool:
        return any(run.sessions for run in self.runs)

    def performances(self, other: int) -> list[float]:
        """Of all points that have one; `other` counts from 0, the second run."""
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
            "method": METHOD,
            "unit": "session" if self.is_of_sessions else "repetition",
            "assumption": OF_SESSIONS if self.is_of_sessions else ONE_SESSION,
        }


def compare(records: Sequence[CampaignRecord], *, anyway: bool = False) -> Comparison:
    """Every point of the first run with that of the others that was measured alike.

    Args:
        anyway: Also if they are not alike: then a point goes with the one of the same procedure that differs
            least.

    Raises:
        RequestError: Fewer than two runs; they are not alike; or there is nothing in common to compare.
    """
    if len(records) < 2:
        raise RequestError(
            "1 run: a comparison needs at least two",
            code="analysis.one-run",
            where="RUN",
            next_step="Name another run file.",
        )
    first, *others = records
    matches = [match_points(first, other) for other in others]
    unlike = [
        line
        for other, match in zip(others, matches, strict=True)
        for line in _unlike_lines(first, other, match)
    ]
    if not first.points or not all(match.of for match in matches):
        raise _nothing_in_common(records)
    if unlike and not anyway:
        _check_kinds(records)
        more = f"; and {len(unlike) - MOST_NAMED} more" if len(unlike) > MOST_NAMED else ""
        raise RequestError(
            f"not measured alike: {'; '.join(unlike[:MOST_NAMED])}{more}",
            code="analysis.not-alike",
            where=_files(records),
            next_step="Measure both in the same way, or compare them anyway with --anyway.",
        )
    compared = sum(
        bool(point.values) and match.of.get(i) is not None
        for match in matches
        for i, point in enumerate(first.points)
    )
    level = 1 - GATE_ERROR / max(1, compared)
    return Comparison(
        runs=tuple(
            ComparedRun(file=record.path.name, name=record.name, created_at=record.created_at)
            for record in records
        ),
        points=tuple(
            _compare_point(point, [(match.of.get(i), match.of_one_kind) for match in matches], level)
            for i, point in enumerate(first.points)
        ),
        unlike=tuple(unlike),
        differences=tuple(setup_differences(records)),
        notes=tuple(
            note
            for other, match in zip(others, matches, strict=True)
            for note in _starts(first, other, match)
        ),
    )


def _judged(value: ComparedValue, by: FailBy) -> tuple[FailBy, float | None]:
    """By what it is judged, and which number must not be below the limit."""
    return (
        ("median", value.performance)
        if by == "median" or value.gate is None
        else ("interval", value.gate.high)
    )


def _check_kinds(records: Sequence[CampaignRecord]) -> None:
    """RequestError if some are campaigns and some are not, and there is a point whose searches do not tell
    what was asked.

    A verb stores its goal as it understood it, a campaign as its file has it."""
    is_untold = any(measured_conditions(point) is None for record in records for point in record.points)
    if is_untold and len({record.is_campaign for record in records}) > 1:
        raise RequestError(
            "a campaign and the run of a single verb, and not all of their points were measured: their"
            " settings are stored differently, so those points cannot be checked against each other",
            code="analysis.settings-not-comparable",
            where=_files(records),
            next_step="Finish the unfinished run, or compare them anyway with --anyway.",
        )


def _nothing_in_common(records: Sequence[CampaignRecord]) -> RequestError:
    """Single trials are kept, and are no points: by themselves they answer no question that could be asked of
    both."""
    empty = [record for record in records if not record.points]
    if empty:
        names, has = join([record.path.name for record in empty]), "has" if len(empty) == 1 else "have"
        return RequestError(
            f"{names} {has} only single trials or no trials, and no result of a search or"
            " series that could be compared",
            code="analysis.nothing-to-compare",
            where=_files(records),
            next_step="Measure the same on both with evenhand throughput, loss or another"
            " procedure, and compare those runs; to see single trials: evenhand show"
            f" {shlex.quote(empty[0].path.name)}",
        )
    kinds = [{point.point.procedure for point in record.points} for record in records]
    if set.intersection(*kinds):
        return RequestError(
            "the runs have no point in common: none has the same addresses, frame size, directions, hash type"
            " and IP version in all of them",
            code="analysis.nothing-in-common",
            where=_files(records),
            next_step="Measure the same points for both; evenhand show lists those of a run.",
        )
    procedures = [join(sorted({point.point.procedure for point in record.points})) for record in records]
    told = "; ".join(
        f"{record.path.name}: {words}" for record, words in zip(records, procedures, strict=True)
    )
    return RequestError(
        f"the runs have nothing in common to compare: {told}",
        code="analysis.nothing-in-common",
        where=_files(records),
        next_step="Measure the same procedure for both.",
    )


def _unlike_lines(first: CampaignRecord, other: CampaignRecord, match: Match) -> list[str]:
    counts: dict[str, int] = {}
    for i, point in match.of.items():
        for line in unlike_in(first.points[i], point, match.of_one_kind):
            counts[line] = counts.get(line, 0) + 1
    lines = [line if count == 1 else f"{line} ({count} points)" for line, count in counts.items()]
    for record, points in ((first, match.only_first), (other, match.only_other)):
        if points:
            named = [point.point.key for point in points[:MOST_NAMED]]
            more = f" and {len(points) - MOST_NAMED} more" if len(points) > MOST_NAMED else ""
            lines.append(f"only in {record.path.name}: {', '.join(named)}{more}")
    return lines


def _starts(first: CampaignRecord, other: CampaignRecord, match: Match) -> Iterator[str]:
    """Points whose searches began at loads that differ by more than `SAME_START`: they end elsewhere on the
    same bracket."""
    found = [
        (first.points[i].point.key, start_of(first.points[i]), start_of(point))
        for i, point in match.of.items()
    ]
    apart = [
        (key, a, b)
        for key, a, b in found
        if a != b and (a is None or b is None or abs(a - b) > SAME_START * max(a, b))
    ]
    if apart:
        key, *starts = apart[0]
        shown = " against ".join(
            "its own start" if start is None else f"{format_count(round(start))} fps" for start in starts
        )
        more = "" if len(apart) == 1 else f", and at {format_count(len(apart) - 1)} more"
        yield (
            f"{other.path.name}: at {key} its searches began at a different load from those"
            f" of {first.path.name} ({shown}){more}"
        )


def _compare_point(
    point: PointRecord, others: Sequence[tuple[PointRecord | None, bool]], level: float
) -> PointComparison:
    """Each of the others with whether it is of the same kind of run."""
    figure = PROCEDURES[point.point.procedure].figure
    return PointComparison(
        key=point.point.key,
        figure=figure,
        statistics=point.statistics,
        at_maximum=point.at_maximum,
        reason=why_none(point),
        others=tuple(_compared(point, other, figure, of_one_kind, level) for other, of_one_kind in others),
        is_at_least=point.is_at_least,
        upper=point.median_upper,
    )


def _compared(
    point: PointRecord, other: PointRecord | None, figure: Figure, of_one_kind: bool, level: float
) -> ComparedValue:
    if other is None:
        return ComparedValue(
            key=None,
            statistics=None,
            at_maximum=0,
            reason="not in this run",
            ratio=None,
            performance=None,
            unlike=(),
        )
    ratio = None
    if point.values and other.values:
        ratio = median_ratio(other, point)
    return ComparedValue(
        key=other.point.key,
        statistics=other.statistics,
        at_maximum=other.at_maximum,
        reason=why_none(other),
        ratio=ratio,
        performance=None if ratio is None else performance_of(ratio, other.values, figure),
        unlike=unlike_in(point, other, of_one_kind),
        is_at_least=other.is_at_least,
        upper=other.median_upper,
        gate=None if ratio is None or ratio.bound != "none" else _gate(point, other, figure, level),
    )


def _gate(point: PointRecord, other: PointRecord, figure: Figure, level: float) -> Interval | None:
    above, below = (other, point) if figure.is_higher_better else (point, other)
    found = ratio_interval(
        above.values, below.values, above_uppers=above.uppers, below_uppers=below.uppers, level=level
    )
    return None if found is None or found.level < level else found


def performance_of(ratio: MedianRatio, values: Sequence[float], figure: Figure) -> float | None:
    """The ratio where more of the figure is better, else its reciprocal: below 1 is worse. None: from
    something to nothing.

    Args:
        values: Those above the line.
    """
    if figure.is_higher_better:
        return ratio.ratio
    if ratio.ratio is None:
        return 0.0  # from nothing lost to something lost
    # From something to nothing is better than any number tells.
    return 1 / ratio.ratio if median(values) else (1.0 if ratio.ratio == 1 else None)


def why_none(point: PointRecord) -> str | None:
    """Why a point has no number; None if it has one."""
    if point.values:
        return None
    return (
        "not measured yet"
        if point.state in (PointState.PENDING, PointState.BEGUN)
        else point.reason or "no number"
    )


def setup_differences(records: Sequence[CampaignRecord]) -> Iterator[SetupDifference]:
    """Of versions, host, testbed and campaign file; in that order."""
    setups = [dict(_setup(record)) for record in records]
    for what in dict.fromkeys(key for setup in setups for key in setup):
        values = tuple(setup.get(what) for setup in setups)
        if any(value != values[0] for value in values):
            yield SetupDifference(what=what, values=tuple(show_in_short(value) for value in values))


def _setup(record: CampaignRecord) -> Iterator[tuple[str, Any]]:
    yield from flat(record.versions, "versions: ")
    yield from flat(record.host, "host: ")
    names = list(record.testbeds)
    yield "testbed", join(names) or None
    for name in names:
        # One testbed each: what differs is of interest, whatever their files are called.
        prefix = "testbed: " if len(names) == 1 else f"testbed {name}: "
        facts = {
            key: value
            for key, value in record.testbeds[name].items()
            if key != "tester" or value != record.host
        }
        yield from (
            fact for fact in flat(facts, prefix) if not fact[0].removeprefix(prefix).startswith(NOT_TOLD)
        )
    yield from flat(record.spec, "campaign: ")


def _files(records: Sequence[CampaignRecord]) -> str:
    return ", ".join(record.path.name for record in records)
