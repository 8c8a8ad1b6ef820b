# SPDX-License-Identifier: Apache-2.0
"""Station 10: latency and delay variation, for people: the tables of RFC 8219 and RFC 2544."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from evenhand.base.table import Column, Table
from evenhand.base.units import format_count, format_duration
from evenhand.base.visible import visible
from evenhand.plan import Direction
from evenhand.procedure import DelayResult
from evenhand.procedure.delay_result import own_loop_figure
from evenhand.procedure.statistics import FEWEST_FOR_PERCENTILES
from evenhand.report.page_words import NONE
from evenhand.report.plain import STAMPS
from evenhand.report.result_entry import (
    PERCENTILES,
    ResultEntry,
    describe_conditions,
    last_invalid_lines,
    percentiles_lines,
    table_of,
)
from evenhand.results.delay import DelayFigure, DelayFound, DelayName, DelayTest

DEFINITION = (
    "A delay lasts from building a frame to having received all of it. It includes what the tester"
    " itself adds, and the time of the frame on both links, which RFC 1242 excludes."
)
WHAT_COUNTS = (
    "The delay of a frame counts from its own stamp, so a late departure does not spoil the trial: only"
    " frames that left overdue, or right behind overdue frames, and those that the tester read late are"
    " excluded. A trial with more than a tenth of its frames excluded is INVALID."
)
NAMES: dict[DelayName, str] = {
    "typical": "typical (median)",
    "worst_case": "worst case (99.9th percentile)",
    "latency": "latency",
    "pdv": "PDV (99.9th percentile minus minimum)",
    "ipdv_min": "IPDV minimum",
    "ipdv_median": "IPDV median",
    "ipdv_max": "IPDV maximum",
}
AVERAGED = "latency"
"""The figure of RFC 2544, which wants the average over the repetitions, not the median."""


def delay_table(entries: Sequence[ResultEntry]) -> Table:
    """A row for each direction and figure: over the repetitions the median (of RFC 2544's latency the
    average), and the spread (R8219-11, R8219-12)."""
    results: list[DelayFound] = [entry.found for entry in entries]
    tests = {found.goal.test for found in results}
    is_averaged = DelayTest.LATENCY_RFC2544 in tests
    is_variation = tests == {DelayTest.PDV}
    definition = "" if is_variation else f"{DEFINITION} "
    middle = "median" if not is_averaged else "average" if len(tests) == 1 else "median (RFC 2544: average)"
    numbers = (middle, "own loop", "minimum", "maximum", *PERCENTILES)
    return table_of(
        ((entry.labels, _rows(entry)) for entry in entries),
        [
            Column("direction", is_name=True),
            "figure",
            *(f"#{name}, ms" for name in numbers),
            "#lost",
            "#repetitions",
            "#excluded",
        ],
        title=DelayTest.PDV.headline if is_variation else DelayTest.LATENCY.headline,
        caption=" ".join(
            [
                f"Over the repetitions. Excluded: the most in any of them. {definition}{WHAT_COUNTS}",
                *_exactness_lines(results),
            ]
        ),
        fold=("repetitions", "excluded"),
    )


def delay_lines(entry: ResultEntry) -> list[str]:
    """What a reader must know of the table: definition, what the tester did."""
    found: DelayFound = entry.found
    return [
        _repetitions_line(found),
        DEFINITION,
        WHAT_COUNTS,
        *_exactness_lines([found]),
        *_own_loop_lines(found),
        *last_invalid_lines(found.outcome, entry.trials),
    ]


def delay_conditions(result: DelayResult) -> list[str]:
    """What was sent, and how fast."""
    goal = result.goal
    return [
        f"{goal.test.headline} at {format_count(goal.rate_fps)} fps per direction;"
        f" {describe_conditions(result.profile)}."
    ]


def _rows(entry: ResultEntry) -> Iterator[list[str]]:
    found: DelayFound = entry.found
    repetitions = max(found.counts, default=0)
    for direction, figures in found.figures.items():
        for name in (each for each in NAMES if each in found.names):
            figure, own_ns = figures.of.get(name), _own_loop_ns(entry, direction, name)
            yield [
                direction,
                NAMES[name],
                *_numbers(figure, name, "not known" if own_ns is None else _milliseconds(own_ns)),
                format_count(figures.lost_frames),
                str(repetitions if figure is None else figure.count),
                format_count(figures.left_out_frames),
            ]


def _numbers(figure: DelayFigure | None, name: DelayName, own_loop: str) -> list[str]:
    if figure is None:
        return [NONE] * 6
    middle = figure.average_ns if name == AVERAGED else figure.median_ns
    spread = map(_milliseconds, (figure.minimum_ns, figure.maximum_ns))
    ends = map(_milliseconds, (figure.percentile_1_ns, figure.percentile_99_ns))
    shown = [NONE, NONE] if figure.count < FEWEST_FOR_PERCENTILES else ends
    return [_milliseconds(middle), own_loop, *spread, *shown]


def _own_loop_ns(entry: ResultEntry, direction: Direction, name: DelayName) -> float | None:
    """The same figure of the tester's own loop, in ns. The document has no differences of consecutive frames:
    these are in the trial."""
    if entry.own_loop is not None:
        return own_loop_figure(entry.own_loop, direction, name)
    stated = None if entry.found.own_loop is None else entry.found.own_loop.directions.get(direction)
    if stated is None:
        return None
    figures: dict[DelayName, float | None] = {
        "typical": stated.median_ns,
        "latency": stated.median_ns,
        "worst_case": stated.percentile_99_9_ns,
        "pdv": stated.pdv_ns,
    }
    return figures.get(name)


def _repetitions_line(found: DelayFound) -> str:
    goal = found.goal
    counted = f"{format_count(goal.tags)} tagged" if goal.tags else "all"
    return (
        f"{max(found.counts, default=0)} of {goal.repetitions} repetitions of"
        f" {format_duration(goal.length_s)} each, with {counted} frames that are due from"
        f" {format_duration(goal.start_s)} on. A lost frame counts as infinitely late."
    )


def _exactness_lines(results: Sequence[DelayFound]) -> list[str]:
    """How far percentiles over the repetitions are percentiles, and those of each repetition: with fewer than
    a thousand values, the 99.9th is the highest (RFC 2330, 11.3). The worst resolution of each
    direction's PDV, where it is stated."""
    lines = percentiles_lines(count for found in results for count in found.counts)
    if tags := {found.goal.tags for found in results if found.goal.is_worst_case_maximum}:
        lines.append(
            f"With {' or '.join(map(format_count, sorted(tags)))} tagged frames in a repetition the 99.9th"
            " percentile is their maximum; with 1,000 or more it is not."
        )
    widths: dict[Direction, float] = {}
    for direction, figures in (each for found in results for each in found.figures.items()):
        if (width_ns := figures.pdv_resolution_ns) is not None:
            widths[direction] = max(width_ns, widths.get(direction, 0.0))
    if widths:
        ends = ", ".join(f"{direction} {format_duration(width / 1e9)}" for direction, width in widths.items())
        lines.append(f"PDV may be too high by at most the width of its class of the histogram: {ends}.")
    return lines


def _own_loop_lines(found: DelayFound) -> Iterable[str]:
    """What the tester itself adds, and who took the stamps; nothing where the document does not state it."""
    own = found.own_loop
    if own is not None and own.unknown:
        yield f"What the tester's own loop adds at this load is not known: {visible(own.unknown)}."
    elif own is not None:
        shares = "; ".join(
            f"{direction}: median {_milliseconds(delays.median_ns)} ms, 99.9th percentile"
            f" {_milliseconds(delays.percentile_99_9_ns)} ms"
            for direction, delays in own.directions.items()
        )
        yield (
            f"Share of the tester's own loop at this load, {shares}: its two ports were"
            f" connected to each other inside this machine for {format_duration(own.duration_s or 0.0)},"
            " over all frames. It is included in the delays; nothing is subtracted."
        )
    if found.stamps is not None and found.stamps.hardware:
        stamps = ", ".join(
            f"{side}: {STAMPS.get(stamp, visible(stamp))}" for side, stamp in found.stamps.hardware.items()
        )
        yield f"Stamps are taken by software. Hardware stamps: {stamps}."


def _milliseconds(value_ns: float | None) -> str:
    """The unit that RFC 8219 asks for, down to a nanosecond. None is the delay of a lost frame, which never
    comes (R8219-16)."""
    return f"{value_ns / 1e6:.6f}" if value_ns is not None and math.isfinite(value_ns) else "infinite"
