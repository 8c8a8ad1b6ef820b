# SPDX-License-Identifier: Apache-2.0
"""Station 8: what each direction lost at the load that a search reports.

A loss ratio above 0 is over all directions together (MLR-03): one direction may lose all that both are
allowed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from evenhand.trial import TrialResult


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
