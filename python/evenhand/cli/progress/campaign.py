# SPDX-License-Identifier: Apache-2.0
"""Live progress of a campaign: a bar and a status line on a terminal, a line for each repetition
everywhere."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from rich.console import Console, Group
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from evenhand.base.errors import EvenhandError
from evenhand.base.time_span import TimeSpan
from evenhand.base.units import format_count
from evenhand.cli.progress.contained import contained
from evenhand.cli.progress.line import OF_A_CEILING, ProgressDisplay
from evenhand.procedure import Measured, ProcedureEvent
from evenhand.procedure.limits import OF_HOST
from evenhand.procedure.registry import PROCEDURES
from evenhand.report.campaign_status import format_figure
from evenhand.run.campaign.events import (
    CampaignEvent,
    HookEnded,
    Place,
    PointArrived,
    PointBegan,
    PointEnded,
    RepetitionBegan,
    RepetitionEnded,
)
from evenhand.run.campaign.time_left import time_left
from evenhand.run.campaign_status import CampaignStatus
from evenhand.search import TrialFinished
from evenhand.spec.request import Point
from evenhand.trial import TrialResult


class CampaignDisplay(ProgressDisplay):
    """Shows how far a campaign is. A context manager; without a terminal it prints plain lines only. Trials
    are in the file."""

    def __init__(self, console: Console, read: Callable[[], CampaignStatus]) -> None:
        """
        Args:
            read: Gives what the file says, as `evenhand status` reads it. It is called when a repetition has
                ended, never during a trial.
        """
        super().__init__(console)
        self._read = read
        self._found = read()
        self._verdicts = Counter(self._found.verdicts)
        """Those of the file, and of the trials since it was read."""
        self._repetition_began_s = time.monotonic()
        self._under_way: Point | None = None
        self._replayed = 0
        """Trials that come back as if they were made now, and are counted already."""
        self._testbed_count = 1
        self._suites = len({point.point.suite for point in self._found.points})
        self._where = ""
        """Which round, and which of its points."""
        self._has_explained_loads = True  # trials get no lines here

    @contained
    def on_campaign_event(self, event: CampaignEvent | ProcedureEvent) -> None:
        """Takes an event of a campaign, or of one of its procedures."""
        match event:
            case PointBegan(point=point, place=place):
                is_host = point.goal.get("limits") == OF_HOST
                self.remedy = None if is_host else 'limits = "host" in [every-suite]'
                self._where = self._round_of(point, place)
                begun = f"{self._ended + 1} of {len(self._found.points)}"
                self.say(f"{self._where or begun}: {point.key}", style="bold")
            case RepetitionBegan(job=job, stored_trials=stored):
                self._repetition_began_s, self._under_way = time.monotonic(), job.point
                self._replayed = stored  # 0 if it begins anew
                if stored:
                    self.say(
                        f"repetition {job.repetition} resumes after {stored} stored"
                        f" trial{'s' if stored > 1 else ''}"
                    )
            case RepetitionEnded():
                self._end_repetition(event)
            case PointEnded(point=point, reason=reason):
                if reason is not None:
                    self._look()
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
        self._look()
        point = event.job.point
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
        """Show a point that another worker has measured."""
        point = event.point
        self._testbed_count = max(1, event.testbed_count)
        self._look()
        done = f"{self._ended} of {len(self._found.points)} points"
        by = "" if event.testbed is None else f" by {event.testbed}"
        if event.reason is not None:
            self.say(f"{point.key} is skipped from now on{by}: {event.reason}", style="yellow")
        self.say(
            f"{point.key}: stored, {len(event.durations_s)} repetitions{by}; {done}; {self._summary()}",
            style="bold",
        )

    def _look(self) -> None:
        """Look into the file whenever something has ended: what the log says is then what `evenhand status`
        says."""
        self._replayed, self._under_way = 0, None
        with suppress(EvenhandError):  # a removed file is reported by whoever writes it
            self._found = self._read()
            self._verdicts = Counter(self._found.verdicts)

    def _round_of(self, point: Point, place: Place | None) -> str:
        """`IPv4 gateway, round 1 of 3, point 2 of 4`: rounds are those of a suite. Empty without rounds."""
        if place is None or place.rounds == 1:
            return ""
        return f"{point.suite}, {place}" if self._suites > 1 else str(place)

    @property
    def _ended(self) -> int:
        """Points of which nothing is left."""
        return sum(not point.left for point in self._found.points)

    @property
    def _left_of_all(self) -> TimeSpan:
        elapsed_s = time.monotonic() - self._repetition_began_s
        now = self._under_way and self._under_way.key
        return time_left(
            (
                replace(point, under_way_s=point.under_way_s + elapsed_s) if point.point.key == now else point
                for point in self._found.points
            ),
            testbed_count=self._testbed_count,
        )

    def _summary(self) -> str:
        counts = ", ".join(
            f"{format_count(self._verdicts[verdict])} {verdict}" for verdict in ("PASS", "FAIL", "INVALID")
        )
        left_of_all = self._left_of_all
        left = f"; {left_of_all.words} left" if left_of_all.most_s else ""
        return f"{format_count(self._verdicts.total())} trials in total ({counts}){left}"

    def _refresh(self) -> None:
        if self._live is None:
            return
        points = self._found.points
        bar = Table.grid(padding=(0, 1))
        asked = sum(point.point.repetitions for point in points)
        bar.add_row(
            ProgressBar(total=asked, completed=asked - sum(point.left for point in points), width=20),
            Text(f"{self._where or f'{self._ended} of {len(points)} points'} · {self._summary()}"),
        )
        self._live.update(Group(bar, self._line("")))
