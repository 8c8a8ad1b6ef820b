# SPDX-License-Identifier: Apache-2.0
"""Analysis: several sessions of each side held against each other, where a session is all of one run.

What changes from one session to the next, such as a reboot, moves all repetitions of a run together: they
say nothing about it. So here the unit is the session: each has one value at a point, the median of its
repetitions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

from evenhand.analysis.comparable import check_no_run_twice
from evenhand.analysis.comparison import compare
from evenhand.analysis.comparison_model import Comparison, time_left_out_document
from evenhand.analysis.matching import match_points, unlike_in
from evenhand.base.errors import RequestError
from evenhand.procedure.descriptor import LeftOpen
from evenhand.run.campaign_record import AT_OR_ABOVE_MAXIMUM, CampaignRecord, PointRecord, Repetition
from evenhand.run.figures import time_left_out_at


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
