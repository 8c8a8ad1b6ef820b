# SPDX-License-Identifier: Apache-2.0
"""Live progress for programs: a JSON document in each line, once a second while a trial is made."""

from __future__ import annotations

import json
import sys
from typing import Any

from rich.console import Console

from evenhand.cli.progress.contained import contained
from evenhand.cli.progress.line import ProgressDisplay, Rates
from evenhand.procedure import Began, Learned, Measured, ProcedureEvent, TrialPhase
from evenhand.procedure.expected_time import ExpectedTime
from evenhand.run.campaign.events import (
    CampaignEvent,
    HookEnded,
    PointArrived,
    PointBegan,
    PointEnded,
    RepetitionBegan,
    RepetitionEnded,
)
from evenhand.search import TrialFinished, TrialStarted
from evenhand.trial import LearningProgress, TrialResult


class JsonProgress(ProgressDisplay):
    """The same events as lines of JSON on stderr; docs/reference/progress.md has their keys."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self._live = None
        self._has_explained_loads = True
        self._trial: int | None = None
        self._seconds = Rates()

    @contained
    def say(self, text: str, *, style: str = "") -> None:
        """A note."""
        self.write("note", text=text)

    @contained
    def expect(self, expected: ExpectedTime) -> None:
        """How long all of it should take."""
        self.write("expected", seconds=expected.seconds, most_s=expected.most_s, parts=expected.parts)

    @contained
    def on_event(self, event: ProcedureEvent) -> None:
        """Takes an event of a procedure."""
        match event:
            case TrialStarted():
                self._expect_left(event)
                self._trial = event.number
                self.write(
                    "began",
                    trial=event.number,
                    rate_fps=event.rate_fps,
                    duration_s=event.duration_s,
                    **self._left_fields,
                )
            case Began():
                self._expect_left(event)
                self._trial = event.number
                self.write("began", trial=event.number, what=event.what, **self._left_fields)
            case TrialPhase():
                if self._seconds.note(event):
                    self._write_second(event)
            case TrialFinished(trial=trial):
                self._write_result(trial.number, trial.result)
            case Measured(result=result):
                self._write_result(self._trial, result)
            case LearningProgress():
                self.write("learning", round=event.round, hosts=event.host_counts, reachable=event.reachable)
            case Learned():
                self.write("learned", **event.result.to_document())
            case _:
                super().on_event(event)

    @contained
    def write(self, event: str, **fields: Any) -> None:
        """One line. Whoever reads it gets it at once."""
        print(json.dumps({"event": event, **fields}), file=sys.stderr, flush=True)

    @property
    def _left_fields(self) -> dict[str, float | None]:
        left = self._left
        return {"left_s": left.stated_s, "left_most_s": left.stated_most_s}

    def _write_second(self, event: TrialPhase) -> None:
        directions = {
            direction: {
                "offered_fps": rate.offered_fps,
                "received_fps": rate.received_fps,
                **rate.so_far.numbers,
            }
            for direction, rate in self._seconds.directions.items()
        }
        self.write(
            "progress",
            trial=self._trial,
            phase=event.phase,
            elapsed_s=event.elapsed_s,
            total_s=event.total_s,
            **self._left_fields,
            directions=directions,
        )

    def _write_result(self, number: int | None, result: TrialResult) -> None:
        self.write(
            "trial",
            trial=number,
            verdict=str(result.verdict),
            rate_fps=result.intended_fps,
            loss_ratio=result.loss_ratio,
            reasons=[reason.text for reason in result.reasons],
        )


class JsonCampaignProgress(JsonProgress):
    """Lines for points and repetitions in addition to those of their trials; docs/reference/progress.md has
    their keys."""

    @contained
    def on_campaign_event(self, event: CampaignEvent | ProcedureEvent) -> None:
        """Takes an event of a campaign, or of one of its procedures."""
        match event:
            case PointBegan(point=point, place=place):
                in_round = {} if place is None else {"round": place.round, "rounds": place.rounds}
                self.write("point", point=point.key, **in_round)
            case RepetitionBegan(job=job, stored_trials=stored):
                self.write(
                    "repetition",
                    point=job.point.key,
                    repetition=job.repetition,
                    round=job.place.round,
                    stored_trials=stored,
                )
            case RepetitionEnded(job=job):
                self.write(
                    "repetition_ended",
                    point=job.point.key,
                    repetition=job.repetition,
                    value=event.value,
                    reason=event.reason,
                )
            case PointEnded(point=point, reason=reason):
                self.write("point_ended", point=point.key, reason=reason)
            case PointArrived(point=point, reason=reason, verdicts=verdicts):
                self.write(
                    "point_arrived",
                    point=point.key,
                    testbed=event.testbed,
                    reason=reason,
                    verdicts=dict(verdicts),
                )
            case HookEnded(failure=failure):
                if failure is not None:
                    self.say(failure)
            case _:
                self.on_event(event)
