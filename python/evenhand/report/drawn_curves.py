# SPDX-License-Identifier: Apache-2.0
"""Station 10: curves of throughput, as numbers and labels, before they are drawn."""

from __future__ import annotations

from dataclasses import dataclass

from evenhand.procedure.statistics import Statistics


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnPoint:
    """One place on the x axis, and what each repetition gave there."""

    x: float
    values: tuple[float, ...]
    """Empty: it ended without a number."""
    predicted: float | None = None
    is_at_least: bool = False
    """The median is a lower bound."""
    lower_bounds: tuple[bool, ...] = ()
    """Which of the values are lower bounds; empty: none."""

    @property
    def statistics(self) -> Statistics | None:
        return Statistics.of(self.values, lower_bounds=self.lower_bounds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plateau:
    """Where a curve is level: between two x, at a level with a spread."""

    first_x: float
    last_x: float
    low: float
    level: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnCurve:
    """Points that belong together, such as those of a suite."""

    label: str
    points: tuple[DrawnPoint, ...]
    plateau: Plateau | None = None

    @property
    def measured(self) -> tuple[DrawnPoint, ...]:
        return tuple(point for point in self.points if point.values)
