# SPDX-License-Identifier: Apache-2.0
"""Station 10: the page of a trend: its changes first, then a picture of each point, then the runs."""

from __future__ import annotations

from pathlib import Path

from evenhand.analysis.trend_model import PointTrend, Trend
from evenhand.base.new_file import replace_own
from evenhand.procedure.descriptor import show_number
from evenhand.report.figures_trend import trend_picture
from evenhand.report.page import MARK, ShownFigure, render, show_picture
from evenhand.report.page_words import Cell, Table, make_table
from evenhand.report.plain import visible
from evenhand.report.trend import (
    FOUND_BY,
    SINGLE,
    direction_of,
    method_lines,
    show_after,
    show_before,
    show_begun,
    show_change,
    show_latest,
    span_of,
    titles_of,
    verdict,
    worse_or_better,
)
from evenhand.run.campaign_record import AT_LEAST


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
        changes=_changes_table(trend, titles),
        apart=[
            visible(title)
            for point, title in zip(trend.points, titles, strict=True)
            if point.measured and point.measured[-1].is_apart
        ],
        unlike=[visible(line) for line in trend.unlike],
        figures=[
            _figure(trend, point, place, title)
            for place, (point, title) in enumerate(zip(trend.points, titles, strict=True))
            if point.measured
        ],
        points=_points_table(trend, titles),
        runs=_runs_table(trend),
        method=method_lines(trend),
    )


def _figure(trend: Trend, point: PointTrend, place: int, title: str) -> ShownFigure:
    return show_picture(trend_picture(trend, point, name=_name(place), title=title))


def _name(place: int) -> str:
    return f"point-{place + 1}"


def _style(trend: Trend) -> str:
    changed = [point for point in trend.points if point.changes]
    if any(point.changes[-1].is_regression or direction_of(point) == "worse" for point in changed):
        return "bad"
    return "good" if all(point.judged_by == "levels" for point in trend.points) else "open"


def _link(point: PointTrend, place: int, title: str) -> Cell:
    from markupsafe import Markup, escape

    if not point.measured:
        return Cell(visible(title))
    return Cell("", spark=Markup('<a href="#figure-{}">{}</a>').format(_name(place), escape(visible(title))))


def _changes_table(trend: Trend, titles: list[str]) -> Table | None:
    if not trend.changes:
        return None
    places = {id(point): place for place, point in enumerate(trend.points)}
    is_mixed = len({change.by for _, change in trend.changes}) > 1
    rows: list[list[str | Cell]] = []
    for point, change in trend.changes:
        place, run = places[id(point)], trend.runs[change.run]
        rows.append(
            [
                _link(point, place, titles[place]),
                Cell(
                    f"{show_change(change)}, {worse_or_better(change)}",
                    "FAIL" if change.is_regression else "PASS",
                ),
                show_begun(run),
                visible(run.version or "-"),
                show_before(point, change),
                show_after(point, change),
                *([FOUND_BY[change.by]] if is_mixed else []),
            ]
        )
    return make_table(
        (
            "point",
            "change",
            "since the run of (UTC)",
            "DUT",
            "#from",
            "#to",
            *(["found by"] if is_mixed else []),
        ),
        rows,
        fold=("DUT",),
    )


def _points_table(trend: Trend, titles: list[str]) -> Table:
    rows: list[list[str | Cell]] = []
    for place, (point, title) in enumerate(zip(trend.points, titles, strict=True)):
        level = point.levels[-1] if point.levels else None
        rows.append(
            [
                _link(point, place, title),
                point.figure.unit,
                show_latest(point),
                "-"
                if level is None
                else f"{AT_LEAST if level.is_at_least else ''}{show_number(level.median, point.figure)}",
                "-" if level is None else show_begun(trend.runs[level.first_run]),
                f"{len(point.measured)} of {len(trend.runs)}",
                ", ".join(f"{key} {value}" for key, value in point.testbed.items()),
            ]
        )
    return make_table(
        ("point", "unit", "#latest", "#level", "since", "#runs with a number", "testbed"),
        rows,
        fold=("unit", "testbed"),
    )


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
