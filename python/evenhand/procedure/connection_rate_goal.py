# SPDX-License-Identifier: Apache-2.0
"""Procedure: what a search of the maximum connection establishment rate is asked for (RFC 9693, 4.5)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from evenhand.base.errors import RequestError
from evenhand.base.units import format_ratio
from evenhand.base.validation.typed_fields import check_types
from evenhand.procedure.connection_trials import DEFAULT_ALPHA, longest_idle_s
from evenhand.procedure.connection_wish import OrderName, check_connections
from evenhand.search import DEFAULT_INVALID_RETRIES, DEFAULT_PATIENCE, ThroughputGoal, TrialTime

DEFAULT_CONNECTIONS = 400_000
"""The smallest number of the scalability series (R9693-18): 40,000 source ports x 10 destination ports."""
LEAST_SHARE = 0.01
"""Share of the maximum rate below which nothing is tried unless the user asks for it: a trial lasts as long
as its connections take."""
LIKELY_MAXIMUM_FPS = 1e6
"""For estimates of time, as long as the maximum is not known."""
LIKELY_SHARE_OPENED = 0.2
"""Share of the maximum at which a DUT is taken to open connections of which nothing is known yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionRateGoal:
    """How many connections, and where to search. Rates are frames, and so connections, per second."""

    connections: int = DEFAULT_CONNECTIONS
    max_fps: float = math.inf
    """Highest rate that is tried; UP_TO_LINE_RATE: the maximum theoretical frame rate."""
    min_fps: float | None = None
    """Lowest; None: a hundredth of the maximum."""
    precision: float = 0.01
    """Stop when the bracket is no wider than this share of its upper bound (R9693-09)."""
    alpha: float = DEFAULT_ALPHA
    """Rate of the validation, as a share of the rate at which connections were opened; below 1
    (R9693-11)."""
    order: OrderName = OrderName.PSEUDORANDOM
    """Others than pseudorandom are deviations (R9693-05)."""
    known_fps: float | None = None
    """A rate that was found before; see `ThroughputGoal`."""
    invalid_retries: int = DEFAULT_INVALID_RETRIES
    patience: int = DEFAULT_PATIENCE

    def __post_init__(self) -> None:
        check_types(self)
        check_connections(self.connections, self.order)
        if not 0 < self.alpha < 1:
            raise RequestError(
                f"connections validated at {format_ratio(self.alpha)} of the rate: must be above 0 and below"
                " 100 %",
                code="procedure.out-of-range",
                where="alpha",
                next_step="Use 50% or 80% (RFC 9693, 4.6).",
            )
        if not math.isinf(self.max_fps):
            self.search_goal()  # checks the rest

    def search_goal(self) -> ThroughputGoal:
        """Rates are searched as loads are. A trial's length follows from its rate; that of the goal is about
        what one near the middle takes, for the estimate of the time left."""
        usual_s = self.connections / (self.max_fps / 2) * (1 + 1 / self.alpha)
        return ThroughputGoal(
            max_fps=self.max_fps,
            min_fps=self.min_fps or self.max_fps * LEAST_SHARE,
            precision=self.precision,
            duration_s=usual_s,
            final_duration_s=usual_s,
            known_fps=self.known_fps,
            stops_early=False,
            invalid_retries=self.invalid_retries,
            patience=self.patience,
        )

    def trial_s(self, waits_s: float) -> TrialTime:
        """Time of a trial at a rate: the connections are opened, and validated if all were."""

        def seconds(rate_fps: float, is_pass: bool) -> float:
            opening_s = self.connections / rate_fps + waits_s
            return opening_s + (self.connections / (self.alpha * rate_fps) + waits_s if is_pass else 0.0)

        return seconds

    def longest_idle_s(self, waits_s: float) -> float | None:
        """How long a connection has no frame, at the lowest rate that is tried; None as long as the maximum
        is the line rate, which is not known yet."""
        if math.isinf(self.max_fps):
            return None
        return longest_idle_s(self.connections, self.search_goal().lowest_fps, self.alpha, waits_s)

    def to_document(self) -> dict[str, Any]:
        return {
            "connections": self.connections,
            "max_fps": self.max_fps,
            "min_fps": self.min_fps,
            "precision": self.precision,
            "alpha": self.alpha,
            "order": str(self.order),
            "invalid_retries": self.invalid_retries,
            "patience": self.patience,
        }


def with_likely_maximum(goal: ConnectionRateGoal) -> ConnectionRateGoal:
    """The goal with a maximum that is finite, to estimate times before it is known."""
    return replace(goal, max_fps=LIKELY_MAXIMUM_FPS) if math.isinf(goal.max_fps) else goal
