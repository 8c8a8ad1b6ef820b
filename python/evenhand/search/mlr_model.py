# SPDX-License-Identifier: Apache-2.0
"""Station 8: the goals of an MLRsearch (RFC 9971). Loads are per direction (MLR-02)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median
from typing import Any, ClassVar

from evenhand.base.errors import RequestError
from evenhand.base.units import format_count, format_duration, format_ratio
from evenhand.base.validation.typed_fields import check_types
from evenhand.search.model import (
    DEFAULT_INVALID_RETRIES,
    DEFAULT_PATIENCE,
    FULL_LENGTH_S,
    Outcome,
    check_loads,
    check_retries,
    found_to,
    is_outcome_at_least,
)
from evenhand.search.search_trial import (
    DirectionLoss,
    SearchTrial,
    Uncharged,
    losses_document,
    losses_in,
    uncharged_attempts,
)
from evenhand.trial import Deviation, TrialResult, Verdict

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
    is_max_ceiling: bool = False
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
            **({"is_max_ceiling": True} if self.is_max_ceiling else {}),
            "min_fps": self.lowest_fps,
            "goals": [goal.to_document() for goal in self.goals],
            "loss_ratio": self.loss_ratio,
            "invalid_retries": self.invalid_retries,
            "patience": self.patience,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalResult:
    """What was found for one goal: regular, or irregular and why (MLR-10)."""

    goal: MlrGoal
    outcome: Outcome
    lower_fps: float | None
    """Relevant Lower Bound: the result. None if no load is one."""
    upper_fps: float | None
    """Relevant Upper Bound."""
    conditional_throughput_fps: float | None
    """Forwarding rate that is typical for the lower bound (MLR-09)."""

    @property
    def is_regular(self) -> bool:
        return self.outcome is Outcome.FOUND

    @property
    def throughput_fps(self) -> float | None:
        """The lower bound; None where the user ended the search."""
        return self.lower_fps if self.is_regular or is_outcome_at_least(self.outcome) else None

    @property
    def is_at_least(self) -> bool:
        """Whether the throughput is only known to be no lower: maximum or tester ended the search, not the
        device."""
        return self.throughput_fps is not None and is_outcome_at_least(self.outcome)

    @property
    def found_to(self) -> float | None:
        """As in `ThroughputResult`, beside the goal's width."""
        return found_to(self.outcome, self.lower_fps, self.upper_fps, self.goal.width)

    def to_document(self) -> dict[str, Any]:
        return {
            **self.goal.to_document(),
            "outcome": str(self.outcome),
            "is_regular": self.is_regular,
            "lower_fps_per_direction": self.lower_fps,
            "upper_fps_per_direction": self.upper_fps,
            "conditional_throughput_fps_per_direction": self.conditional_throughput_fps,
        }


_GRAVEST_FIRST = (
    Outcome.STOPPED,
    Outcome.TESTER_CEILING,
    Outcome.BELOW_MINIMUM,
    Outcome.AT_OR_ABOVE_MAXIMUM,
    Outcome.FOUND,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MlrResult:
    """What a search found for each goal, in the order of the goals; all its trials, in order."""

    goal: MlrGoals
    goals: tuple[GoalResult, ...]
    above_ceiling_fps: float | None
    """Lowest load that stayed INVALID; it says nothing of the device."""
    trials: tuple[SearchTrial, ...]

    @property
    def outcome(self) -> Outcome:
        """The gravest among the goals: found only if the result of each is regular."""
        return min((result.outcome for result in self.goals), key=_GRAVEST_FIRST.index)

    @property
    def strictest(self) -> GoalResult:
        """The goal with the smallest loss ratio, the first of several."""
        return min(self.goals, key=lambda result: result.goal.loss_ratio)

    @property
    def throughput_fps(self) -> float | None:
        """Throughput of the strictest goal, per direction."""
        return self.strictest.throughput_fps

    @property
    def is_at_least(self) -> bool:
        """Whether that is a lower bound."""
        return self.strictest.is_at_least

    @property
    def is_ceiling_reached(self) -> bool:
        """Whether the tester's own ceiling was the maximum, and passed for the strictest goal."""
        return self.goal.is_max_ceiling and self.throughput_fps == self.goal.max_fps

    @property
    def uncharged(self) -> tuple[Uncharged, ...]:
        """For each load that is reported for a goal: attempts with loss that were INVALID, and so not
        charged."""
        found = (
            uncharged_attempts(
                self.trials, result.throughput_fps, precision=result.goal.width, patience=self.goal.patience
            )
            for result in self.goals
        )
        return tuple({each.load_fps: each for each in found if each is not None}.values())

    @property
    def upper_fps(self) -> float | None:
        return self.strictest.upper_fps

    @property
    def highest_offered_fps(self) -> float | None:
        """Highest load that a valid trial really offered."""
        return max((t.result.offered_fps for t in self.trials if t.result.is_valid), default=None)

    def losses_of(self, found: GoalResult) -> dict[str, DirectionLoss]:
        """What each direction lost at the goal's lower bound, over the valid trials of full length there."""
        return losses_in(self._at_lower_bound(found))

    def sustainable_fps_of(self, found: GoalResult) -> float | None:
        """Where a queue of the DUT was filling in more than half of those trials: the load it would sustain,
        their median. Longer trials would refute the lower bound; what RFC 9971 makes of the trials that were
        made remains valid."""
        trials = self._at_lower_bound(found)
        filling = [t.sustainable_fps for t in trials if t.sustainable_fps is not None]
        if found.lower_fps is None or 2 * len(filling) <= len(trials):
            return None
        sustainable_fps = median(filling)
        return sustainable_fps if sustainable_fps / (1 - found.goal.loss_ratio) < found.lower_fps else None

    def _at_lower_bound(self, found: GoalResult) -> list[TrialResult]:
        return [
            t.result
            for t in self.trials
            if t.result.is_valid
            and t.load_fps == found.lower_fps
            and t.result.intended_duration_s >= found.goal.final_duration_s
        ]

    @property
    def losses(self) -> dict[str, DirectionLoss]:
        """Losses of the strictest goal."""
        return self.losses_of(self.strictest) if self.throughput_fps is not None else {}

    def count(self, verdict: Verdict) -> int:
        return sum(t.result.verdict is verdict for t in self.trials)

    def to_document(self) -> dict[str, Any]:
        """For JSON and storage; the trials' own documents are kept beside it."""
        return {
            "outcome": str(self.outcome),
            "throughput_fps_per_direction": self.throughput_fps,
            "is_at_least": self.is_at_least,
            "upper_fps_per_direction": self.upper_fps,
            "highest_offered_fps_per_direction": self.highest_offered_fps,
            "above_ceiling_fps_per_direction": self.above_ceiling_fps,
            "loss_by_direction": losses_document(self.losses),
            "verdicts": {str(verdict): self.count(verdict) for verdict in Verdict},
            "sustainable_fps_per_direction": self.sustainable_fps_of(self.strictest),
            "goals": [
                {
                    **result.to_document(),
                    "loss_by_direction": losses_document(self.losses_of(result)),
                    "sustainable_fps_per_direction": self.sustainable_fps_of(result),
                }
                for result in self.goals
            ],
            "uncharged": next(
                (each.to_document() for each in self.uncharged if each.load_fps == self.throughput_fps), None
            ),
            "goal": self.goal.to_document(),
        }
