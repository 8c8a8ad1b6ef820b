# SPDX-License-Identifier: Apache-2.0
"""Results: what a search for a throughput found, as a file or a live result says it (R2544-23, MLR-11)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from evenhand.base.validation.document import at_key
from evenhand.plan import Direction
from evenhand.search import DirectionLoss, Outcome, is_outcome_at_least


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchAsked:
    """What a search was asked for (`ThroughputGoal`, `MlrGoals`), as far as its result is read by it."""

    search: str = ""
    max_fps: float | None = None
    is_max_ceiling: bool = False
    min_fps: float | None = None
    precision: float | None = None
    duration_s: float | None = None
    final_duration_s: float | None = None
    loss_ratio: float = 0.0
    loss_verifications: int = 0
    plain_loss_ratio: float | None = None
    invalid_retries: int | None = None
    patience: int | None = None
    known_fps: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalFound:
    """One goal of several, and what was found for it (`GoalResult`)."""

    name: str = ""
    loss_ratio: float = 0.0
    exceed_ratio: float | None = None
    final_duration_s: float | None = None
    duration_sum_s: float | None = None
    initial_duration_s: float | None = None
    width: float | None = None
    outcome: str = ""
    lower_fps: float | None = at_key("lower_fps_per_direction", None)
    upper_fps: float | None = at_key("upper_fps_per_direction", None)
    conditional_fps: float | None = at_key("conditional_throughput_fps_per_direction", None)
    losses: Mapping[Direction, DirectionLoss] | None = at_key("loss_by_direction", None)
    sustainable_fps: float | None = at_key("sustainable_fps_per_direction", None)

    @property
    def is_regular(self) -> bool:
        return self.outcome == Outcome.FOUND


@dataclass(frozen=True, slots=True, kw_only=True)
class OnePairFound:
    """The search with one address pair that was made before (SEED-02)."""

    source: str = ""
    outcome: str = ""
    throughput_fps: float | None = at_key("throughput_fps_per_direction", None)
    is_at_least: bool = False
    loss_ratio: float = 0.0
    many_to_one: float | None = None
    """The result with many addresses, as a multiple of this one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CeilingFound:
    """The tester's own ceiling."""

    rate_fps: float = at_key("rate_fps_per_direction")
    found_at: str = ""
    is_new: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ThroughputFound:
    """What was found: of several goals for the strictest. Rates are per direction."""

    outcome: str = ""
    throughput_fps: float | None = at_key("throughput_fps_per_direction", None)
    is_at_least: bool | None = None
    """Whether it is a lower bound; as the outcome says, where it is not stated. None: neither is."""
    upper_fps: float | None = at_key("upper_fps_per_direction", None)
    """Lowest load that failed."""
    highest_passed_fps: float | None = at_key("highest_passed_fps_per_direction", None)
    above_ceiling_fps: float | None = at_key("above_ceiling_fps_per_direction", None)
    losses: Mapping[Direction, DirectionLoss] | None = at_key("loss_by_direction", None)
    """What each direction lost at the throughput; None: no result."""
    sustainable_fps: float | None = at_key("sustainable_fps_per_direction", None)
    """What the DUT would sustain, if a queue of it was filling in what the throughput rests on."""
    goals: tuple[GoalFound, ...] = ()
    goal: SearchAsked = field(default_factory=SearchAsked)
    verdicts: Mapping[str, int] | None = None
    directions: tuple[Direction, ...] = ()
    """Empty where only a part of the document is there, like what follows."""
    rates: Any = None
    """As `read_direction_rates` reads it."""
    theoretical_fps: float | None = at_key("theoretical_fps_per_direction", None)
    ceiling: CeilingFound | None = None
    one_pair: OnePairFound | None = None

    def __post_init__(self) -> None:
        if self.is_at_least is None and self.outcome:
            object.__setattr__(self, "is_at_least", is_outcome_at_least(self.outcome))


def is_lower_bound(found: Any, outcome: str | None) -> bool:
    """Whether the figure of what was found is a lower bound: as its document states, else by its outcome.

    Args:
        found: As `Procedure.read` gives it, of any procedure; None where there is no result.
    """
    is_at_least: bool | None = getattr(found, "is_at_least", None)
    return outcome == Outcome.AT_OR_ABOVE_MAXIMUM if is_at_least is None else is_at_least
