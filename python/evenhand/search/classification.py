# SPDX-License-Identifier: Apache-2.0
"""Station 8: what the trials at a load say about it for a goal (RFC 9971, appendices A and B). Pure
arithmetic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple, Protocol


class LoadClass(StrEnum):
    """The class of one load for one goal."""

    LOWER = "lower bound"
    UPPER = "upper bound"
    UNDECIDED = "undecided"


class Observation(NamedTuple):
    """What classification needs of one valid trial (MLR-04)."""

    duration_s: float
    """Effective duration: that of the sending phase."""
    loss_ratio: float
    """Over all directions together, 0..1 (MLR-03)."""


class Bounds(NamedTuple):
    """The relevant bounds of a goal in frames per second per direction; None where there is none (MLR-08)."""

    lower_fps: float | None
    upper_fps: float | None


class Criteria(Protocol):
    """The attributes of a goal that decide about a load (MLR-05)."""

    @property
    def loss_ratio(self) -> float: ...
    @property
    def exceed_ratio(self) -> float: ...
    @property
    def final_duration_s(self) -> float: ...
    @property
    def duration_sum_s(self) -> float: ...


def classify(goal: Criteria, trials: Iterable[Observation]) -> LoadClass:
    """MLR-07. Short high-loss trials count in so far as short low-loss ones do not balance them; short
    low-loss ones prove nothing."""
    full_low = full_high = short_low = short_high = 0.0
    for trial in trials:
        is_high = trial.loss_ratio > goal.loss_ratio
        if trial.duration_s >= goal.final_duration_s:
            full_low, full_high = (
                (full_low, full_high + trial.duration_s)
                if is_high
                else (full_low + trial.duration_s, full_high)
            )
        else:
            short_low, short_high = (
                (short_low, short_high + trial.duration_s)
                if is_high
                else (short_low + trial.duration_s, short_high)
            )
    excess = max(0.0, short_high - short_low * goal.exceed_ratio / (1 - goal.exceed_ratio))
    effective_high = full_high + excess
    whole = max(effective_high + full_low, goal.duration_sum_s)
    tolerated = whole * goal.exceed_ratio
    if effective_high > tolerated:
        return LoadClass.UPPER
    return LoadClass.LOWER if whole - full_low <= tolerated else LoadClass.UNDECIDED


def relevant_bounds(classes: Mapping[float, LoadClass]) -> Bounds:
    """MLR-08: the smallest upper bound, and the largest lower bound below it, whatever passed above."""
    upper = min((load for load, of in classes.items() if of is LoadClass.UPPER), default=None)
    lower = max(
        (load for load, of in classes.items() if of is LoadClass.LOWER and (upper is None or load < upper)),
        default=None,
    )
    return Bounds(lower, upper)


def conditional_loss_ratio(goal: Criteria, trials: Iterable[Observation]) -> float:
    """MLR-09, by the code of appendix B: a quantile of the full-length trials' loss ratios; time that is
    missing counts as lost."""
    full_length = sorted(
        (t for t in trials if t.duration_s >= goal.final_duration_s), key=lambda trial: trial.loss_ratio
    )
    remaining = max(goal.duration_sum_s, sum(trial.duration_s for trial in full_length)) * (
        1 - goal.exceed_ratio
    )
    quantile = 1.0
    for trial in full_length:
        if remaining <= 0:
            return quantile
        quantile = trial.loss_ratio
        remaining -= trial.duration_s
    return 1.0 if remaining > 0 else quantile
