# SPDX-License-Identifier: Apache-2.0
"""Results: system recovery (RFC 2544, 26.5): what it is asked for, and what it found."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from evenhand.base.validation.document import at_key
from evenhand.plan import Direction
from evenhand.results.goal import ProcedureGoal, check_above_zero, check_repetitions
from evenhand.trial import Load, LoadChange

OVERLOAD = 1.1
"""The overload, as a share of the throughput (R2544-29)."""
LOWERED = 0.5
"""The lowered load, as a share of the overload."""
OVERLOAD_S = 60.0
REPETITIONS = 10
"""RFC 2544 asks for "a number of times"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryGoal(ProcedureGoal):
    """Overload, durations, and number of repetitions. Loads are per direction."""

    throughput_fps: float = at_key("throughput_fps_per_direction")
    """Throughput for this frame size."""
    throughput_source: str | None = None
    """Where it was measured under the same conditions; None: the user stated it, which is a deviation."""
    is_throughput_at_least: bool = at_key(None, False)
    """It is a lower bound, of which 110 % may be no overload: refused unless it is the line rate."""
    duration_s: float = OVERLOAD_S
    """Duration of the overload."""
    observe_s: float = OVERLOAD_S
    """Duration of the load that follows."""
    repetitions: int = REPETITIONS

    def check(self) -> None:
        what = f"throughput {self.throughput_fps} fps"
        check_above_zero(self.throughput_fps, what, where="throughput_fps")
        for value_s, where in ((self.duration_s, "duration_s"), (self.observe_s, "observe_s")):
            check_above_zero(value_s, f"{value_s} s", where=where, next_step="Write 60s.")
        check_repetitions(self.repetitions, REPETITIONS)

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

    @property
    def is_full_length(self) -> bool:
        """Whether the overload is as long as the RFC requires."""
        return self.duration_s >= OVERLOAD_S


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryFigures:
    """The recovery times of one direction, in s, and what spoils them."""

    average_s: float | None = None
    """Which RFC 2544 requires; None, like the others, without a valid repetition."""
    minimum_s: float | None = None
    maximum_s: float | None = None
    median_s: float | None = None
    values: tuple[float, ...] = ()
    """One of each valid repetition."""
    lost_frames: int = 0
    lossless_repetitions: int = 0
    """Those in which the overload lost nothing, so that there was nothing to recover from."""
    still_losing_repetitions: int = 0
    """Those that lost frames until the end, so that the time is a lower bound."""
    doubtful_repetitions: int = 0
    """Those in which the tester's own lapses may explain all frames that were lost after the drop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryFound:
    """What was found, as a run file has it in addition to the trials."""

    outcome: str
    overload_fps: float | None = at_key("overload_fps_per_direction", None)
    lowered_fps: float | None = at_key("lowered_fps_per_direction", None)
    figures: Mapping[Direction, RecoveryFigures]
    verdicts: Mapping[str, int]
    goal: RecoveryGoal
