# SPDX-License-Identifier: Apache-2.0
"""Station 10: a trend for people and for programs: its changes, the last number of each point, and what a
reader must know of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from evenhand.analysis.comparable import moment_of
from evenhand.analysis.comparison_model import share_left_out
from evenhand.analysis.condition_words import join
from evenhand.analysis.medians import FEWEST_RUNS
from evenhand.analysis.trend_model import Change, PointTrend, Trend, TrendRun, TrendValue
from evenhand.base.table import Cell, Table, make_table, measured
from evenhand.base.units import format_count
from evenhand.base.visible import visible
from evenhand.procedure.descriptor import show_number
from evenhand.procedure.registry import PROCEDURES
from evenhand.report.page_words import show_size
from evenhand.report.plain import WHY_BOUND
from evenhand.run.campaign_record import AT_LEAST
from evenhand.spec.request import Point
from evenhand.trial import show_share

METHOD = (
    "The number of a run at a point is the median of its repetitions. With six numbers or more, a point's"
    " runs are cut into levels by jumpavg, the library of FD.io CSIT's trending: of all ways to do so it"
    " takes the one with the shortest description. A change is a level that follows another one, of two runs"
    " or more, and is larger than the brackets of the searches."
)
FEW = (
    f"Points with fewer than {FEWEST_RUNS} numbers have no levels: each run is compared with the one before"
    " it, as evenhand compare does. That covers the noise within a run, but not what changes from one session"
    " to the next."
)
APART = (
    "A single run that differs from both of its neighbours is set aside. If it is the latest one, the next"
    " run shows whether it was the first of a new level."
)
BOUNDS = (
    f"`{AT_LEAST.strip()}`: a lower bound, because {WHY_BOUND}. It counts as what it is: between two lower"
    " bounds no change can be seen; between one and a number, only a fall from the bound or a rise to it."
)
GAPS = "A gap is a run that has no number at that point."


def trend_document(trend: Trend) -> dict[str, Any]:
    """The document for programs, as docs/reference/trend.md describes it."""
    titles = titles_of(trend)
    document = trend.to_document()
    for point, title in zip(document["points"], titles, strict=True):
        point["title"] = title
    places = {id(point): place for place, point in enumerate(trend.points)}
    return {
        **document,
        "changes": [{"point": places[id(point)], **change.to_document()} for point, change in trend.changes],
        "method": METHOD,
        "fewest_runs": FEWEST_RUNS,
    }


def titles_of(trend: Trend) -> list[str]:
    """`gateway-v6, 84 octets, 65,536 addresses a side`: the title of each point, with what else it takes to
    distinguish it from the others."""
    points = [point.point for point in trend.points]
    parts = [_parts(point) for point in points]
    is_shown = [len({of_point[i] for of_point in parts}) > 1 for i in range(len(parts[0]))]
    # Plan, size and addresses are always shown.
    always = (True, True, True, False, False, False)
    titles = [
        ", ".join(
            part for part, kept, needed in zip(of, always, is_shown, strict=True) if part and (kept or needed)
        )
        for of in parts
    ]
    titles = _distinguished(titles, [f"suite {point.suite}" for point in points])
    return [
        title if titles.count(title) == 1 else f"{title} ({titles[: i + 1].count(title)})"
        for i, title in enumerate(titles)
    ]


def changes_table(trend: Trend, link: Link | None = None) -> Table | None:
    """A row for each change, the latest first; None if there is none."""
    if not trend.changes:
        return None
    names = dict(zip(map(id, trend.points), _names(trend, link), strict=True))
    rows = (
        [
            names[id(point)],
            Cell(
                f"{show_change(change)}, {worse_or_better(change)}",
                "FAIL" if change.is_regression else "PASS",
            ),
            show_begun(run),
            visible(run.version or "-"),
            _before_cell(point, change),
            _after_cell(point, change),
            FOUND_BY[change.by],
        ]
        for point, change, run in ((point, change, trend.runs[change.run]) for point, change in trend.changes)
    )
    titles = ("point", "#change", "since the run of (UTC)", "DUT", "#from", "#to", "found by")
    return make_table(titles, rows, title="Changes", fold=("DUT", "found by"))


FOUND_BY = {"levels": "levels", "compare": "comparison with the run before"}


def points_table(trend: Trend, link: Link | None = None) -> Table:
    """A row for each point: its last number, and since when it has been so; on a page, which has links, also
    where it was measured."""
    rows = []
    numbers = _numbers_by_unit(trend)
    for point, name in zip(trend.points, _names(trend, link), strict=True):
        beside = numbers.get(point.figure.unit, ())
        level = point.levels[-1] if point.levels else None
        bound = AT_LEAST if level is not None and level.is_at_least else ""
        rows.append(
            [
                name,
                point.figure.shown_unit,
                show_latest(point, beside),
                "-" if level is None else f"{bound}{show_number(level.median, point.figure, beside)}",
                "-" if level is None else show_begun(trend.runs[level.first_run]),
                f"{len(point.measured)} of {len(trend.runs)}",
                *(
                    []
                    if link is None
                    else [", ".join(f"{key} {value}" for key, value in point.testbed.items())]
                ),
            ]
        )
    titles = ["point", "unit", "#latest", "#level", "since", "#runs with a number"]
    titles += [] if link is None else ["testbed"]
    return make_table(titles, rows, title="Points", fold=("unit", "testbed"))


Link = Callable[[int, str], Cell]
"""A cell that leads from a table to the picture of a point: from its place and title."""


def _names(trend: Trend, link: Link | None) -> list[str | Cell]:
    titles = [visible(title) for title in titles_of(trend)]
    return [title if link is None else link(place, title) for place, title in enumerate(titles)]


def trend_lines(trend: Trend) -> list[str]:
    """The verdict, and what a reader must know of it."""
    return [
        *([SINGLE] if len(trend.runs) == 1 else []),
        f"{verdict(trend)} Read: {span_of(trend)}.",
        *latest_lines(trend),
        *(f"Not judged alike: {line}" for line in judged_unlike_lines(trend)),
        *method_lines(trend),
        *(f"Not measured alike, and therefore a trend of its own: {line}." for line in trend.unlike),
    ]


SINGLE = "One run has no trend yet: the next one is the first that can be compared."


def verdict(trend: Trend) -> str:
    """`Of 6 points 3 have changed since the first run: 2 worse and 1 better.`"""
    of = f"{format_count(len(trend.points))} {'point' if len(trend.points) == 1 else 'points'}"
    changed = [point for point in trend.points if point.changes]
    if not changed:
        return f"No change at {of}."
    counts = [(sum(direction_of(point) == word for point in changed), word) for word in DIRECTIONS]
    parts = [f"{format_count(count)} {DIRECTIONS[word]}" for count, word in counts if count]
    have = "has" if len(changed) == 1 else "have"
    return f"Of {of} {format_count(len(changed))} {have} changed since the first run: {join(parts)}."


DIRECTIONS = {"worse": "worse", "better": "better", "back": "back where it was"}
BACK = 0.005
"""A point whose changes make up for each other, but for less than this share, is back."""


def direction_of(point: PointTrend) -> str:
    """Direction of a point with changes: where it has come to, all of them together."""
    if point.performance is None or point.performance > 1 + BACK:
        return "better"
    return "worse" if point.performance < 1 - BACK else "back"


def latest_lines(trend: Trend) -> list[str]:
    """`gateway-v6, ...: -4.8 % (worse) since the run of 2026-11-20 02:00, 6.1.0-30.`"""
    titles = {id(point): title for point, title in zip(trend.points, titles_of(trend), strict=True)}
    lines = []
    for point, change in trend.changes:
        run = trend.runs[change.run]
        version = "" if run.version is None else f", {run.version}"
        lines.append(
            visible(
                f"{titles[id(point)]}: {show_change(change)} ({worse_or_better(change)}) since the run of"
                f" {show_begun(run)}{version}."
            )
        )
    for point in trend.points:
        last = point.measured[-1] if point.measured else None
        if last is not None and last.is_apart:
            lines.append(
                visible(
                    f"{titles[id(point)]}: the latest run is apart from the level before it; another run will"
                    " show whether it stays there."
                )
            )
    return lines


def judged_unlike_lines(trend: Trend) -> list[str]:
    """Runs that judged another share of their time than the one before: a change there, or none, may be the
    host's doing."""
    lines = []
    for point, title in zip(trend.points, titles_of(trend), strict=True):
        for before, after in point.judged_unlike:
            run, older = trend.runs[after.run], trend.runs[before.run]
            lines.append(
                visible(
                    f"{title}: {show_share(share_left_out(after.time_left_out))} of the sending time was left"
                    f" out in the run of {show_begun(run)}, and"
                    f" {show_share(share_left_out(before.time_left_out))} in that of {show_begun(older)}."
                )
            )
    return lines


def method_lines(trend: Trend) -> list[str]:
    """How changes are found, as far as it matters here."""
    values = [value for point in trend.points for value in point.values]
    kinds = {point.judged_by for point in trend.points}
    return [
        *([METHOD] if "levels" in kinds else []),
        *([FEW] if kinds - {"levels"} else []),
        *([APART] if any(value.is_apart for value in values) else []),
        *([BOUNDS] if any(value.is_at_least for value in values) else []),
        *([GAPS] if any(value.statistics is None for value in values) else []),
    ]


def show_change(change: Change) -> str:
    """`-4.8 %`, `+5.0 % or more`, `from 0`."""
    if change.ratio.ratio is None:
        return "from 0"
    bound = " or more" if change.ratio.bound != "none" else ""
    return f"{100 * (change.ratio.ratio - 1):+.1f} %{bound}"


def worse_or_better(change: Change) -> str:
    return "worse" if change.is_regression else "better"


def _before_cell(point: PointTrend, change: Change) -> Cell:
    bound = AT_LEAST if change.ratio.bound in ("at_most", "unknown") else ""
    return measured(change.before, point.figure.unit, bound=bound)


def _after_cell(point: PointTrend, change: Change) -> Cell:
    bound = AT_LEAST if change.ratio.bound in ("at_least", "unknown") else ""
    return measured(change.after, point.figure.unit, bound=bound)


def show_begun(run: TrendRun) -> str:
    """`2026-11-20 02:00`, UTC."""
    return moment_of(run).strftime("%Y-%m-%d %H:%M")


def _numbers_by_unit(trend: Trend) -> dict[str, list[float]]:
    """The latest numbers and levels of all points, by their units."""
    found: dict[str, list[float]] = {}
    for point in trend.points:
        latest = [value.median for value in point.measured[-1:] if value.median is not None]
        levels = [level.median for level in point.levels[-1:]]
        found.setdefault(point.figure.unit, []).extend([*latest, *levels])
    return found


def show_latest(point: PointTrend, beside: Iterable[float] = ()) -> str:
    """The value of the last run that has a number; with its place if later ones have none.

    Args:
        beside: Numbers of the same unit in the same table.
    """
    last: TrendValue | None = point.measured[-1] if point.measured else None
    if last is None or last.median is None:
        return point.values[-1].reason or "-"
    return f"{AT_LEAST if last.is_at_least else ''}{show_number(last.median, point.figure, beside)}"


def span_of(trend: Trend) -> str:
    """`12 runs from 2026-11-01 to 2026-11-20`."""
    moments = sorted(moment_of(run) for run in trend.runs)
    if len(moments) == 1:
        return f"the run of {moments[0]:%Y-%m-%d %H:%M}"
    first, last = f"{moments[0]:%Y-%m-%d}", f"{moments[-1]:%Y-%m-%d}"
    when = f"on {first}" if first == last else f"from {first} to {last}"
    return f"{format_count(len(moments))} runs {when}"


def _parts(point: Point) -> tuple[str, ...]:
    left, right = point.addresses
    addresses = (
        f"{point.routes} routes"
        if point.routes is not None
        else "1 address pair"
        if point.is_one_pair
        else f"{format_count(left)} addresses a side"
        if left == right
        else f"{format_count(left)} and {format_count(right)} addresses"
    )
    return (
        point.plan,
        show_size(point),
        addresses,
        PROCEDURES[point.procedure].figure.name if point.procedure in PROCEDURES else point.procedure,
        f"hash {point.hash_type}" if point.hash_type else "",
        " and ".join(point.directions),
    )


def _distinguished(titles: Sequence[str], more: Sequence[str]) -> list[str]:
    """With what is in `more`, where titles are the same and that is not."""
    return [
        f"{title}, {of}"
        if len({other for same, other in zip(titles, more, strict=True) if same == title}) > 1
        else title
        for title, of in zip(titles, more, strict=True)
    ]
