# SPDX-License-Identifier: Apache-2.0
"""Analysis: two runs or more, point by point: ratios of medians, and what differs in the set-ups. Unlike runs
are refused.

Several sessions of each side can be held against each other, where a session is all of one run. What changes
from one session to the next, such as a reboot, moves all repetitions of a run together: they say nothing
about it. So there the unit is the session: each has one value at a point, the median of its repetitions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from evenhand.analysis.comparable import (
    MOST_NAMED,
    check_kinds,
    check_no_run_twice,
    file_names,
    nothing_in_common,
    start_notes,
    unlike_lines,
    why_one_run,
)
from evenhand.analysis.comparison_model import (
    ComparedRun,
    ComparedValue,
    Comparison,
    PointComparison,
    SetupDifference,
    time_left_out_document,
)
from evenhand.analysis.condition_words import join, show_in_short
from evenhand.analysis.matching import flat, match_points, unlike_in
from evenhand.analysis.medians import MedianRatio, median_ratio
from evenhand.analysis.ranks import ratio_interval
from evenhand.base.errors import RequestError
from evenhand.procedure.descriptor import Figure, LeftOpen
from evenhand.procedure.registry import PROCEDURES
from evenhand.procedure.statistics import Interval
from evenhand.run.campaign_record import (
    AT_OR_ABOVE_MAXIMUM,
    CampaignRecord,
    PointRecord,
    PointState,
    Repetition,
)
from evenhand.run.figures import time_left_out_at

NOT_COMPARED = ("own_dut.neighbor_table.", "dut.neighbor_table.", "dut.connection_table.counted.")
"""Keys of a testbed, in a campaign and in the run of a verb: what its kernel has counted since it was
started, which is not a set-up."""


def setup_differences(records: Sequence[CampaignRecord]) -> Iterator[SetupDifference]:
    """Differences of versions, host, testbed and campaign file; in that order."""
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
            fact for fact in flat(facts, prefix) if not fact[0].removeprefix(prefix).startswith(NOT_COMPARED)
        )
    yield from flat(record.spec, "campaign: ")


GATE_ERROR = 0.05
"""Most probability with which a comparison of runs that are alike, but for noise, fails by intervals at a
limit of 1 or below: it is divided by the number of points (Bonferroni)."""


def compare(records: Sequence[CampaignRecord], *, anyway: bool = False) -> Comparison:
    """Every point of the first run with that of the others that was measured alike.

    Args:
        anyway: Compare even if they are not alike: then a point goes with the one of the same procedure that
            differs least.

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
        for line in unlike_lines(first, other, match)
    ]
    if not first.points or not all(match.of for match in matches):
        raise nothing_in_common(records)
    if unlike and not anyway:
        check_kinds(records)
        more = f"; and {len(unlike) - MOST_NAMED} more" if len(unlike) > MOST_NAMED else ""
        raise RequestError(
            f"not measured alike: {'; '.join(unlike[:MOST_NAMED])}{more}",
            code="analysis.not-alike",
            where=file_names(records),
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
            for note in (*_same_run_notes(first, other), *start_notes(first, other, match))
        ),
    )


def _same_run_notes(first: CampaignRecord, other: CampaignRecord) -> Iterator[str]:
    """To hold a run against itself shows that nothing is made of noise; whoever meant another one should
    know."""
    why = why_one_run(first, other)
    if why is not None:
        yield f"{first.path.name} and {other.path.name} {why}. So their ratios say nothing about the DUT"


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
        time_left_out=time_left_out_at(point),
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
        time_left_out=time_left_out_at(other),
        gate=None if ratio is None or ratio.bound != "none" else _gate(point, other, figure, level),
    )


def _gate(point: PointRecord, other: PointRecord, figure: Figure, level: float) -> Interval | None:
    above, below = (other, point) if figure.is_higher_better else (point, other)
    found = ratio_interval(
        above.values,
        below.values,
        above_uppers=above.uppers,
        below_uppers=below.uppers,
        above_lowers=above.lowers,
        below_lowers=below.lowers,
        level=level,
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
    # From something to nothing is better than any number can say.
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


def compare_sessions(sides: Sequence[Sequence[CampaignRecord]], *, anyway: bool = False) -> Comparison:
    """Each side's sessions against those of the first side. A side may have one session; an interval takes
    four of each.

    Args:
        anyway: As in `compare`; the sessions of one side must be alike all the same.

    Raises:
        RequestError: As in `compare`; a run is a session twice, on one side or on both; or the sessions of
            a side did not measure the same.
    """
    check_no_run_twice([record for side in sides for record in side])
    comparison = compare([_as_one(side) for side in sides], anyway=anyway)
    runs = tuple(
        replace(run, sessions=tuple(record.path.name for record in side))
        for run, side in zip(comparison.runs, sides, strict=True)
    )
    return replace(comparison, runs=runs)


def _as_one(side: Sequence[CampaignRecord]) -> CampaignRecord:
    """A record whose repetitions are the sessions of one side. What is known of the set-up is that of the
    first."""
    first = side[0]
    sessions: list[list[PointRecord]] = [[point] for point in first.points]
    for other in side[1:]:
        match = match_points(first, other)
        lines = [
            line
            for i, point in match.of.items()
            for line in unlike_in(first.points[i], point, match.of_one_kind)
        ]
        lines += [
            f"only in one of them: {point.point.key}" for point in (*match.only_first, *match.only_other)
        ]
        if lines:
            raise RequestError(
                f"no two sessions belong to the same side: {lines[0]}",
                code="analysis.no-common-side",
                where=f"{first.path.name}, {other.path.name}",
                next_step="Name sessions that measured the same points under the same conditions.",
            )
        for i, point in match.of.items():
            sessions[i].append(point)
    points = tuple(
        replace(
            of_point[0],
            repetitions=tuple(
                _as_repetition(number, point) for number, point in enumerate(of_point, 1) if point.values
            ),
        )
        for of_point in sessions
    )
    return replace(first, path=Path(" + ".join(record.path.name for record in side)), points=points)


def _as_repetition(number: int, point: PointRecord) -> Repetition:
    last = next(r for r in reversed(point.repetitions) if r.finished_at is not None and r.value is not None)
    return replace(
        last,
        number=number,
        value=None if point.statistics is None else point.statistics.median,
        outcome=AT_OR_ABOVE_MAXIMUM if point.is_at_least else "found",
        # What was not judged is that of all its repetitions, and not of the trials of the last one.
        searches=tuple(replace(search, trials=()) for search in last.searches),
        result=time_left_out_document(time_left_out_at(point)),
        bracket=LeftOpen(
            low=median(point.lowers) if point.lowers != point.values else None, high=point.median_upper
        ),
    )
