# SPDX-License-Identifier: Apache-2.0
"""Results: frame loss over the load (RFC 2544, 26.3): what it is asked for, and what it found."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from evenhand.base.errors import RequestError
from evenhand.base.units import format_ratio
from evenhand.base.validation.document import at_key
from evenhand.results.goal import ProcedureGoal, check_above_zero
from evenhand.search import FULL_LENGTH_S
from evenhand.trial import Reason

LARGEST_STEP = 0.1
"""R2544-27: "at most 10 percent of the maximum rate"; finer is allowed."""
SMALLEST_STEP = 0.001


class LossOutcome(StrEnum):
    """How a loss series ended."""

    LOSSLESS = "lossless"
    """Two successive loads lost nothing: the series is complete (R2544-27)."""
    LOWEST_LOAD = "lowest_load"
    """No lower load was left."""
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class LossGoal(ProcedureGoal):
    """Loads of the series, and duration of trials. Loads are per direction."""

    max_fps: float = math.inf
    """The load of 100 %; UP_TO_LINE_RATE: the maximum theoretical frame rate."""
    step: float = LARGEST_STEP
    """Share of the maximum by which the load is lowered; 0.1 at most (R2544-27)."""
    duration_s: float = FULL_LENGTH_S
    """Duration of each trial (R2544-20)."""

    def check(self) -> None:
        check_above_zero(self.max_fps, f"maximum rate {self.max_fps} fps", where="max_fps")
        if not SMALLEST_STEP <= self.step <= LARGEST_STEP:
            raise RequestError(
                f"a step of {format_ratio(self.step)}: steps must be at most"
                f" {format_ratio(LARGEST_STEP)} of the maximum (RFC 2544, 26.3), and at least"
                f" {format_ratio(SMALLEST_STEP)}",
                code="procedure.out-of-range",
                where="step",
                next_step="Use 10% or less.",
            )
        what = f"duration {self.duration_s} s"
        check_above_zero(self.duration_s, what, where="duration_s", next_step="Write 60s.")

    @property
    def longest_trial_s(self) -> float:
        """Length of the sending phase."""
        return self.duration_s

    @property
    def shares(self) -> list[float]:
        """The loads as shares of the maximum, from 1 down."""
        # Counted, not subtracted: 0.1 ten times from 1 is not 0.
        return [1 - i * self.step for i in range(math.ceil(1 / self.step - 1e-9))]


@dataclass(frozen=True, slots=True, kw_only=True)
class LossAtLoad:
    """One load of the series. Loads are per direction."""

    share_of_maximum: float
    share_of_theoretical: float | None = None
    """None: the ports do not know their line rate."""
    intended_fps: float | None = at_key("intended_fps_per_direction", None)
    offered_fps: float | None = at_key("offered_fps_per_direction", None)
    loss_ratio: float | None = None
    """Over all directions; None without a valid trial, like the lost frames."""
    lost_frames: int | None = None
    attempts: int = 1
    reasons: tuple[Reason, ...] = ()
    """Why the last of them was INVALID; none if it was valid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LossFound:
    """What was found, as a run file has it in addition to the trials."""

    outcome: str
    points: tuple[LossAtLoad, ...]
    """From the highest load down."""
    verdicts: Mapping[str, int]
    goal: LossGoal
