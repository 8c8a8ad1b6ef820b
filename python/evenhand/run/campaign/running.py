# SPDX-License-Identifier: Apache-2.0
"""Campaign: which trial it makes just now, for `evenhand status` in another terminal."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from pathlib import Path

from evenhand.procedure import Began, ProcedureEvent, TrialPhase
from evenhand.run.campaign.events import CampaignEvent, PointEnded, RepetitionBegan, RepetitionEnded
from evenhand.run.running_trial import RunningTrial, remove_running, write_running
from evenhand.search import TrialStarted

EVERY_S = 1.0


@dataclass(slots=True)
class RunningFile:
    """Written when a trial begins, and once a second while it is made."""

    run: Path
    _now: RunningTrial | None = None
    _written_s: float = float("-inf")

    def on_event(self, event: CampaignEvent | ProcedureEvent) -> None:
        """Takes an event of a campaign, or of one of its procedures."""
        match event:
            case RepetitionBegan(job=job):
                self._write(RunningTrial(process=os.getpid(), point=job.point.key, repetition=job.repetition))
            case TrialStarted(number=number) | Began(number=number):
                if self._now is not None:
                    self._write(replace(self._now, trial=number, phase="", elapsed_s=0.0, total_s=0.0))
            case TrialPhase():
                if self._now is not None and time.monotonic() - self._written_s >= EVERY_S:
                    self._write(
                        replace(
                            self._now, phase=event.phase, elapsed_s=event.elapsed_s, total_s=event.total_s
                        )
                    )
            case RepetitionEnded() | PointEnded():
                self.end()

    def end(self) -> None:
        """No trial is made any more."""
        if self._now is not None:
            self._now = None
            remove_running(self.run)

    def _write(self, running: RunningTrial) -> None:
        self._now, self._written_s = running, time.monotonic()
        write_running(self.run, running)
