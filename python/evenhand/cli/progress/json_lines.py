# SPDX-License-Identifier: Apache-2.0
"""Live progress for programs: a JSON document in each line, once a second while a trial is made."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict
from typing import Any

from rich.console import Console

from evenhand.cli.progress.contained import contained
from evenhand.cli.progress.line import ProgressDisplay
from evenhand.cli.progress.rates import Rates
from evenhand.procedure import Began, Learned, Measured, ProcedureEvent, TrialPhase
from evenhand.procedure.expected_time import ExpectedTime
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
        self.write("expected", seconds=expected.seconds, parts=expected.parts)

    @contained
    def on_event(self, event: ProcedureEvent) -> None:
        """Takes an event of a procedure."""
        match event:
            case TrialStarted():
                self._deadline_s = time.monotonic() + event.remaining_s + self.later_s
                self._trial = event.number
                self.write(
                    "began",
                    trial=event.number,
                    rate_fps=event.rate_fps,
                    duration_s=event.duration_s,
                    left_s=self._left_s,
                )
            case Began():
                self._deadline_s = time.monotonic() + event.remaining_s + self.later_s
                self._trial = event.number
                self.write("began", trial=event.number, what=event.what, left_s=self._left_s)
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
    def _left_s(self) -> float:
        return max(0.0, self._deadline_s - time.monotonic())

    def _write_second(self, event: TrialPhase) -> None:
        directions = {
            direction: {
                "offered_fps": rate.offered_fps,
                "received_fps": rate.received_fps,
                **asdict(rate.so_far),
            }
            for direction, rate in self._seconds.directions.items()
        }
        self.write(
            "progress",
            trial=self._trial,
            phase=event.phase,
            elapsed_s=event.elapsed_s,
            total_s=event.total_s,
            left_s=self._left_s,
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
