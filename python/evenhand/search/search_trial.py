# SPDX-License-Identifier: Apache-2.0
"""Station 8: a trial as part of a search: why it was made, which attempt it is, and what each direction lost
in those that a result rests on.

A loss ratio above 0 is over all directions together (MLR-03): one direction may lose all that both are
allowed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

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
