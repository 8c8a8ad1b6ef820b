# SPDX-License-Identifier: Apache-2.0
"""The goal of the tester's own ceiling, from its options."""

from __future__ import annotations

from evenhand.base.errors import RequestError
from evenhand.base.units import parse_duration, parse_rate, parse_ratio
from evenhand.procedure import CeilingGoal


def read_ceiling_goal(
    *, maximum_rate: str | None, minimum_rate: str | None, duration: str, precision: str
) -> CeilingGoal:
    """The goal from the options. RequestError names the option."""
    goal = CeilingGoal(
        max_fps=None if maximum_rate is None else parse_rate(maximum_rate, where="--maximum-rate"),
        min_fps=None if minimum_rate is None else parse_rate(minimum_rate, where="--minimum-rate"),
        duration_s=parse_duration(duration, where="--duration"),
        precision=parse_ratio(precision, where="--precision"),
    )
    if goal.duration_s <= 0:
        raise RequestError(
            f"{duration!r} must be greater than 0",
            code="cli.out-of-range",
            where="--duration",
            next_step="Write a duration such as 1s.",
        )
    if not 0 < goal.precision < 1:
        raise RequestError(
            f"{precision!r} must be between 0 and 1",
            code="cli.out-of-range",
            where="--precision",
            next_step="Use 5%.",
        )
    if goal.max_fps is not None and goal.min_fps is not None and goal.min_fps > goal.max_fps:
        raise RequestError(
            f"{minimum_rate!r} is above the maximum rate {maximum_rate!r}",
            code="cli.minimum-above-maximum",
            where="--minimum-rate",
            next_step="Use a lower rate, or omit the option.",
        )
    return goal
