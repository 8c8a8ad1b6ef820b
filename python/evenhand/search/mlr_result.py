# SPDX-License-Identifier: Apache-2.0
"""Station 8: what an MLRsearch found for each of its goals (RFC 9971). Loads are per direction (MLR-02)."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import Any

from evenhand.search.attempts import Uncharged, uncharged_attempts
from evenhand.search.losses import DirectionLoss, losses_document, losses_in
from evenhand.search.mlr_goals import MlrGoal, MlrGoals
from evenhand.search.model import Outcome, is_outcome_at_least
from evenhand.search.search_trial import SearchTrial
from evenhand.trial import TrialResult, Verdict


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
    Outcome.TESTER_LIMIT,
    Outcome.BELOW_MINIMUM,
    Outcome.AT_OR_ABOVE_MAXIMUM,
    Outcome.FOUND,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MlrResult:
    """What a search found for each goal, in the order of the goals; all its trials, in order."""

    goal: MlrGoals
    goals: tuple[GoalResult, ...]
    tester_limit_fps: float | None
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
        return self.goal.is_max_testers and self.throughput_fps == self.goal.max_fps

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
            "tester_limit_fps_per_direction": self.tester_limit_fps,
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
