# SPDX-License-Identifier: Apache-2.0
"""Station 10: how a curve of throughput is drawn: medians, ranges, repetitions, plateau, prediction, and what
has no number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evenhand.procedure.statistics import Statistics
from evenhand.report.figures import LIGHT, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.path import Path


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


AT_LEAST = "at least: a lower bound"
JOINED_WITHIN = 16.0
"""Numbers of addresses that are further apart than by this factor are not joined by a line."""


def draw_curve(axes: Axes, curve: DrawnCurve, number: int, factor: float, *, labelled: bool) -> None:
    # All predictions look alike.
    is_first_predicted = "predicted" not in axes.get_legend_handles_labels()[1]
    look = style(number)
    points = curve.measured
    if curve.plateau is not None:
        flat = curve.plateau
        axes.fill_between(
            [flat.first_x, flat.last_x],
            flat.low / factor,
            flat.high / factor,
            color=look["color"],
            alpha=0.16,
            linewidth=0,
            zorder=1,
            label=None if labelled else "plateau",
        )
    is_log = axes.get_xscale() == "log"
    predicted = [point for point in curve.points if point.predicted is not None]
    if predicted:
        xs, levels = with_gaps(
            [(point.x, (point.predicted or 0) / factor) for point in predicted], is_log=is_log
        )
        axes.plot(
            xs,
            levels,
            color=LIGHT["soft"],
            linestyle=(0, (1, 2)),
            linewidth=1.6,
            zorder=4,
            label="predicted" if is_first_predicted else None,
            marker="_" if len(predicted) == 1 or len(xs) > len(predicted) else None,
            markersize=14,
        )
    if points:
        statistics = [found for point in points if (found := point.statistics) is not None]
        medians = [found.median / factor for found in statistics]
        # From one lower bound to another is not a spread of the DUT.
        bars = [
            (0.0, 0.0)
            if point.is_at_least
            else ((found.median - found.minimum) / factor, (found.maximum - found.median) / factor)
            for point, found in zip(points, statistics, strict=True)
        ]
        places = [point.x for point in points]
        axes.errorbar(
            places,
            medians,
            yerr=list(zip(*bars, strict=True)),
            fmt="none",
            ecolor=look["color"],
            elinewidth=1.1,
            capsize=0,
            zorder=3,
        )
        # Hollow in every second curve: a full marker under it is seen.
        hollow: dict[str, Any] = (
            {"markerfacecolor": LIGHT["paper"], "markeredgewidth": 1.3} if number % 2 else {}
        )
        axes.plot(
            *with_gaps(median_places(curve, factor), is_log=is_log),
            **look,
            **hollow,
            linewidth=1.6,
            markersize=5,
            zorder=4,
            label=curve.label if labelled else "median",
        )
        # Next to the bar, or it would hide them; the same places each time, so that a page does not change.
        dots = [
            (_beside(axes, point.x, index, len(point.values)), value / factor)
            for point in points
            for index, value in enumerate(point.values)
            if len(point.values) > 1
        ]
        if dots:
            axes.scatter(
                [x for x, _ in dots],
                [y for _, y in dots],
                s=7,
                color=look["color"],
                alpha=0.42,
                linewidths=0,
                zorder=2,
            )
    capped = [
        (point.x, found.median / factor)
        for point in points
        if point.is_at_least and (found := point.statistics)
    ]
    if capped:
        # One entry explains the arrows of all curves, in a size that fits there.
        is_explained = AT_LEAST in axes.get_legend_handles_labels()[1]
        axes.plot(
            [x for x, _ in capped],
            [y for _, y in capped],
            linestyle="none",
            marker=_arrow(),
            color=look["color"],
            markersize=26,
            markerfacecolor="none",
            markeredgewidth=1.6,
            zorder=5,
            clip_on=False,
        )
        if not is_explained:
            axes.plot(
                [],
                [],
                linestyle="none",
                marker=_arrow(),
                color=LIGHT["ink"],
                markersize=13,
                markerfacecolor="none",
                label=AT_LEAST,
            )
    missing = [point.x for point in curve.points if not point.values]
    if missing:
        axes.plot(
            missing,
            [0.02] * len(missing),
            linestyle="none",
            marker="x",
            color=look["color"],
            markersize=6,
            markeredgewidth=1.8,
            transform=axes.get_xaxis_transform(),
            zorder=5,
            clip_on=False,
            label=f"{curve.label}: no number" if labelled else "no number",
        )


def with_gaps(
    places: Sequence[tuple[float, float | None]], *, is_log: bool
) -> tuple[list[float], list[float]]:
    """Places and values with a gap where the line breaks: at None, and on a logarithmic axis between places
    that are further apart than `JOINED_WITHIN`, where nothing says how the values run."""
    xs: list[float] = []
    values: list[float] = []
    for x, value in places:
        if is_log and xs and x > JOINED_WITHIN * xs[-1]:
            xs.append(math.sqrt(x * xs[-1]))
            values.append(math.nan)
        xs.append(x)
        values.append(math.nan if value is None else value)
    return xs, values


def median_places(curve: DrawnCurve, factor: float) -> list[tuple[float, float | None]]:
    """A point without a number breaks the line, and so does a lower bound, which is drawn as an arrow."""
    return [
        (point.x, None if point.is_at_least or (found := point.statistics) is None else found.median / factor)
        for point in curve.points
    ]


def _arrow() -> Path:
    """An arrow up from a bar at the value. A marker is scaled so that its longest reach is half its size."""
    from matplotlib.path import Path

    move, line = Path.MOVETO, Path.LINETO
    corners = [(-0.28, 0), (0.28, 0), (0, 0), (0, 1), (-0.2, 0.68), (0, 1), (0.2, 0.68)]
    return Path(corners, [move, line, move, line, move, line, line])


def _beside(axes: Axes, x: float, index: int, count: int) -> float:
    share = (index + 0.5) / count - 0.5
    return float(x * 2 ** (0.44 * share)) if axes.get_xscale() == "log" else x + 26 * share
