# SPDX-License-Identifier: Apache-2.0
"""Live progress of a campaign: a bar and a status line on a terminal, a line for each repetition
everywhere."""

from __future__ import annotations

import time
from collections import Counter

from rich.console import Console, Group
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from evenhand.base.units import format_count, format_duration
from evenhand.cli.progress.line import OF_A_CEILING, ProgressDisplay
from evenhand.procedure import Measured, ProcedureEvent
from evenhand.procedure.limits import OF_HOST
from evenhand.procedure.registry import PROCEDURES
from evenhand.report.campaign_status import format_figure
from evenhand.run.campaign.events import (
    CampaignEvent,
    HookEnded,
    PointArrived,
    PointBegan,
    PointEnded,
    RepetitionBegan,
    RepetitionEnded,
)
from evenhand.run.campaign.time_left import TimeLeft, learnt_from
from evenhand.run.campaign_status import CampaignStatus
from evenhand.search import TrialFinished
from evenhand.spec.point import Point
from evenhand.trial import TrialResult


class CampaignDisplay(ProgressDisplay):
    """Shows how far a campaign is. A context manager; without a terminal it prints plain lines only. Trials
    stand in the file."""

    def __init__(self, console: Console, status: CampaignStatus) -> None:
        super().__init__(console)
        self._left = {point.point.key: point.left for point in status.points if point.left}
        self._points = {point.point.key: point.point for point in status.points}
        self._verdicts = Counter(status.verdicts)
        self._time: TimeLeft = learnt_from(status.points)
        self._repetition_began_s = time.monotonic()
        self._under_way: Point | None = None
        self._replayed = 0
        """Trials that come back as if they were made now, and are counted already."""
        self._places = 1
        self._repetitions = sum(status.point.repetitions for status in status.points)
        self._where = ""
        """Which round, and which of its points."""
        self._has_told_loads = True  # trials get no lines here

    def on_campaign_event(self, event: CampaignEvent | ProcedureEvent) -> None:
        """What a campaign tells, or one of its procedures."""
        match event:
            case PointBegan(point=point, place=place):
                number = len(self._points) - len(self._left) + 1
                is_host = point.goal.get("limits") == OF_HOST
                self.remedy = None if is_host else 'limits = "host" in [every-suite]'
                self._where = str(place) if place is not None and place.rounds > 1 else ""
                self.say(f"{self._where or f'{number} of {len(self._points)}'}: {point.key}", style="bold")
            case RepetitionBegan(job=job, stored_trials=stored):
                self._repetition_began_s, self._under_way = time.monotonic(), job.point
                if stored:
                    self._replayed = stored
                    self.say(
                        f"repetition {job.repetition} resumes after {stored} stored"
                        f" trial{'s' if stored > 1 else ''}"
                    )
            case RepetitionEnded():
                self._end_repetition(event)
            case PointEnded(point=point, reason=reason):
                self._left.pop(point.key, None)
                if reason is not None:
                    self.say(f"{point.key} is skipped from now on: {reason}", style="yellow")
            case PointArrived():
                self._take_point(event)
            case HookEnded(failure=failure):
                if failure is not None:
                    self.say(f"{failure[0].upper()}{failure[1:]}", style="yellow")
            case TrialFinished(trial=trial):
                self._count(trial.result)
                self._heed_verdict(trial.result)
            case Measured(what=what, result=result):
                self._count(result)
                if not what.startswith(OF_A_CEILING):
                    self._heed_verdict(result)
            case _:
                self.on_event(event)

    def _count(self, result: TrialResult) -> None:
        if self._replayed:
            self._replayed -= 1
            return
        self._verdicts[str(result.verdict)] += 1
        self._refresh()

    def _end_repetition(self, event: RepetitionEnded) -> None:
        self._replayed = 0
        self._under_way = None
        point = event.job.point
        self._left[point.key] = max(0, self._left.get(point.key, 1) - 1)
        self._time.learn(point, time.monotonic() - self._repetition_began_s)
        figure = PROCEDURES[point.procedure].figure
        found = f"no number: {event.reason}"
        if event.value is not None:
            least = "at least " if event.is_at_least else ""
            found = f"{figure.name} {least}{format_figure(point.procedure, event.value)}"
        per_direction = " per direction" if figure.unit == "fps" and event.value is not None else ""
        self.say(
            f"repetition {event.job.repetition} of {point.repetitions}: {found}{per_direction};"
            f" {self._summary()}"
        )

    def _take_point(self, event: PointArrived) -> None:
        """Of a point that somebody else has measured."""
        point = event.point
        self._places = max(1, event.places)
        self._verdicts.update(event.verdicts)
        self._time.learn(point, sum(event.durations_s), len(event.durations_s))
        self._left[point.key] = max(0, self._left.get(point.key, 0) - len(event.durations_s))
        if event.reason is not None or not self._left[point.key]:
            self._left.pop(point.key)
        done = f"{len(self._points) - len(self._left)} of {len(self._points)} points"
        by = "" if event.testbed is None else f" by {event.testbed}"
        if event.reason is not None:
            self.say(f"{point.key} is skipped from now on{by}: {event.reason}", style="yellow")
        self.say(
            f"{point.key}: stored, {len(event.durations_s)} repetitions{by}; {done}; {self._summary()}",
            style="bold",
        )

    @property
    def _left_s(self) -> float:
        point = self._under_way
        begun = (
            []
            if point is None or point.key not in self._left
            else [(point, time.monotonic() - self._repetition_began_s)]
        )
        left = ((self._points[key], left) for key, left in self._left.items())
        return self._time.left_s(left, under_way=begun) / self._places

    def _summary(self) -> str:
        counts = ", ".join(
            f"{format_count(self._verdicts[verdict])} {verdict}" for verdict in ("PASS", "FAIL", "INVALID")
        )
        left_s = self._left_s
        left = f"; about {format_duration(max(1, round(left_s)))} left" if left_s else ""
        return f"{format_count(self._verdicts.total())} trials in total ({counts}){left}"

    def _refresh(self) -> None:
        if self._live is None:
            return
        done = len(self._points) - len(self._left)
        bar = Table.grid(padding=(0, 1))
        bar.add_row(
            ProgressBar(
                total=self._repetitions, completed=self._repetitions - sum(self._left.values()), width=20
            ),
            Text(f"{self._where or f'{done} of {len(self._points)} points'} · {self._summary()}"),
        )
        self._live.update(Group(bar, self._line("")))
