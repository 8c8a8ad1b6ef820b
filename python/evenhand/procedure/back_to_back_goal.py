# SPDX-License-Identifier: Apache-2.0
"""Procedure: what a back-to-back test is asked for (RFC 9004)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from evenhand.base.errors import RequestError
from evenhand.base.units import format_duration, format_rate
from evenhand.procedure.descriptor import KnownThroughput
from evenhand.results.goal import ProcedureGoal, check_above_zero, check_repetitions
from evenhand.search import FULL_LENGTH_S, ThroughputGoal

REPETITIONS = 50
"""R9004-06."""
LONGEST_BURST_S = 30.0
"""R9004-04."""
NEAR_MAXIMUM = 0.95
"""A result at or above this share of the longest burst that is tried may be the search's limit, not the DUT's
(R9004-04)."""
RAISE = 4.0
"""Factor by which the longest burst is raised after such a result, up to LONGEST_BURST_S."""
RESIDUAL_S = 2.0
"""R9004-03."""


def is_near(frames: int, max_frames: int) -> bool:
    """Whether so long a burst may be the search's limit and not the DUT's (R9004-04)."""
    return frames >= NEAR_MAXIMUM * max_frames


@dataclass(frozen=True, slots=True, kw_only=True)
class BackToBackGoal(ProcedureGoal):
    """Longest burst, precision of the search, and number of repetitions."""

    rate_fps: float = math.inf
    """Rate within the burst, per direction; UP_TO_LINE_RATE: the maximum theoretical frame rate. Less is a
    deviation."""
    max_burst_s: float = 2.0
    """Longest burst that is tried at first; 30 s at most. If the result is near it, longer bursts are tried,
    up to 30 s."""
    step_frames: int = 1
    """The search ends when its bounds are no further apart."""
    repetitions: int = REPETITIONS
    loss_verifications: int = 0
    """How often a burst that lost frames is sent again before the loss counts (ETSI TST009, 12.3)."""
    throughput_fps: float | None = None
    """Known throughput per direction; None: it is measured first."""
    throughput_source: str | None = None
    """Where it was measured under the same conditions; None: the user stated it, which is a deviation."""
    is_throughput_at_least: bool = False
    """It is a lower bound, which would make the corrected buffer time an upper one: nothing is measured with
    it, unless it is the rate of the bursts."""
    throughput_goal: ThroughputGoal | None = None
    """Goal of the search for it. Default: a `ThroughputGoal`, up to the rate of the bursts."""
    actual_fps: float | None = None
    """Another rate for which the buffer time is reported."""

    def check(self) -> None:
        check_above_zero(self.rate_fps, f"rate {self.rate_fps} fps", where="rate_fps")
        if not 0 < self.max_burst_s <= LONGEST_BURST_S:
            raise RequestError(
                f"bursts of up to {self.max_burst_s:g} s: must be greater than 0 s and at"
                f" most {LONGEST_BURST_S:g} s",
                code="procedure.out-of-range",
                where="max_burst_s",
                next_step=f"Write 2s, or at most {LONGEST_BURST_S:g}s.",
            )
        if math.isfinite(self.rate_fps) and self.max_frames < 1:
            raise RequestError(
                f"a burst of {format_duration(self.max_burst_s)} at {format_rate(self.rate_fps)}"
                " is too short for a single frame",
                code="procedure.burst-too-short",
                where="max_burst_s",
                next_step="Allow longer bursts.",
            )
        if self.step_frames < 1:
            raise RequestError(
                f"a step of {self.step_frames} frames: must be at least 1",
                code="procedure.out-of-range",
                where="step_frames",
                next_step="Write 1.",
            )
        check_repetitions(self.repetitions, REPETITIONS)
        if self.loss_verifications < 0:
            raise RequestError(
                f"{self.loss_verifications} loss verifications: must be at least 0",
                code="procedure.out-of-range",
                where="loss_verifications",
            )
        for rate_fps, where in ((self.throughput_fps, "throughput_fps"), (self.actual_fps, "actual_fps")):
            if rate_fps is not None:
                check_above_zero(rate_fps, f"{rate_fps} fps", where=where)

    @property
    def longest_trial_s(self) -> float:
        """Length of the sending phase: that of the throughput search if it comes first. Later bursts may be
        longer than the first ones."""
        if self.throughput_fps is not None:
            return self.max_burst_s
        search_s = FULL_LENGTH_S if self.throughput_goal is None else self.throughput_goal.longest_trial_s
        return max(self.max_burst_s, search_s)

    @property
    def max_frames(self) -> int:
        """Frames of the longest burst that is tried at first; the rate must be known."""
        return self.frames_in(self.max_burst_s)

    def frames_in(self, burst_s: float) -> int:
        """Frames of a burst of this duration; the rate must be known."""
        return math.floor(burst_s * self.rate_fps + 1e-6)

    def after(self, known: KnownThroughput) -> BackToBackGoal:
        """The same with a throughput that need not be measured."""
        return replace(
            self,
            throughput_fps=known.fps,
            throughput_source=known.source,
            is_throughput_at_least=known.is_at_least,
        )

    def to_document(self) -> dict[str, Any]:
        return {
            "rate_fps_per_direction": self.rate_fps,
            "max_burst_s": self.max_burst_s,
            "max_burst_frames": self.max_frames,
            "step_frames": self.step_frames,
            "repetitions": self.repetitions,
            "loss_verifications": self.loss_verifications,
            "throughput_fps_per_direction": self.throughput_fps,
            "throughput_source": self.throughput_source,
            **({"is_throughput_at_least": True} if self.is_throughput_at_least else {}),
            "actual_fps_per_direction": self.actual_fps,
            "invalid_retries": self.invalid_retries,
            "patience": self.patience,
        }
