# SPDX-License-Identifier: Apache-2.0
"""Station 8: a trial as part of a search: why it was made, which attempt it is, and how often a load is
tried again after INVALID trials; what each direction lost in the trials that a result rests on.

A loss ratio above 0 is over all directions together (MLR-03): one direction may lose all that both are
allowed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from evenhand.base.units import format_count
from evenhand.trial import TrialResult


class Purpose(StrEnum):
    """Why a trial was made."""

    MAXIMUM = "maximum"
    SEARCH = "search"
    CONFIRMATION = "confirmation"
    KNOWN = "known"
    """A trial at a load that is known from before, full-length: it is to be proven anew."""
    BOUND = "bound"
    """A trial at the lowest load that failed, to the end: the trial that failed there was stopped early, and
    a queue may have stood still."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchTrial:
    """One trial within a search."""

    number: int
    """Number from 1, in the order in which they were made."""
    purpose: Purpose
    attempt: int
    """1, or 2 and more after INVALID trials at the same load, or lossy ones that are verified."""
    is_full_length: bool
    load_fps: float
    """The load that the search asked for. Where it is no even load, the trial's own document has what came of
    it: of bursts a whole number of intervals."""
    result: TrialResult

    def to_document(self) -> dict[str, Any]:
        """As `--json` of a verb has it."""
        return {
            "number": self.number,
            "purpose": str(self.purpose),
            "attempt": self.attempt,
            "is_full_length": self.is_full_length,
            "result": self.result.raw,
        }


def numbered_documents(trials: Iterable[SearchTrial]) -> list[dict[str, Any]]:
    """Documents of the trials of several searches, which are counted anew from 1."""
    return [replace(trial, number=number).to_document() for number, trial in enumerate(trials, start=1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectionLoss:
    """Frames of one direction, over the trials that a result rests on."""

    lost_frames: int
    offered_frames: int

    @property
    def loss_ratio(self) -> float:
        """Share of what was offered in this direction."""
        return self.lost_frames / self.offered_frames if self.offered_frames else 0.0

    def to_document(self) -> dict[str, Any]:
        return {
            "lost_frames": self.lost_frames,
            "offered_frames": self.offered_frames,
            "loss_ratio": self.loss_ratio,
        }


def losses_in(trials: Iterable[TrialResult]) -> dict[str, DirectionLoss]:
    """Losses by direction, summed over these trials; empty without any."""
    return sum_of_losses(
        {
            name: DirectionLoss(lost_frames=d.lost_frames, offered_frames=d.offered_frames)
            for name, d in trial.directions.items()
        }
        for trial in trials
    )


def sum_of_losses(several: Iterable[Mapping[str, DirectionLoss]]) -> dict[str, DirectionLoss]:
    """Sum of the losses by direction, over several results."""
    total: dict[str, DirectionLoss] = {}
    for losses in several:
        for name, loss in losses.items():
            before = total.get(name, DirectionLoss(lost_frames=0, offered_frames=0))
            total[name] = DirectionLoss(
                lost_frames=before.lost_frames + loss.lost_frames,
                offered_frames=before.offered_frames + loss.offered_frames,
            )
    return total


def losses_document(losses: Mapping[str, DirectionLoss]) -> dict[str, Any] | None:
    """The document for JSON and storage; None where there is no result."""
    return {name: loss.to_document() for name, loss in losses.items()} or None


CLEAN_TIME_RETRIES = 1
"""Repetitions of trials with too little clean time. Each of them waited for clean time until twice its
duration: such a host does not have one bad moment, it is busy."""


@dataclass(slots=True, kw_only=True)
class InvalidAttempts:
    """Counts the INVALID trials at one load, until that load is given up as the tester's ceiling
    (R2544-39)."""

    invalid_retries: int
    """Repetitions where the tester did not offer the load: it will hardly do so the next time."""
    patience: int
    """Repetitions where the load was offered, but a moment of the host spoiled the trial."""
    count: int = 0
    not_offered: int = 0
    too_little_clean: int = 0
    offered_fps: float = 0.0
    """The most that was offered in one of them."""

    def note(self, result: TrialResult, *, is_patient: bool = False) -> None:
        """Count one INVALID trial.

        Args:
            is_patient: Whatever spoiled it, patience is called for: a whole search hangs on this trial.
        """
        self.count += 1
        self.not_offered += not (result.was_spoiled_by_a_moment or is_patient)
        self.too_little_clean += result.has_too_little_clean_time
        self.offered_fps = max(self.offered_fps, result.offered_fps)

    @property
    def are_exhausted(self) -> bool:
        return (
            self.not_offered > self.invalid_retries
            or self.too_little_clean > CLEAN_TIME_RETRIES
            or self.count > self.patience
        )


def sent_longer(results: Iterable[TrialResult]) -> float:
    """How many times as long as their durations trials are sent until enough time is clean; 1 or more. For
    estimates of the time left."""
    waited = [result for result in results if result.clean is not None and result.stopped_early_s is None]
    wanted_s = sum(result.intended_duration_s for result in waited)
    return max(1.0, sum(result.sent_s for result in waited) / wanted_s) if wanted_s > 0 else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Uncharged:
    """Attempts with loss that were INVALID and did not count, at the load that a search reports or within its
    precision of it."""

    load_fps: float
    """What the search reports, per direction."""
    attempt: int
    """Attempt of the trial that confirmed it; the first is 1."""
    attempts_allowed: int
    at_load: int
    """How many of the attempts before lost frames."""
    near: int
    """The same, at other loads within the precision."""

    @property
    def count(self) -> int:
        return self.at_load + self.near

    @property
    def text(self) -> str:
        """For people."""
        where = (
            "at this load"
            if not self.near
            else "at a load within the search's precision of it"
            if self.near == self.count == 1
            else f"at this load or within the search's precision of it ({self.near} of them)"
        )
        trials = "1 INVALID trial" if self.count == 1 else f"{self.count} INVALID trials"
        they = "it does" if self.count == 1 else "they do"
        return (
            f"{format_count(self.load_fps)} fps per direction passed at attempt {self.attempt} of at most"
            f" {self.attempts_allowed}; {trials} {where} lost frames, but {they} not count against the DUT,"
            " because the tester may have caused the loss"
        )

    def to_document(self) -> dict[str, Any]:
        return {
            "load_fps": self.load_fps,
            "attempt": self.attempt,
            "attempts_allowed": self.attempts_allowed,
            "uncharged_at_load": self.at_load,
            "uncharged_near": self.near,
        }


def uncharged_attempts(
    trials: Sequence[SearchTrial], load_fps: float | None, *, precision: float, patience: int
) -> Uncharged | None:
    """What was tried again at the reported load; None if no INVALID trial there had loss, or if there is no
    load."""
    if load_fps is None:
        return None
    lossy = [
        trial.load_fps
        for trial in trials
        if not trial.result.is_valid
        and not trial.result.was_stopped
        and trial.result.lost_frames > 0
        and abs(trial.load_fps - load_fps) <= precision * max(trial.load_fps, load_fps)
    ]
    if not lossy:
        return None
    confirmed = [trial.attempt for trial in trials if trial.result.is_valid and trial.load_fps == load_fps]
    at_load = sum(load == load_fps for load in lossy)
    return Uncharged(
        load_fps=load_fps,
        attempt=confirmed[-1] if confirmed else 1,
        attempts_allowed=1 + patience,
        at_load=at_load,
        near=len(lossy) - at_load,
    )
