# SPDX-License-Identifier: Apache-2.0
"""Station 10: the page of a trend: its changes first, then a picture of each point, then the runs."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from evenhand.analysis.trend_model import Trend
from evenhand.base.new_file import replace_own
from evenhand.base.table import Cell, Table, make_table
from evenhand.base.visible import visible
from evenhand.report.figures_trend import trend_picture
from evenhand.report.page import MARK, render, show_picture
from evenhand.report.trend import (
    SINGLE,
    changes_table,
    direction_of,
    judged_unlike_lines,
    method_lines,
    points_table,
    show_begun,
    span_of,
    titles_of,
    verdict,
)


def write_trend_page(trend: Trend, path: Path) -> None:
    """Write the page, or replace the one that is there.

    Raises:
        RequestError: There is a file of this name, and it is not a page of Evenhand.
        HostError: The file cannot be written.
    """
    replace_own(path, render_trend(trend).encode(), mark=MARK, where=str(path))


def render_trend(trend: Trend) -> str:
    """The whole page as text; everything that comes from the files is escaped."""
    titles = titles_of(trend)
    return render(
        "trend.html.j2",
        title=f"Trend: {span_of(trend)}",
        verdict={"text": verdict(trend), "style": _style(trend)},
        count=len(trend.runs),
        single=SINGLE if len(trend.runs) == 1 else "",
        changes=changes_table(trend, partial(_link, trend)),
        apart=[
            visible(title)
            for point, title in zip(trend.points, titles, strict=True)
            if point.measured and point.measured[-1].is_apart
        ],
        unlike=[visible(line) for line in trend.unlike],
        judged_unlike=judged_unlike_lines(trend),
        figures=[
            show_picture(trend_picture(trend, point, name=_name(place), title=title))
            for place, (point, title) in enumerate(zip(trend.points, titles, strict=True))
            if point.measured
        ],
        points=points_table(trend, partial(_link, trend)),
        runs=_runs_table(trend),
        method=method_lines(trend),
    )


def _name(place: int) -> str:
    return f"point-{place + 1}"


def _style(trend: Trend) -> str:
    changed = [point for point in trend.points if point.changes]
    if any(point.changes[-1].is_regression or direction_of(point) == "worse" for point in changed):
        return "bad"
    return "good" if all(point.judged_by == "levels" for point in trend.points) else "open"


def _link(trend: Trend, place: int, title: str) -> Cell:
    from markupsafe import Markup, escape

    if not trend.points[place].measured:
        return Cell(title)
    return Cell("", spark=Markup('<a href="#figure-{}">{}</a>').format(_name(place), escape(title)))


def _runs_table(trend: Trend) -> Table:
    rows: list[list[str | Cell]] = []
    for number, run in reversed(list(enumerate(trend.runs))):
        without = sum(point.values[number].statistics is None for point in trend.points)
        rows.append(
            [
                show_begun(run),
                visible(run.file),
                visible(run.version or "-"),
                "" if run.is_finished else "not finished",
                Cell(str(without), "flag") if without else "0",
            ]
        )
    return make_table(
        ("started (UTC)", "file", "version of the DUT", "state", "#points without a number"),
        rows,
        fold=("version of the DUT",),
    )
