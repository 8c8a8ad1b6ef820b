# SPDX-License-Identifier: Apache-2.0
"""Station 10: the picture of a point over runs: its number with the range of its repetitions, its levels,
and where it changes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from evenhand.analysis.comparable import moment_of
from evenhand.analysis.trend_model import PointTrend, Trend, TrendValue
from evenhand.base.visible import visible
from evenhand.report.figures import LIGHT, Picture, PictureShape, put_legend, put_title
from evenhand.report.trend import show_begun, show_change, show_latest, span_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HEIGHT_INCHES = 2.7
LEAST_SPAN = 0.06
"""Least span of the y axis, as a share of the largest number: noise of a few parts in a thousand must not
look like a mountain range."""
MOST_LABELS = {"wide": 7, "narrow": 3}
LONGEST_LABEL = {"wide": 20, "narrow": 14}
SCALES = (("M", 1e6), ("k", 1e3))


def trend_picture(trend: Trend, point: PointTrend, *, name: str, title: str) -> Picture:
    """A dot for each run; what the picture shows in words is its `alt`."""

    def draw(axes: Axes, shape: PictureShape) -> None:
        places = _places(trend)
        unit, factor = _scale(point)
        _draw_levels(axes, point, places, factor)
        _draw_values(axes, point, places, factor)
        _set_range(axes, point, factor)
        _draw_changes(axes, point, places)
        _draw_gaps(axes, point, places)
        _label_runs(axes, trend, places, shape)
        put_title(axes, f"{point.figure.name}, {unit}")
        put_legend(axes, shape)

    changes = "; ".join(
        f"{show_change(change)} since the run of {show_begun(trend.runs[change.run])}"
        for change in point.changes
    )
    return Picture(
        name=name,
        title=title,
        alt=visible(
            f"{title}: {point.figure.name} in {span_of(trend)}. Latest: {show_latest(point)}"
            f" {point.figure.unit}. {changes or 'No change'}."
        ),
        caption=_caption(trend, point),
        draw=draw,
        inches=HEIGHT_INCHES,
    )


def _caption(trend: Trend, point: PointTrend) -> str:
    parts = []
    for change in point.changes:
        found = ", ".join(
            f"{difference.what} {difference.values[0] or '-'} to {difference.values[1] or '-'}"
            for difference in change.differences[:MOST_DIFFERENCES]
        )
        more = len(change.differences) - MOST_DIFFERENCES
        found += f" and {more} more" if more > 0 else ""
        parts.append(
            f"{show_begun(trend.runs[change.run])}: {show_change(change)};"
            f" {f'what differs: {found}' if found else 'no difference between the set-ups is known'}."
        )
    if point.judged_by == "nothing":
        parts.append("Too few runs have a number to say anything of changes.")
    elif not point.changes:
        parts.append("No change.")
    missing = [value for value in point.values if value.statistics is None and value.reason]
    if missing and (reasons := list(dict.fromkeys(str(value.reason) for value in missing))):
        parts.append(f"Without a number: {len(missing)} ({'; '.join(reasons[:2])}).")
    parts += [f"Not measured as another trend here: {line}." for line in point.unlike]
    return visible(" ".join(parts))


MOST_DIFFERENCES = 3


def _places(trend: Trend) -> list[float]:
    """Places of the runs on the x axis: days, or one after the other."""
    if trend.over == "version":
        return [float(place) for place in range(len(trend.runs))]
    return [moment_of(run).timestamp() / 86_400 for run in trend.runs]


def _scale(point: PointTrend) -> tuple[str, float]:
    highest = max((value.statistics.maximum for value in point.measured if value.statistics), default=1.0)
    if point.figure.unit == "ratio":
        return "%", 0.01
    if point.figure.unit == "fps":
        return next(((f"{p}fps", f) for p, f in SCALES if highest >= f), ("fps", 1.0))
    if point.figure.unit == "us":
        return "ms", 1e3
    return point.figure.unit, 1.0


def _draw_levels(axes: Axes, point: PointTrend, places: Sequence[float], factor: float) -> None:
    for number, level in enumerate(point.levels):
        begin, end = places[level.first_run], places[level.last_run]
        axes.plot(
            [begin, end],
            [level.median / factor] * 2,
            color=LIGHT["c1"],
            alpha=0.28,
            linewidth=7,
            solid_capstyle="round",
            label="level" if number == 0 else None,
            zorder=1,
        )


def _draw_values(axes: Axes, point: PointTrend, places: Sequence[float], factor: float) -> None:
    line = [math.nan if value.median is None else value.median / factor for value in point.values]
    axes.plot(places, line, color=LIGHT["c1"], linewidth=0.8, alpha=0.6, zorder=2)
    for value in point.measured:
        assert value.statistics is not None
        axes.plot(
            [places[value.run]] * 2,
            [value.statistics.minimum / factor, value.statistics.maximum / factor],
            color=LIGHT["c1"],
            linewidth=1.4,
            zorder=2,
        )
    size = 5.0 if len(point.values) <= 40 else 3.2
    kinds: tuple[tuple[str, str, str, list[TrendValue]], ...] = (
        (
            "run (median, and range of its repetitions)",
            "o",
            LIGHT["c1"],
            [v for v in point.measured if not v.is_at_least and not v.is_apart],
        ),
        (
            "run that is set aside",
            "o",
            LIGHT["paper"],
            [v for v in point.measured if not v.is_at_least and v.is_apart],
        ),
        ("lower bound: at least", "^", LIGHT["c2"], [v for v in point.measured if v.is_at_least]),
    )
    for label, marker, face, values in kinds:
        if values:
            is_bound = marker == "^"
            axes.plot(
                [places[value.run] for value in values],
                [(value.median or 0.0) / factor for value in values],
                linestyle="none",
                marker=marker,
                markersize=size + (1.5 if is_bound else 0.0),
                markerfacecolor=face,
                markeredgecolor=LIGHT["c2"] if is_bound else LIGHT["c1"],
                label=label,
                zorder=4,
            )


def _set_range(axes: Axes, point: PointTrend, factor: float) -> None:
    numbers = [end / factor for v in point.measured if v.statistics for end in _ends(v)]
    if not numbers:
        axes.set_yticks([])
        return
    low, high = min(numbers), max(numbers)
    span = max((high - low) * 1.35, LEAST_SPAN * high, 1e-9)
    middle = (low + high) / 2
    axes.set_ylim(max(0.0, middle - span / 2) if low >= 0 else middle - span / 2, middle + span / 2)


def _ends(value: TrendValue) -> tuple[float, float]:
    assert value.statistics is not None
    return value.statistics.minimum, value.statistics.maximum


def _draw_changes(axes: Axes, point: PointTrend, places: Sequence[float]) -> None:
    labelled: set[bool] = set()
    for change in point.changes:
        place = (places[change.before_run] + places[change.run]) / 2
        colour = LIGHT["bad"] if change.is_regression else LIGHT["good"]
        axes.axvline(
            place,
            color=colour,
            linewidth=1.3,
            linestyle=(0, (4, 2)) if change.is_regression else (0, (1, 1.5)),
            label=None
            if change.is_regression in labelled
            else ("change: worse" if change.is_regression else "change: better"),
            zorder=3,
        )
        labelled.add(change.is_regression)
        is_late = place > (places[0] + places[-1]) / 2
        axes.annotate(
            show_change(change),
            (place, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(-4 if is_late else 4, -3),
            textcoords="offset points",
            ha="right" if is_late else "left",
            va="top",
            color=colour,
            fontsize=9,
            fontweight="bold",
            zorder=5,
        )


def _draw_gaps(axes: Axes, point: PointTrend, places: Sequence[float]) -> None:
    gaps = [places[value.run] for value in point.values if value.statistics is None]
    if gaps:
        axes.plot(
            gaps,
            [0.03] * len(gaps),
            transform=axes.get_xaxis_transform(),
            linestyle="none",
            marker="x",
            markersize=5,
            color=LIGHT["soft"],
            label="run without a number",
            zorder=4,
        )


def _label_runs(axes: Axes, trend: Trend, places: Sequence[float], shape: PictureShape) -> None:
    """Ticks where a version of the DUT comes first, with it; in the order of time with the date above."""
    first_places = [
        next(group)[0] for _, group in groupby(enumerate(trend.runs), lambda each: each[1].version)
    ]
    has_versions = any(run.version is not None for run in trend.runs)
    wanted = [*first_places, *range(len(places))] if len(first_places) <= MOST_LABELS[shape.name] else []
    span = (places[-1] - places[0]) or 1.0
    least = span / MOST_LABELS[shape.name]
    kept: list[int] = []
    for run in [*first_places, len(places) - 1, *wanted, *range(len(places))]:
        if all(abs(places[run] - places[other]) >= least for other in kept):
            kept.append(run)
    kept.sort()

    def label(run: int) -> str:
        begun = moment_of(trend.runs[run])
        date = f"{begun:%Y-%m-%d}" if span >= 2 else f"{begun:%m-%d %H:%M}"
        version = _short(visible(trend.runs[run].version or "unknown"), LONGEST_LABEL[shape.name])
        if trend.over == "version":
            return version
        return f"{date}\n{version}" if has_versions and run in first_places else date

    axes.set_xticks([places[run] for run in kept], [label(run) for run in kept])
    margin = 0.04 * span if len(places) > 1 else 0.5
    axes.set_xlim(places[0] - margin, places[-1] + margin)


def _short(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 3]}..."
