# SPDX-License-Identifier: Apache-2.0
"""Station 10: the page of a comparison. Reads what was compared; runs nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from evenhand.analysis import ComparedValue, Comparison, PointComparison
from evenhand.analysis.comparison_model import FailBy
from evenhand.base.new_file import replace_own
from evenhand.report.comparison import (
    TITLE_OF_DIFFERENCES,
    comparison_tables,
    describe_run,
    differences_table,
    gate_lines,
    letter_of,
    method_lines,
    summary,
)
from evenhand.report.figures import LIGHT, Picture, PictureShape, put_legend, style
from evenhand.report.page import MARK, render, show_picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes

POINTS_A_ROW = 2.2
"""Rows of bars have room for two lines of text; a point needs one."""
LONGEST_LABEL = 30


def write_comparison_page(
    comparison: Comparison, path: Path, *, fail_below: float | None = None, fail_by: FailBy = "interval"
) -> None:
    """Write the page, or replace the one that is there.

    Raises:
        RequestError: There is a file of this name, and it is not a page of Evenhand.
        HostError: The file cannot be written.
    """
    replace_own(
        path,
        render_comparison(comparison, fail_below=fail_below, fail_by=fail_by).encode(),
        mark=MARK,
        where=str(path),
    )


def render_comparison(
    comparison: Comparison, *, fail_below: float | None = None, fail_by: FailBy = "interval"
) -> str:
    """The whole page as text; everything that comes from the files is escaped."""
    others = range(len(comparison.runs) - 1)
    below = () if fail_below is None else comparison.below(fail_below, fail_by)
    gate = [] if fail_below is None else gate_lines(comparison, fail_by)
    return render(
        "comparison.html.j2",
        title=" against ".join(run.name for run in comparison.runs),
        verdict=_verdict(comparison, fail_below, len(below)),
        summaries=[summary(comparison, other) for other in others if fail_below is not None or other > 0],
        runs=[f"{letter_of(i)}: {describe_run(run)}" for i, run in enumerate(comparison.runs)],
        picture=show_picture(ratios_picture(comparison, fail_below))
        if any(comparison.performances(i) for i in others)
        else None,
        tables=comparison_tables(comparison),
        differences=differences_table(comparison),
        differences_title=TITLE_OF_DIFFERENCES,
        unlike=comparison.unlike,
        judged_unlike=[each.line for each in comparison.judged_unlike],
        below=[f"{point.run.file}, {point.key}" for point in below],
        method=" ".join([*method_lines(comparison), *(f"Note: {note}." for note in comparison.notes), *gate]),
    )


def ratios_picture(comparison: Comparison, fail_below: float | None = None) -> Picture:
    """Performance of each run against the first, a row for each point, with its interval."""

    def draw(axes: Axes, shape: PictureShape) -> None:
        places = range(len(comparison.points))
        axes.axvline(1, color=LIGHT["ink"], linewidth=1, zorder=1)
        if fail_below is not None:
            axes.axvline(
                fail_below,
                color=LIGHT["bad"],
                linewidth=1.2,
                linestyle=(0, (4, 3)),
                label=f"limit {fail_below:g}",
                zorder=1,
            )
        runs = len(comparison.runs) - 1
        for other in range(runs):
            look = style(other)
            rows = [
                (i, point.others[other])
                for i, point in enumerate(comparison.points)
                if point.others[other].performance is not None
            ]
            shift = (other - (runs - 1) / 2) * 0.6 / runs
            axes.plot(
                [value.performance or 0 for _, value in rows],
                [i + shift for i, _ in rows],
                color=look["color"],
                marker=look["marker"],
                linestyle="none",
                markersize=6,
                label=f"{letter_of(other + 1)}, {comparison.runs[other + 1].name}",
                zorder=3,
            )
            for i, value in rows:
                bounds = _bounds(comparison.points[i], value)
                if bounds is not None:
                    axes.plot(bounds, [i + shift] * 2, color=look["color"], linewidth=2, zorder=2)
        axes.set_yticks(
            list(places),
            [_short(point.key, LONGEST_LABEL if shape.is_narrow else 60) for point in comparison.points],
        )
        axes.set_ylim(len(comparison.points) - 0.5, -0.5)
        axes.set_xlabel(
            "left of 1 is worse"
            if shape.is_narrow
            else f"performance against {letter_of(0)}; left of 1 is worse"
        )
        put_legend(axes, shape)

    alt = "Performance of each point against the first run. " + " ".join(
        summary(comparison, other) for other in range(len(comparison.runs) - 1)
    )
    return Picture(
        name="ratios",
        title=f"Performance against {letter_of(0)}, {comparison.runs[0].name}",
        alt=alt,
        caption="Mark: ratio of the medians (its reciprocal if lower values are better). Bar: its"
        " interval, for four repetitions or more.",
        draw=draw,
        row_count=max(2, round(len(comparison.points) / POINTS_A_ROW) + 1),
    )


def _bounds(point: PointComparison, value: ComparedValue) -> tuple[float, float] | None:
    interval = None if value.ratio is None else value.ratio.interval
    if (
        interval is None
        or value.is_interval_too_weak
        or (not point.figure.is_higher_better and interval.low <= 0)
    ):
        return None
    return (
        (interval.low, interval.high)
        if point.figure.is_higher_better
        else (1 / interval.high, 1 / interval.low)
    )


def _verdict(comparison: Comparison, fail_below: float | None, below: int) -> dict[str, str]:
    if fail_below is None:
        return {"text": summary(comparison, 0), "style": "open"}
    if below == 0:
        unlike = bool(comparison.judged_unlike)
        return {"text": f"Passed: no point is below {fail_below:g}.", "style": "open" if unlike else "good"}
    return {
        "text": f"Failed: {'1 point' if below == 1 else f'{below} points'} below {fail_below:g}, or without"
        " a number.",
        "style": "bad",
    }


def _short(text: str, longest: int) -> str:
    """The end of a key distinguishes points."""
    return text if len(text) <= longest else f"...{text[-longest + 3 :]}"
