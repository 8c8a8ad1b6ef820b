# SPDX-License-Identifier: Apache-2.0
"""Station 10: pictures of throughput and loss. They get numbers and labels, and know nothing of campaigns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from evenhand.base.units import format_count, format_rate
from evenhand.procedure.statistics import Statistics
from evenhand.report.figures import LIGHT, Picture, Shape, put_legend, put_ticks_of_counts, put_title, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.path import Path

AT_LEAST = "at least: a lower bound"
UNITS = (("Gfps", 1e9), ("Mfps", 1e6), ("kfps", 1e3), ("fps", 1.0))


JOINED_WITHIN = 16.0
"""Numbers of addresses that are further apart than by this factor are not joined by a line."""
ROOM_FOR_ARROW = 1.15
ROOM_ABOVE = 1.06
"""The axis ends above the highest one, or it would run into the title."""


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


def addresses_picture(
    name: str, title: str, curves: Sequence[DrawnCurve], *, theoretical_fps: float | None = None
) -> Picture:
    """Throughput over the number of addresses on a side (SEED-72): medians, range, each repetition, plateau,
    prediction."""

    def draw(axes: Axes, shape: Shape) -> None:
        unit, factor = _unit(curves)
        axes.set_xscale("log", base=2)
        for number, curve in enumerate(curves):
            _draw_curve(
                axes, _moved(curve, _aside(curves, number, shape)), number, factor, labelled=len(curves) > 1
            )
        _finish_rates(axes, curves, unit, factor)
        put_ticks_of_counts(axes, shape, [point.x for curve in curves for point in curve.points])
        axes.set_xlabel("addresses on each side")
        put_legend(axes, shape)

    alt = f"{title}: throughput per direction over the number of addresses on each side. " + " ".join(
        map(_describe, curves)
    )
    caption = "Line: median of the repetitions; bar: minimum to maximum; faint dots: each repetition."
    if _share_places(curves):
        caption += " Curves are drawn slightly beside each other, so that equal results remain visible."
    if any(point.is_at_least for curve in curves for point in curve.measured):
        caption += (
            " Arrow: a lower bound, because the highest load that was tried passed, or the tester could"
            " not keep a higher one; it is not joined by a line."
        )
    if any(b.x > JOINED_WITHIN * a.x for curve in curves for a, b in pairwise(curve.points)):
        caption += (
            f" Points further apart than by a factor of {JOINED_WITHIN:.0f} are not joined, because nothing"
            " was measured between them."
        )
    if any(curve.plateau for curve in curves):
        caption += " Shaded: the plateau."
    if any(point.predicted is not None for curve in curves for point in curve.points):
        caption += " Dotted: predicted from the DUT's hash, before anything was sent."
    if theoretical_fps is not None:
        caption += f" The theoretical limit is {format_count(theoretical_fps)} fps per direction."
    return Picture(name=name, title=title, alt=alt, caption=caption, draw=draw)


def sizes_picture(
    name: str, title: str, curves: Sequence[DrawnCurve], theoretical: Sequence[tuple[float, float]]
) -> Picture:
    """Throughput over the frame size, with the theoretical rate (R2544-22).

    Args:
        theoretical: Frame size and maximum theoretical frame rate; empty if the ports know no line rate.
    """

    def draw(axes: Axes, shape: Shape) -> None:
        unit, factor = _unit(curves, extra=[rate for _, rate in theoretical])
        if theoretical:
            axes.plot(
                [size for size, _ in theoretical],
                [rate / factor for _, rate in theoretical],
                color=LIGHT["ink"],
                linewidth=1.2,
                linestyle=(0, (1.5, 1.5)),
                label="theoretical limit",
                zorder=2,
            )
        for number, curve in enumerate(curves):
            _draw_curve(axes, curve, number, factor, labelled=True)
        _finish_rates(axes, curves, unit, factor)
        sizes = sorted({point.x for curve in curves for point in curve.points})
        axes.set_xlim(0, max(sizes) * 1.04)
        axes.set_xticks(_spaced(sizes, max(sizes) * (0.11 if shape.is_narrow else 0.04)), minor=False)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0f}")
        axes.set_xlabel("frame size with FCS, octets")
        put_legend(axes, shape)

    known = (
        "with the theoretical limit"
        if theoretical
        else "the ports do not know their line rate, so there is no theoretical limit"
    )
    alt = f"{title}: frame rate per direction over the frame size, {known}. " + " ".join(
        map(_describe, curves)
    )
    caption = "Line: median of the repetitions; bar: minimum to maximum; faint dots: each repetition."
    if not theoretical:
        caption += " The ports do not know their line rate, so no theoretical limit is drawn."
    return Picture(name=name, title=title, alt=alt, caption=caption, draw=draw)


@dataclass(frozen=True, slots=True, kw_only=True)
class LossCurve:
    """Loss over the load: one line for each repetition, as pairs of load and loss in percent."""

    label: str
    repetitions: tuple[tuple[tuple[float, float], ...], ...]

    def medians(self) -> list[tuple[float, float]]:
        """By load, in ascending order."""
        losses: dict[float, list[float]] = {}
        for repetition in self.repetitions:
            for load, loss in repetition:
                losses.setdefault(round(load, 6), []).append(loss)
        found = [(load, Statistics.of(values)) for load, values in sorted(losses.items())]
        return [(load, statistics.median) for load, statistics in found if statistics is not None]


def loss_picture(name: str, title: str, curves: Sequence[LossCurve], *, of: str) -> Picture:
    """Frame loss rate over the load, both axes from 0 to 100 % (R2544-28).

    Args:
        of: What 100 % of the load is, such as `theoretical maximum`.
    """

    def draw(axes: Axes, shape: Shape) -> None:
        for number, curve in enumerate(curves):
            look = style(number)
            for repetition in curve.repetitions:
                axes.plot(
                    *zip(*sorted(repetition), strict=True),
                    color=look["color"],
                    linewidth=0.8,
                    alpha=0.3,
                    zorder=2,
                )
            axes.plot(
                *zip(*curve.medians(), strict=True),
                **look,
                linewidth=1.8,
                markersize=4.5,
                label=curve.label,
                zorder=3,
            )
        axes.set_xlim(0, 100)
        axes.set_ylim(0, 100)
        ticks = range(0, 101, 20)
        axes.set_xticks(ticks)
        axes.set_yticks(ticks)
        axes.set_xlabel(f"offered load, % of the {of}")
        put_title(axes, "frames lost, %")
        put_legend(axes, shape)

    highest = [max(curve.medians()) for curve in curves]
    said = " ".join(
        f"{curve.label}: {loss:.3g} % lost at {load:.3g} % load."
        for curve, (load, loss) in zip(curves, highest, strict=True)
    )
    caption = f"Line: median of the repetitions; faint lines: each of them. 100 % of the load is the {of}."
    return Picture(
        name=name, title=title, alt=f"{title}: loss over the load. {said}", caption=caption, draw=draw
    )


def _draw_curve(axes: Axes, curve: DrawnCurve, number: int, factor: float, *, labelled: bool) -> None:
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
        xs, levels = _with_gaps(
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
        below = [(found.median - found.minimum) / factor for found in statistics]
        above = [(found.maximum - found.median) / factor for found in statistics]
        places = [point.x for point in points]
        axes.errorbar(
            places,
            medians,
            yerr=[below, above],
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
            *_with_gaps(_medians(curve, factor), is_log=is_log),
            **look,
            **hollow,
            linewidth=1.6,
            markersize=5,
            zorder=4,
            label=curve.label if labelled else "median",
        )
        # Beside the bar, or it would hide them; the same places each time, so that a page does not change.
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


def _with_gaps(
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


def _medians(curve: DrawnCurve, factor: float) -> list[tuple[float, float | None]]:
    """A point without a number breaks the line, and so does a lower bound, which is drawn as an arrow."""
    return [
        (point.x, None if point.is_at_least or (found := point.statistics) is None else found.median / factor)
        for point in curve.points
    ]


def _arrow() -> Path:
    """Up from a bar at the value. A marker is scaled so that its longest reach is half its size."""
    from matplotlib.path import Path

    move, line = Path.MOVETO, Path.LINETO
    corners = [(-0.28, 0), (0.28, 0), (0, 0), (0, 1), (-0.2, 0.68), (0, 1), (0.2, 0.68)]
    return Path(corners, [move, line, move, line, move, line, line])


def _share_places(curves: Sequence[DrawnCurve]) -> bool:
    """Whether two curves have points at the same number of addresses."""
    places = [place for curve in curves for place in {point.x for point in curve.points}]
    return len(set(places)) < len(places)


def _aside(curves: Sequence[DrawnCurve], number: int, shape: Shape) -> float:
    """By what this curve's places are multiplied: some four points of paper from one curve to the next, the
    middle at 1."""
    if not _share_places(curves):
        return 1.0
    octaves = math.log2(max(2.0, *(point.x for curve in curves for point in curve.points))) + 0.85
    return float(2 ** ((number - (len(curves) - 1) / 2) * octaves * (0.018 if shape.is_narrow else 0.009)))


def _moved(curve: DrawnCurve, by: float) -> DrawnCurve:
    return replace(curve, points=tuple(replace(point, x=point.x * by) for point in curve.points))


def _beside(axes: Axes, x: float, index: int, count: int) -> float:
    share = (index + 0.5) / count - 0.5
    return float(x * 2 ** (0.44 * share)) if axes.get_xscale() == "log" else x + 26 * share


def _finish_rates(axes: Axes, curves: Sequence[DrawnCurve], unit: str, factor: float) -> None:
    top = axes.get_ylim()[1] if any(curve.measured for curve in curves) else 1
    arrows = [
        found.median / factor
        for curve in curves
        for point in curve.measured
        if point.is_at_least and (found := point.statistics)
    ]
    # Where all values are nearly equal, matplotlib leaves next to no room above them.
    highest = max(
        (value for curve in curves for point in curve.measured for value in point.values), default=0
    )
    axes.set_ylim(0, max(top, ROOM_ABOVE * highest / factor, ROOM_FOR_ARROW * max(arrows, default=0)))
    put_title(axes, f"throughput per direction, {unit}")


def _unit(curves: Sequence[DrawnCurve], extra: Sequence[float] = ()) -> tuple[str, float]:
    highest = max(
        [*(value for curve in curves for point in curve.points for value in point.values), *extra],
        default=0.0,
    )
    return next(((unit, factor) for unit, factor in UNITS if highest >= factor), UNITS[-1])


def _spaced(values: Sequence[float], least: float) -> list[float]:
    """Those that are at least so far from each other, from the largest down: small sizes stand close
    together."""
    kept: list[float] = []
    for value in reversed(values):
        if not kept or kept[-1] - value >= least:
            kept.append(value)
    return kept[::-1]


def _describe(curve: DrawnCurve) -> str:
    points = curve.measured
    if not points:
        return f"{curve.label}: no number."
    ends = [point.statistics for point in (points[0], points[-1])]
    said = [
        f"{format_rate(found.median)} at {format_count(point.x)}"
        for point, found in zip((points[0], points[-1]), ends, strict=True)
        if found
    ]
    return f"{curve.label}: {' to '.join(dict.fromkeys(said))}."
