# SPDX-License-Identifier: Apache-2.0
"""Station 10: pictures of throughput. They get numbers and labels, and know nothing of campaigns."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from evenhand.base.units import format_count, format_rate
from evenhand.procedure.statistics import Statistics
from evenhand.report.curve_drawing import JOINED_WITHIN, DrawnCurve, draw_curve
from evenhand.report.figures import (
    LIGHT,
    WITHOUT_POINTS_INCHES,
    Picture,
    PictureShape,
    put_legend,
    put_ticks_of_counts,
    put_title,
    style,
)
from evenhand.report.plain import WHY_BOUND

if TYPE_CHECKING:
    from matplotlib.axes import Axes


UNITS = (("Gfps", 1e9), ("Mfps", 1e6), ("kfps", 1e3), ("fps", 1.0))
ROOM_FOR_ARROW = 1.15
ROOM_ABOVE = 1.06
"""The axis ends above the highest one, or it would run into the title."""


def addresses_picture(
    name: str,
    title: str,
    curves: Sequence[DrawnCurve],
    *,
    theoretical_fps: float | None = None,
    counted: str = "addresses",
) -> Picture:
    """Throughput over the number of addresses on a side (SEED-72), or of routes: medians, range, each
    repetition, plateau, prediction."""

    axis = "addresses on each side" if counted == "addresses" else f"{counted} on a side"

    def draw(axes: Axes, shape: PictureShape) -> None:
        unit, factor = _unit(curves)
        axes.set_xscale("log", base=2)
        moved = [_moved(curve, _aside(curves, number, shape)) for number, curve in enumerate(curves)]
        for number, curve in enumerate(moved):
            draw_curve(axes, curve, number, factor, labelled=len(curves) > 1)
        _finish_rates(axes, curves, unit, factor)
        put_ticks_of_counts(
            axes,
            shape,
            [point.x for curve in curves for point in curve.points],
            leftmost=min((point.x for curve in moved for point in curve.points), default=1.0),
        )
        axes.set_xlabel(axis)
        put_legend(axes, shape)

    alt = f"{title}: throughput per direction over the number of {axis}. " + " ".join(map(_describe, curves))
    are_all_bounds = all(point.is_at_least for curve in curves for point in curve.measured)
    caption = "Faint dots: each repetition."
    if not are_all_bounds:
        caption = "Line: median of the repetitions; bar: minimum to maximum; faint dots: each repetition."
    if _share_places(curves):
        caption += " Curves are drawn slightly apart, so that equal results remain visible."
    if any(point.is_at_least for curve in curves for point in curve.measured):
        caption += f" Arrow: a lower bound, because {WHY_BOUND}; it is not joined by a line."
    if not are_all_bounds and any(
        b.x > JOINED_WITHIN * a.x for curve in curves for a, b in pairwise(curve.points)
    ):
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
    return _picture(name, title, alt, caption, draw, has_points=any(curve.points for curve in curves))


def sizes_picture(
    name: str, title: str, curves: Sequence[DrawnCurve], theoretical: Sequence[tuple[float, float]]
) -> Picture:
    """Throughput over the frame size, with the theoretical rate (R2544-22).

    Args:
        theoretical: Frame size and maximum theoretical frame rate; empty if the ports know no line rate.
    """

    def draw(axes: Axes, shape: PictureShape) -> None:
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
            draw_curve(axes, curve, number, factor, labelled=True)
        _finish_rates(axes, curves, unit, factor)
        sizes = sorted(
            {point.x for curve in curves for point in curve.points} or {size for size, _ in theoretical}
        )
        last = max(sizes, default=1.0)
        axes.set_xlim(0, last * 1.04)
        axes.set_xticks(_spaced(sizes, last * (0.11 if shape.is_narrow else 0.04)), minor=False)
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
    has_points = bool(theoretical) or any(curve.points for curve in curves)
    return _picture(name, title, alt, caption, draw, has_points=has_points)


def _picture(
    name: str,
    title: str,
    alt: str,
    caption: str,
    draw: Callable[[Axes, PictureShape], None],
    *,
    has_points: bool,
) -> Picture:
    """How to read points is of no use without any."""
    if has_points:
        return Picture(name=name, title=title, alt=alt, caption=caption, draw=draw)
    caption = "No repetition has ended with a value so far."
    return Picture(
        name=name,
        title=title,
        alt=f"{title}. {caption}",
        caption=caption,
        draw=draw,
        inches=WITHOUT_POINTS_INCHES,
    )


def _share_places(curves: Sequence[DrawnCurve]) -> bool:
    """Whether two curves have points at the same number of addresses."""
    places = [place for curve in curves for place in {point.x for point in curve.points}]
    return len(set(places)) < len(places)


def _aside(curves: Sequence[DrawnCurve], number: int, shape: PictureShape) -> float:
    """The factor for this curve's places: some four points of paper from one curve to the next, the
    middle at 1."""
    if not _share_places(curves):
        return 1.0
    octaves = math.log2(max(2.0, *(point.x for curve in curves for point in curve.points))) + 0.85
    return float(2 ** ((number - (len(curves) - 1) / 2) * octaves * (0.018 if shape.is_narrow else 0.009)))


def _moved(curve: DrawnCurve, by: float) -> DrawnCurve:
    return replace(curve, points=tuple(replace(point, x=point.x * by) for point in curve.points))


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
    if highest == 0 and not any(len(line.get_xdata()) for line in axes.lines if line.get_marker() != "x"):  # type: ignore[arg-type]
        axes.set_yticks([])  # crosses of points without a number have no height
    put_title(axes, f"throughput per direction, {unit}")


def _unit(curves: Sequence[DrawnCurve], extra: Sequence[float] = ()) -> tuple[str, float]:
    highest = max(
        [*(value for curve in curves for point in curve.points for value in point.values), *extra],
        default=0.0,
    )
    return next(((unit, factor) for unit, factor in UNITS if highest >= factor), UNITS[-1])


def _spaced(values: Sequence[float], least: float) -> list[float]:
    """Those that are at least so far from each other, from the largest down: small sizes are close
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


@dataclass(frozen=True, slots=True, kw_only=True)
class LossCurve:
    """Loss over the load: one line for each repetition, as pairs of load and loss in percent."""

    label: str
    repetitions: tuple[tuple[tuple[float, float], ...], ...]

    def medians(self) -> list[tuple[float, float]]:
        """Medians by load, in ascending order."""
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

    def draw(axes: Axes, shape: PictureShape) -> None:
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
