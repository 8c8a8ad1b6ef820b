# SPDX-License-Identifier: Apache-2.0
"""Station 8: the goals of an MLRsearch (RFC 9971). Loads are per direction (MLR-02)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from evenhand.base.errors import RequestError
from evenhand.base.units import format_count, format_duration, format_ratio
from evenhand.base.validation.typed_fields import check_types
from evenhand.search.model import (
    DEFAULT_INVALID_RETRIES,
    DEFAULT_PATIENCE,
    FULL_LENGTH_S,
    check_loads,
    check_retries,
)
from evenhand.trial import Deviation

DEFAULT_EXCEED_RATIO = 0.5
"""MLR-05 recommends it."""
DEFAULT_WIDTH = 0.005
DEFAULT_INITIAL_S = 1.0
MAX_TRIALS = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class MlrGoal:
    """One Search Goal (MLR-05). The defaults are the goal that RFC 9971 calls compliant with TST009: 60 s,
    120 s, 0, 0.5."""

    name: str
    """Such as NDR; unique in a search."""
    loss_ratio: float = 0.0
    """Goal Loss Ratio: a trial that lost more is a high-loss trial."""
    exceed_ratio: float = DEFAULT_EXCEED_RATIO
    """Goal Exceed Ratio: the share of high-loss trial time that a lower bound may have."""
    final_duration_s: float = FULL_LENGTH_S
    """Goal Final Trial Duration: duration of a full-length trial."""
    duration_sum_s: float = 2 * FULL_LENGTH_S
    """Goal Duration Sum: total trial time that settles a load."""
    width: float = DEFAULT_WIDTH
    """Goal Width: largest distance of the relevant bounds, as a share of the upper one."""
    initial_duration_s: float = DEFAULT_INITIAL_S
    """Goal Initial Trial Duration: duration of the trials that only narrow the bounds."""

    def __post_init__(self) -> None:
        check_types(self)
        where = f"goal {self.name}"
        if not 0 <= self.loss_ratio < 1:
            raise RequestError(
                f"loss ratio {self.loss_ratio}: must be at least 0 and less than 1",
                code="search.out-of-range",
                where=where,
                next_step="Use 0 or 0.5%.",
            )
        if not 0 <= self.exceed_ratio < 1:
            raise RequestError(
                f"exceed ratio {self.exceed_ratio:g}: must be at least 0 and less than 1",
                code="search.out-of-range",
                where=where,
                next_step="Use 0.5 as RFC 9971 recommends, or 0 to tolerate no trial with too much loss.",
            )
        if not 0 < self.width < 1:
            raise RequestError(
                f"width {self.width}: must be between 0 and 1",
                code="search.out-of-range",
                where=where,
                next_step="Use 0.5%.",
            )
        if not 0 < self.initial_duration_s <= self.final_duration_s:
            raise RequestError(
                f"the initial trials of {format_duration(self.initial_duration_s)} must be longer"
                " than 0 s, and not longer than the final ones,"
                f" {format_duration(self.final_duration_s)}",
                code="search.durations-contradict",
                where=where,
                next_step="Make the initial duration shorter, or the final one longer.",
            )
        if not self.duration_sum_s >= self.final_duration_s:
            raise RequestError(
                f"a duration sum of {format_duration(self.duration_sum_s)} is less than one final trial of "
                f"{format_duration(self.final_duration_s)}",
                code="search.durations-contradict",
                where=where,
                next_step="Make the sum at least as long as a final trial.",
            )

    @property
    def attributes(self) -> tuple[float, ...]:
        """The values by which two goals are compared."""
        return (
            self.loss_ratio,
            self.exceed_ratio,
            self.final_duration_s,
            self.duration_sum_s,
            self.width,
            self.initial_duration_s,
        )

    def to_document(self) -> dict[str, Any]:
        """Durations in seconds; the width is (upper - lower) / upper."""
        return {
            "name": self.name,
            "loss_ratio": self.loss_ratio,
            "exceed_ratio": self.exceed_ratio,
            "final_duration_s": self.final_duration_s,
            "duration_sum_s": self.duration_sum_s,
            "width": self.width,
            "initial_duration_s": self.initial_duration_s,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class MlrGoals:
    """All goals of one search, and its range of loads. Raises RequestError if they cannot be searched."""

    search: ClassVar[str] = "mlr"
    goals: tuple[MlrGoal, ...]
    max_fps: float
    """Max Load: the line rate, or the user's maximum. Infinite as long as the line rate is not known; a
    search needs a finite one."""
    is_max_testers: bool = False
    """As in `ThroughputGoal`."""
    min_fps: float | None = None
    """Min Load; default a thousandth of the maximum, and a frame in the shortest trial (MLR-12)."""
    invalid_retries: int = DEFAULT_INVALID_RETRIES
    """As in `ThroughputGoal`."""
    patience: int = DEFAULT_PATIENCE
    max_trials: int = MAX_TRIALS
    """Ends a search that would not end otherwise, because the device behaves inconsistently."""

    def __post_init__(self) -> None:
        check_types(self)
        if not self.goals:
            raise RequestError(
                "a search needs at least one goal",
                code="search.no-goal",
                where="goals",
                next_step="Use NDR, or NDR and PDR=0.5%.",
            )
        for n, goal in enumerate(self.goals):
            for other in self.goals[:n]:
                if goal.name == other.name or goal.attributes == other.attributes:
                    raise RequestError(
                        f"{other.name} and {goal.name} are the same goal",
                        code="search.same-goal-twice",
                        where="goals",
                        next_step="Omit one of them.",
                    )
        check_loads(self.max_fps, self.min_fps)
        check_retries(self.invalid_retries, self.patience)
        if not math.isinf(self.max_fps) and self.lowest_fps >= self.max_fps:
            raise RequestError(
                f"the minimum and the maximum rate are both {format_count(self.max_fps)} fps:"
                " there is nothing to search between them",
                code="search.nothing-between-rates",
                where="min_fps",
                next_step="Reduce the minimum, or measure a single trial.",
            )

    @property
    def longest_trial_s(self) -> float:
        """Length of the sending phase."""
        return max(goal.final_duration_s for goal in self.goals)

    @property
    def lowest_fps(self) -> float:
        """The minimum load in use."""
        if self.min_fps is not None:
            return self.min_fps
        return min(
            self.max_fps, max(self.max_fps / 1000, 1 / min(goal.initial_duration_s for goal in self.goals))
        )

    @property
    def loss_ratio(self) -> float:
        """The smallest loss ratio of the goals, by which the measurer distinguishes PASS from FAIL. How a
        goal judges a trial depends only on the loss."""
        return min(goal.loss_ratio for goal in self.goals)

    @property
    def final_duration_s(self) -> float:
        """Trials of this length count as full-length for every goal."""
        return max(goal.final_duration_s for goal in self.goals)

    @property
    def deviations(self) -> list[Deviation]:
        """Where the goals depart from what RFC 9971 recommends."""
        found = [
            Deviation(
                requirement="MLR-12",
                text=f"the width of {goal.name}, {format_ratio(goal.width)}, is less than its"
                f" loss ratio, {format_ratio(goal.loss_ratio)}",
            )
            for goal in self.goals
            if goal.width < goal.loss_ratio
        ]
        if len({goal.final_duration_s for goal in self.goals}) > 1:
            found.append(
                Deviation(requirement="MLR-05", text="the goals have different final trial durations")
            )
        return found

    def to_document(self) -> dict[str, Any]:
        return {
            "search": self.search,
            "max_fps": self.max_fps,
            **({"is_max_testers": True} if self.is_max_testers else {}),
            "min_fps": self.lowest_fps,
            "goals": [goal.to_document() for goal in self.goals],
            "loss_ratio": self.loss_ratio,
            "invalid_retries": self.invalid_retries,
            "patience": self.patience,
        }
