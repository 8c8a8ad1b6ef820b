# SPDX-License-Identifier: Apache-2.0
"""Procedure: what a recovery test is asked for (RFC 2544, 26.5)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from evenhand.base.errors import RequestError
from evenhand.base.validation.typed_fields import check_types
from evenhand.procedure.attempts import check_attempts, check_repetitions
from evenhand.search import DEFAULT_INVALID_RETRIES, DEFAULT_PATIENCE
from evenhand.trial import Load, LoadChange

OVERLOAD = 1.1
"""The overload, as a share of the throughput (R2544-29)."""
LOWERED = 0.5
"""The lowered load, as a share of the overload."""
OVERLOAD_S = 60.0
REPETITIONS = 10
"""RFC 2544 asks for "a number of times"."""
STILL_LOSING = 0.9
"""What is lost so late in the second load says that the DUT may not have recovered at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryGoal:
    """Overload, durations, and number of repetitions. Loads are per direction."""

    throughput_fps: float
    """Throughput for this frame size."""
    throughput_source: str | None = None
    """Where it was measured under the same conditions; None: the user stated it, which is a deviation."""
    is_throughput_at_least: bool = False
    """It is a lower bound, of which 110 % may be no overload: refused unless it is the line rate."""
    duration_s: float = OVERLOAD_S
    """Duration of the overload."""
    observe_s: float = OVERLOAD_S
    """Duration of the load that follows."""
    repetitions: int = REPETITIONS
    invalid_retries: int = DEFAULT_INVALID_RETRIES
    """How often an INVALID trial is repeated, if the tester did not offer the load; as in searches."""
    patience: int = DEFAULT_PATIENCE
    """The same if the load was offered, but the host disturbed the trial for a moment."""

    def __post_init__(self) -> None:
        check_types(self)
        if not 0 < self.throughput_fps < math.inf:
            raise RequestError(
                f"throughput {self.throughput_fps} fps: must be greater than 0",
                code="procedure.out-of-range",
                where="throughput_fps",
                next_step="Write 1Mfps.",
            )
        for value_s, where in ((self.duration_s, "duration_s"), (self.observe_s, "observe_s")):
            if not 0 < value_s < math.inf:
                raise RequestError(
                    f"{value_s} s: must be greater than 0",
                    code="procedure.out-of-range",
                    where=where,
                    next_step="Write 60s.",
                )
        check_repetitions(self.repetitions, REPETITIONS)
        check_attempts(self.invalid_retries, self.patience)

    def load(self, theoretical_fps: float | None) -> Load:
        """110 % of the throughput, or the line rate if that is less; then half of that."""
        overload_fps = min(
            OVERLOAD * self.throughput_fps, math.inf if theoretical_fps is None else theoretical_fps
        )
        then = LoadChange(rate_fps=LOWERED * overload_fps, duration_s=self.observe_s)
        return Load(rate_fps=overload_fps, duration_s=self.duration_s, then=then)

    @property
    def longest_trial_s(self) -> float:
        """Length of the sending phase."""
        return self.duration_s + self.observe_s

    def to_document(self) -> dict[str, Any]:
        return {
            "throughput_fps_per_direction": self.throughput_fps,
            "throughput_source": self.throughput_source,
            "duration_s": self.duration_s,
            "observe_s": self.observe_s,
            "repetitions": self.repetitions,
            "invalid_retries": self.invalid_retries,
            "patience": self.patience,
        }
