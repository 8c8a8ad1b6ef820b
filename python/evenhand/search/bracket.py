# SPDX-License-Identifier: Apache-2.0
"""Station 8: what is known of the limit while a search runs. Only valid trials move a bound."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

WHOLE_FPS_FROM = 1000.0
"""Loads from here on are whole frames per second: shorter to read, and far below any precision in use."""


@dataclass(slots=True, kw_only=True)
class Bracket:
    """Loads between which the limit lies, in frames per second per direction.

    A load that passed in a short trial only is a lower bound until a longer trial fails there; the next lower
    passed load then takes its place.
    """

    min_fps: float
    max_fps: float
    precision: float
    """The bracket is narrow when it is no wider than this share of its upper bound."""
    upper_fps: float | None = None
    """Lowest load that failed."""
    passed: dict[float, bool] = field(default_factory=dict)
    """Loads that passed, and whether in a full-length trial."""

    @property
    def lower_fps(self) -> float:
        """Highest load below the upper bound that passed; 0 if there is none."""
        return max((load for load in self.passed if self.upper_fps is None or load < self.upper_fps), default=0.0)

    @property
    def is_confirmed(self) -> bool:
        """Whether the lower bound passed in a full-length trial."""
        return self.passed.get(self.lower_fps, False)

    @property
    def is_narrow(self) -> bool:
        return self.upper_fps is not None and self.upper_fps - self.lower_fps <= self.precision * self.upper_fps

    @property
    def is_below_minimum(self) -> bool:
        """Whether the smallest load that may be used has failed."""
        return self.upper_fps is not None and self.upper_fps <= self.min_fps

    def note_pass(self, load_fps: float, *, is_full_length: bool) -> None:
        self.passed[load_fps] = is_full_length or self.passed.get(load_fps, False)

    def note_fail(self, load_fps: float) -> None:
        self.upper_fps = load_fps if self.upper_fps is None else min(load_fps, self.upper_fps)

    def next_load(self) -> float:
        """The maximum itself, then midpoints; the minimum itself before anything below it (MLR-12, MLR-13)."""
        if self.upper_fps is None:
            return self.max_fps
        if self.is_narrow:
            return self.lower_fps
        middle = (self.lower_fps + self.upper_fps) / 2
        if self.upper_fps - self.lower_fps > 2 and middle >= WHOLE_FPS_FROM:
            middle = float(math.floor(middle))
        return max(middle, self.min_fps)

    def remaining_halvings(self) -> int:
        """How many more loads the bracket needs to be narrow, if trials go on as bisection expects."""
        upper = self.max_fps if self.upper_fps is None else self.upper_fps
        width = upper - self.lower_fps
        # With no lower bound yet, the width shrinks with the upper bound: count from half of it.
        goal = self.precision * (upper if self.lower_fps > 0 else upper / 2)
        return max(0, math.ceil(math.log2(width / goal))) if width > goal > 0 else 0
