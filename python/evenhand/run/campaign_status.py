# SPDX-License-Identifier: Apache-2.0
"""Station 9: how far a campaign is, from its file, without looking into its trials."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenhand.base.errors import RequestError
from evenhand.base.locks import holder_of
from evenhand.base.validation.document import Documented, at_key
from evenhand.procedure.statistics import Statistics
from evenhand.run.campaign_record import ENDED_EARLY, PointRecord, PointState
from evenhand.run.figures import RunningTrial, read_running, stated_time_left_out
from evenhand.run.point_document import read_point, remarks_of_point
from evenhand.run.reading import RunTables, as_mapping, open_to_read
from evenhand.run.record import point_record, read_repetitions, read_sessions
from evenhand.run.run_file import campaign_resource
from evenhand.search import Role
from evenhand.spec.request import Point
from evenhand.trial import TimeLeftOut

ALL, INVALID, CEILING = "all", "INVALID", "ceiling"
"""Trials of a point that are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PointStatus:
    """How far one point is."""

    point: Point
    state: PointState
    reason: str | None
    """Why it has no number, or fewer repetitions than asked for."""
    finished: int
    """Repetitions, those that ended without a value included."""
    remarks: tuple[str, ...]
    """Why it has no number or fewer values than it should, and whether its repetitions disagree."""
    ended_early: bool
    """It got no more repetitions, for `reason`, or one of several testbeds measured nothing more of it."""
    values: tuple[float, ...]
    """Values in the unit of the procedure's figure."""
    lower_bounds: tuple[bool, ...]
    """Which of the values are lower bounds: the highest load that was tried passed, or the tester could not
    keep a higher one."""
    at_tester_ceiling: int
    """How many of them because of the tester."""
    undecided: int
    """Finished repetitions that the tester could not decide, without a value or with a lower bound: those
    that `--again` repeats."""
    measured_s: float
    """What its finished repetitions took."""
    under_way_s: float
    """What the one that is measured now has taken so far, or had when it was cut short."""
    trial_count: int
    invalid_trials: int = 0
    """Those of them that were INVALID."""
    ceiling_trials: int = 0
    """Those of them that found out what the tester itself can do."""
    not_made: int = 0
    """Repetitions that ended without being made, since their testbed measures nothing more of the point;
    `--again` makes them."""
    time_left_out: TimeLeftOut | None = None
    """How much of the time of the trials of its finished repetitions was not judged; None if none was judged
    by its clean time."""

    @property
    def statistics(self) -> Statistics | None:
        """Statistics of the values; None without one."""
        return Statistics.of(self.values, lower_bounds=self.lower_bounds)

    @property
    def at_maximum(self) -> int:
        """How many of the values are lower bounds."""
        return sum(self.lower_bounds)

    @property
    def left(self) -> int:
        """Repetitions that are still to be made."""
        return (
            0
            if self.state in (PointState.MEASURED, PointState.NO_NUMBER)
            else self.point.repetitions - self.finished
        )

    @property
    def left_again(self) -> int:
        """Repetitions to be made if those that the tester could not decide are repeated too, and those that
        were not made are made."""
        return self.point.repetitions - self.finished + self.undecided + self.not_made

    @property
    def rounds_done(self) -> int:
        """Number of rounds in which it has all of its repetitions."""
        return max(
            n
            for n in range(self.point.rounds + 1)
            if self.point.repetitions * n // self.point.rounds <= self.finished
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundStatus(Documented):
    """How far the round is that is measured now, or next."""

    suite: str
    round: int
    """Number of the round, from 1."""
    rounds: int
    points_done: int
    point_count: int = at_key("points")


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignStatus:
    """How far a campaign is."""

    path: Path
    name: str
    source: str
    """Name of the campaign file."""
    spec: Mapping[str, Any]
    """The campaign file as it was understood when the campaign began."""
    created_at: str
    finished_at: str | None
    worker: str | None
    """The process that measures it now; None: none does."""
    running: RunningTrial | None
    """The trial that this process makes now; None also if it measures on other machines."""
    points: tuple[PointStatus, ...]
    """Points in the order of the file."""
    verdicts: Mapping[str, int]
    """Trials by their verdicts, those of repetitions that were cut short included."""
    notes: tuple[str, ...]
    is_merged: bool = False
    """It was merged from several files, and cannot be resumed."""

    def count(self, *states: PointState) -> int:
        """Points in one of these states."""
        return sum(point.state in states for point in self.points)

    @property
    def round(self) -> RoundStatus | None:
        """None: nothing is left, or it is not measured in rounds."""
        first = next((point for point in self.points if point.left), None)
        if first is None:
            return None
        of_suite = [point for point in self.points if point.point.suite == first.point.suite]
        rounds_done = [
            point.rounds_done for point in of_suite if point.left and _is_after(point) == _is_after(first)
        ]
        number = 1 + min(rounds_done)
        # What ended early takes no part in it.
        stage = [
            point
            for point in of_suite
            if _is_after(point) == _is_after(first)
            and point.point.rounds >= number
            and (point.left or point.finished)
        ]
        rounds = max(point.point.rounds for point in stage)
        if rounds == 1:
            return None
        done = sum(point.rounds_done >= number for point in stage)
        return RoundStatus(
            suite=first.point.suite, round=number, rounds=rounds, points_done=done, point_count=len(stage)
        )


def _is_after(status: PointStatus) -> bool:
    """Such points have rounds of their own (`campaign.jobs`)."""
    return "after" in status.point.goal


def read_status(path: Path | str) -> CampaignStatus:
    """How far it is; whoever measures it is not disturbed. Errors as in `read_record`; also RequestError for
    the run of a verb."""
    path = Path(path)
    with open_to_read(path) as tables:
        campaigns = tables.rows("campaign")
        if not campaigns:
            raise RequestError(
                "this is the run of a single verb, not a campaign",
                code="run.not-a-campaign",
                where=str(path),
                next_step="`evenhand show FILE` shows it. It is not resumed: to measure again, type its verb"
                " again; `evenhand run` takes a campaign file.",
            )
        (run,) = tables.rows("run")
        verdicts, counts = _count_trials(tables)
        sessions = read_sessions(tables)
        points = {row["id"]: read_point(row) for row in tables.rows("points")}
        repetitions = read_repetitions(tables, points, {}, sessions)
        worker = holder_of(campaign_resource(path))
        return CampaignStatus(
            path=path,
            name=campaigns[0]["name"],
            source=campaigns[0]["source"],
            spec=as_mapping(campaigns[0]["spec"], "campaign.spec"),
            created_at=run["created_at"],
            finished_at=run["finished_at"],
            worker=worker,
            is_merged=run["merged_from"] is not None,
            running=read_running(path, worker),
            verdicts=verdicts,
            points=tuple(
                _point_status(
                    row["reason"],
                    point_record(points[row["id"]], row["reason"], tuple(repetitions.get(row["id"], ()))),
                    counts=counts.get(row["id"], {}),
                )
                for row in tables.rows("points", "id", "reason")
            ),
            notes=tuple(note for session in sessions.values() for note in session.notes),
        )


def _count_trials(tables: RunTables) -> tuple[Counter[str], Mapping[int, Mapping[str, int]]]:
    """Trials by verdict, and by the id of the point: all, those that were INVALID, and those of the tester's
    ceiling."""
    points = {row["id"]: row["point_id"] for row in tables.rows("repetitions", "id", "point_id")}
    searches = {
        row["id"]: (points.get(row["repetition_id"], 0), Role(row["role"]))
        for row in tables.rows("searches", "id", "repetition_id", "role")
    }
    verdicts: Counter[str] = Counter()
    counts: dict[int, Counter[str]] = {}
    for row in tables.rows("trials", "search_id", "verdict"):
        point, role = searches[row["search_id"]]
        is_ceiling = role is Role.CEILING
        verdicts[row["verdict"]] += 1
        counts.setdefault(point, Counter()).update(
            # A search for the ceiling goes up until trials are INVALID.
            {ALL: 1, CEILING: is_ceiling, INVALID: row["verdict"] == INVALID and not is_ceiling}
        )
    return verdicts, counts


def _point_status(ended_for: str | None, found: PointRecord, *, counts: Mapping[str, int]) -> PointStatus:
    """
    Args:
        ended_for: Why it gets no more repetitions, as its row has it.
    """
    finished = [each for each in found.repetitions if each.finished_at is not None]
    not_made = sum(each.outcome == ENDED_EARLY for each in finished)
    return PointStatus(
        point=found.point,
        state=found.state,
        reason=found.reason or found.stopped_early,
        finished=len(finished),
        values=found.values,
        trial_count=counts.get(ALL, 0),
        invalid_trials=counts.get(INVALID, 0),
        ceiling_trials=counts.get(CEILING, 0),
        remarks=tuple(remarks_of_point(found)),
        ended_early=ended_for is not None or not_made > 0,
        not_made=not_made,
        lower_bounds=found.lower_bounds,
        at_tester_ceiling=found.at_tester_ceiling,
        undecided=found.undecided,
        measured_s=sum(each.measured_s for each in finished),
        time_left_out=TimeLeftOut.together(stated_time_left_out(each.result) for each in finished),
        under_way_s=sum(
            each.measured_s for each in found.repetitions if each.finished_at is None and each.outcome is None
        ),
    )
