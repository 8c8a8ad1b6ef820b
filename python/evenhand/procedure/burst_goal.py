# SPDX-License-Identifier: Apache-2.0
"""Procedure: what a test with bursty traffic is asked for (RFC 2544, 21)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from evenhand.base.errors import RequestError
from evenhand.base.units import format_count
from evenhand.base.validation.typed_fields import check_types
from evenhand.search import DEFAULT_INVALID_RETRIES, DEFAULT_PATIENCE, FULL_LENGTH_S, ThroughputGoal

RFC_BURSTS = (16, 64, 256, 1024)
"""Frames of a burst (R2544-17)."""
MOST_BURST_FRAMES = 1_000_000
LEAST_BURSTS = 2
"""Fewest bursts of a trial: fewer have no interval between them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BurstGoal:
    """Sizes of bursts, and goal of the search for their interval."""

    burst_frames: tuple[int, ...] = RFC_BURSTS
    rate_fps: float = math.inf
    """Rate within a burst, per direction; UP_TO_LINE_RATE: the maximum theoretical frame rate. Less is a
    deviation."""
    precision: float = 0.005
    """The search ends when the bounds of the interval are no further apart than this share."""
    duration_s: float = 5.0
    """Length of the trials of a search."""
    final_duration_s: float = FULL_LENGTH_S
    """Length of the trial that confirms its result (R2544-20)."""
    invalid_retries: int = DEFAULT_INVALID_RETRIES
    patience: int = DEFAULT_PATIENCE
    """The same as in searches."""

    def __post_init__(self) -> None:
        check_types(self)
        if not self.rate_fps > 0:
            raise RequestError(
                f"rate {self.rate_fps} fps: must be greater than 0",
                code="procedure.out-of-range",
                where="rate_fps",
                next_step="Write 1Mfps.",
            )
        if not self.burst_frames or len(set(self.burst_frames)) < len(self.burst_frames):
            raise RequestError(
                "no burst size, or the same size twice",
                code="procedure.not-burst-sizes",
                where="burst_frames",
                next_step="Write 16,64,256,1024.",
            )
        for frames in self.burst_frames:
            if not 1 <= frames <= MOST_BURST_FRAMES:
                raise RequestError(
                    f"bursts of {format_count(frames)} frames: must be 1 to"
                    f" {format_count(MOST_BURST_FRAMES)}",
                    code="procedure.out-of-range",
                    where="burst_frames",
                    next_step="Write 16,64,256,1024.",
                )
            self.search_goal(frames)

    @property
    def longest_trial_s(self) -> float:
        """Most that a sending phase takes: it has a whole number of intervals, and the longest is that of
        LEAST_BURSTS bursts in a trial of the search."""
        return self.final_duration_s + self.duration_s / LEAST_BURSTS

    def search_goal(self, frames: int) -> ThroughputGoal:
        """The goal for bursts of this size. The search is that for a throughput, by the mean load over bursts
        and silence.

        Raises RequestError if too few bursts fit into a trial.
        """
        least_fps = LEAST_BURSTS * frames / self.duration_s if self.duration_s > 0 else math.inf
        if self.duration_s > 0 and least_fps > self.rate_fps:
            raise RequestError(
                f"{LEAST_BURSTS} bursts of {format_count(frames)} frames do not fit into a trial",
                code="procedure.bursts-too-long",
                where="burst_frames, duration_s",
                next_step="Make the trials longer, or the bursts shorter.",
            )
        return ThroughputGoal(
            max_fps=self.rate_fps,
            min_fps=None
            if math.isinf(self.rate_fps)
            else min(self.rate_fps, max(self.rate_fps / 1000, least_fps)),
            precision=self.precision,
            duration_s=self.duration_s,
            final_duration_s=self.final_duration_s,
            stops_early=False,
            invalid_retries=self.invalid_retries,
            patience=self.patience,
        )

    def to_document(self) -> dict[str, Any]:
        return {
            "burst_frames": list(self.burst_frames),
            "rate_fps_per_direction": self.rate_fps,
            "precision": self.precision,
            "duration_s": self.duration_s,
            "final_duration_s": self.final_duration_s,
            "invalid_retries": self.invalid_retries,
            "patience": self.patience,
        }
