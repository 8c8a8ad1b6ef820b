# SPDX-License-Identifier: Apache-2.0
"""Station 10: two runs or more, point by point, for people and for programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from statistics import median
from typing import Any

from evenhand.analysis import ComparedRun, ComparedValue, Comparison, PointComparison
from evenhand.analysis.comparison import GATE_ERROR
from evenhand.analysis.comparison_model import (
    METHOD,
    OF_SESSIONS,
    ONE_SESSION,
    SAME_LEFT_OUT,
    TOO_FEW,
    TOO_FEW_SESSIONS,
    FailBy,
)
from evenhand.analysis.condition_words import show_percent
from evenhand.base.table import Cell, Table, make_table
from evenhand.base.units import format_count
from evenhand.procedure.descriptor import Figure, show_number
from evenhand.report.plain import WHY_BOUND
from evenhand.run.campaign_record import AT_LEAST

BOUNDS = {"none": "", "at_least": AT_LEAST, "at_most": "<= ", "unknown": "? "}
"""What is written before a ratio. `?`: both medians are lower bounds, and nothing is known of what lies
above."""
BRACKETS = (
    "`a .. b`: the medians of the highest load that passed and of the lowest that failed at the end of"
    " the searches. The limit lies between them, and the intervals are wide enough to cover that."
)
CAPPED = (
    f"`>=` and `<=`: a median is a lower bound, because {WHY_BOUND}. `?`: both are lower bounds, so the"
    " runs may differ above them: a higher maximum-rate, or a tester that keeps more, would show it."
)
TITLE_OF_DIFFERENCES = "Differences between the set-ups"


def comparison_document(
    comparison: Comparison, *, fail_below: float | None = None, fail_by: FailBy = "interval"
) -> dict[str, Any]:
    """The document for programs, and for a page: `runs`, `points`, `unlike`, `differences`, `method`, and
    what is below the limit.

    Args:
        fail_below: The lowest ratio that is good enough; None: nothing is judged.
        fail_by: What must be below it.
    """
    below = () if fail_below is None else comparison.below(fail_below, fail_by)
    return {
        **comparison.to_document(),
        "fail_below": fail_below,
        "fail_by": fail_by,
        "without_gate_interval": comparison.without_gate,
        "below": [point.to_document() for point in below],
    }


def comparison_tables(comparison: Comparison) -> list[Table]:
    """One for each run but the first: a row for each point."""
    return [_points_table(comparison, other) for other in range(len(comparison.runs) - 1)]


def differences_table(comparison: Comparison) -> Table | None:
    """A row for each fact of the set-ups that is not the same in all runs; None if there is none."""
    if not comparison.differences:
        return None
    rows = (
        [found.what, *("-" if value is None else value for value in found.values)]
        for found in comparison.differences
    )
    letters = (letter_of(i) for i in range(len(comparison.runs)))
    return make_table(["what", *letters], rows, title=TITLE_OF_DIFFERENCES)


def comparison_lines(
    comparison: Comparison, *, fail_below: float | None = None, fail_by: FailBy = "interval"
) -> list[str]:
    """What a reader must know of the tables, and the verdict if a limit was set."""
    lines = [f"{letter_of(i)}: {describe_run(run)}" for i, run in enumerate(comparison.runs)]
    lines += [summary(comparison, other) for other in range(len(comparison.runs) - 1)]
    if any(not point.figure.is_higher_better for point in comparison.points):
        lines.append(
            "For latency, PDV, loss, interval and recovery, lower values are better: a ratio above 1 is"
            " worse."
        )
    lines += method_lines(comparison)
    if any(
        point.upper is not None or any(value.upper is not None for value in point.others)
        for point in comparison.points
    ):
        lines.append(BRACKETS)
    if any(
        value.ratio is not None and value.ratio.bound != "none"
        for point in comparison.points
        for value in point.others
    ):
        lines.append(CAPPED)
    lines += [f"Not measured alike: {line}." for line in comparison.unlike]
    lines += [f"Not judged alike: {each.line}." for each in comparison.judged_unlike]
    lines += [f"Note: {note}." for note in comparison.notes]
    if not comparison.differences:
        lines.append("No differences between the set-ups are known.")
    if fail_below is not None:
        below = comparison.below(fail_below, fail_by)
        lines += gate_lines(comparison, fail_by)
        lines.append(_judgement(comparison, fail_below, len(below)))
        lines += [f"  {point.run.file}, {point.key}: {_performance(point.performance)}" for point in below]
    return lines


def gate_lines(comparison: Comparison, fail_by: FailBy) -> list[str]:
    """What a limit is judged by, and what could not be judged so."""
    if fail_by == "median":
        return ["Judged by the point estimates alone: noise may put some of them below the limit."]
    lines = [
        "Judged by whole intervals, adjusted for the number of points: noise alone makes"
        f" such a comparison fail in at most {show_percent(GATE_ERROR)} of cases, for a"
        " limit of 1 or below."
    ]
    if without := comparison.without_gate:
        lines.append(
            f"{format_count(without)} {'value has' if without == 1 else 'values have'} no such"
            " interval (too few repetitions for so many points, a 0, or a lower bound),"
            " so the point estimate was judged, which noise may put below the limit. Ten"
            " repetitions are enough for most comparisons."
        )
    return lines


def letter_of(place: int) -> str:
    """A, B, ...; from the 27th on by number."""
    return chr(ord("A") + place) if place < 26 else f"run {place + 1}"


def describe_run(run: ComparedRun) -> str:
    """Its file, and when it started."""
    return f"{run.file}, started {run.created_at}"


def summary(comparison: Comparison, other: int) -> str:
    """`B over A: 12 points of 12, performance from 0.981 to 1.004, median 0.999.`"""
    found = comparison.performances(other)
    name = f"{letter_of(other + 1)} over {letter_of(0)}"
    points = "1 point" if len(comparison.points) == 1 else f"{format_count(len(comparison.points))} points"
    have = "has" if len(comparison.points) == 1 else "have"
    if not found:
        return f"{name}: {points}, none of them with a number in both runs."
    changed = sum(point.others[other].is_different is True for point in comparison.points)
    beyond = (
        ""
        if changed == 0
        else (
            f"; for {format_count(changed)} the interval does not include 1: the difference"
            " exceeds the noise of the repetitions"
        )
    )
    unlike = sum(point.is_judged_unlike(other) for point in comparison.points)
    but = "" if unlike == 0 else f" {_judged_unlike(unlike)}"
    return (
        f"{name}: {format_count(len(found))} of {points} {have} a number in both runs;"
        f" performance from {min(found):.3f} to {max(found):.3f}, median {median(found):.3f}"
        f" (below 1 is worse){beyond}.{but}"
    )


def _judged_unlike(count: int) -> str:
    """The sentence that keeps two numbers from being called alike."""
    points = "1 point was" if count == 1 else f"{format_count(count)} points were"
    return (
        f"But {points} not judged alike: the share of the time that was left out differs by more than"
        f" {show_percent(SAME_LEFT_OUT)} of the time."
    )


def show_interval(value: ComparedValue) -> str:
    """`0.985 .. 0.998 (95.7 %)`; none of a bound, and none of so few repetitions that it says nothing."""
    interval = None if value.ratio is None else value.ratio.interval
    if interval is None or value.ratio is None or value.is_interval_too_weak or value.ratio.bound != "none":
        return "-"
    return f"{interval.low:.3f} .. {interval.high:.3f} ({show_percent(interval.level)})"


def method_lines(comparison: Comparison) -> list[str]:
    """How ratios and intervals come about, and why some ratios have none."""
    is_any_weak = any(value.is_interval_too_weak for point in comparison.points for value in point.others)
    of_sessions = comparison.is_of_sessions
    weak = [TOO_FEW_SESSIONS if of_sessions else TOO_FEW] if is_any_weak else []
    return [METHOD, OF_SESSIONS if of_sessions else ONE_SESSION, *weak]


def show_ratio_of(value: ComparedValue) -> str:
    """`0.991`, or why there is none."""
    if value.ratio is None:
        return "-"
    if value.ratio.ratio is None:
        return "no ratio to 0"
    return f"{BOUNDS[value.ratio.bound]}{value.ratio.ratio:.3f}"


def show_median(of: PointComparison | ComparedValue, figure: Figure, beside: Iterable[float] = ()) -> str:
    """The median, with the bracket of the searches and how many repetitions, or why there is none.

    Args:
        beside: Numbers of the same unit in the same table.
    """
    if of.statistics is None:
        return of.reason or "-"
    bound = AT_LEAST if of.is_at_least else ""
    bracket = "" if of.upper is None else f" .. {show_number(of.upper, figure, beside)}"
    return f"{bound}{show_number(of.statistics.median, figure, beside)}{bracket} ({of.statistics.count})"


def _numbers_by_unit(comparison: Comparison, other: int) -> dict[str, list[float]]:
    """All numbers of the table of that run, by their units."""
    found: dict[str, list[float]] = {}
    for point in comparison.points:
        for of in (point, point.others[other]):
            medians = [] if of.statistics is None else [of.statistics.median]
            uppers = [] if of.upper is None else [of.upper]
            found.setdefault(point.figure.unit, []).extend([*medians, *uppers])
    return found


def _points_table(comparison: Comparison, other: int) -> Table:
    """A ratio whose interval does not include 1 is flagged."""
    a, b = letter_of(0), letter_of(other + 1)
    values = ((point, point.others[other]) for point in comparison.points)
    beside = _numbers_by_unit(comparison, other)
    rows: Iterator[list[str | Cell]] = (
        [
            point.key,
            point.figure.shown_unit,
            show_median(point, point.figure, beside[point.figure.unit]),
            show_median(value, point.figure, beside[point.figure.unit]),
            Cell(show_ratio_of(value), "flag" if value.is_different else ""),
            show_interval(value),
        ]
        for point, value in values
    )
    titles = [
        "point",
        "unit",
        f"#median {a} (repetitions)",
        f"#median {b}",
        f"#{b} over {a}",
        "#its interval",
    ]
    return make_table(titles, rows, fold=("unit",))


def _judgement(comparison: Comparison, limit: float, below: int) -> str:
    if below == 0:
        unlike = len(comparison.judged_unlike)
        return f"Passed: no point is below {limit:g}.{f' {_judged_unlike(unlike)}' if unlike else ''}"
    return (
        f"Failed: {format_count(below)} {'is' if below == 1 else 'are'} below {limit:g}, or without a number:"
    )


def _performance(performance: float | None) -> str:
    return "no number" if performance is None else f"{performance:.3f}"
