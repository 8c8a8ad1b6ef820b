# SPDX-License-Identifier: Apache-2.0
"""Procedure: what a search of the capacity of a connection table is asked for (RFC 9693, 4.9)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from evenhand.base.errors import RequestError
from evenhand.base.units import format_count
from evenhand.base.validation.typed_fields import check_types
from evenhand.plan import MAX_CONNECTIONS
from evenhand.procedure.connection_rate_goal import ConnectionRateGoal
from evenhand.procedure.connection_trials import DEFAULT_ALPHA, longest_idle_s
from evenhand.procedure.connection_wish import check_connections
from evenhand.search import DEFAULT_INVALID_RETRIES, DEFAULT_PATIENCE

BETA = 0.1
"""The table is too small for twice the connections if their rate falls below this share (R9693-14)."""
GAMMA = 0.5
"""The same between two numbers of connections."""
DEFAULT_START = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityGoal:
    """Where to search. Rates are connections per second."""

    start: int = DEFAULT_START
    """Connections that the DUT surely holds (C0)."""
    most: int = MAX_CONNECTIONS
    """More are not tried."""
    precision: float = 0.01
    """Stop when the bracket is no wider than this share of its upper bound (E)."""
    max_fps: float = math.inf
    """Highest rate of new connections that is tried."""
    rate_precision: float = 0.1
    """Precision of each rate that is found on the way."""
    alpha: float = DEFAULT_ALPHA
    """See `ConnectionRateGoal`."""
    invalid_retries: int = DEFAULT_INVALID_RETRIES
    patience: int = DEFAULT_PATIENCE

    def __post_init__(self) -> None:
        check_types(self)
        check_connections(self.start, "pseudorandom")
        if not self.start <= self.most <= MAX_CONNECTIONS:
            raise RequestError(
                f"at most {self.most} connections: must be {self.start} to {format_count(MAX_CONNECTIONS)}",
                code="procedure.out-of-range",
                where="most",
            )
        if not 0 < self.precision < 1:
            raise RequestError(
                f"precision {self.precision}: must be between 0 and 1",
                code="procedure.out-of-range",
                where="precision",
                next_step="Use 1%.",
            )
        self.rate_goal(self.start, None)  # checks the rest

    def longest_idle_s(self, waits_s: float) -> float | None:
        """How long, as far as it is known before, one of the first number of connections has no frame, or one
        of the most, if so many are to be tried, even at the highest rate. None as long as that is the
        line rate."""
        first_s = self.rate_goal(self.start, None).longest_idle_s(waits_s)
        if first_s is None or self.most == MAX_CONNECTIONS:
            return first_s
        return max(first_s, longest_idle_s(self.most, self.max_fps, self.alpha, waits_s))

    def rate_goal(
        self, connections: int, least_fps: float | None, known_fps: float | None = None
    ) -> ConnectionRateGoal:
        """The goal for the rate of so many connections, which matters down to `least_fps` only.

        Args:
            known_fps: The rate of fewer connections.
        """
        return ConnectionRateGoal(
            connections=connections,
            max_fps=self.max_fps,
            min_fps=least_fps,
            known_fps=known_fps,
            precision=self.rate_precision,
            alpha=self.alpha,
            invalid_retries=self.invalid_retries,
            patience=self.patience,
        )

    def to_document(self) -> dict[str, Any]:
        return {
            "start": self.start,
            "most": self.most,
            "precision": self.precision,
            "max_fps": self.max_fps,
            "rate_precision": self.rate_precision,
            "alpha": self.alpha,
            "beta": BETA,
            "gamma": GAMMA,
        }
