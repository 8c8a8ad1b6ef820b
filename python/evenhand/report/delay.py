# SPDX-License-Identifier: Apache-2.0
"""Station 10: latency and delay variation, for people: the tables of RFC 8219 and RFC 2544."""

from __future__ import annotations

import math

from rich.table import Table

from evenhand.base.terminal_table import FittedTable
from evenhand.base.units import format_count, format_duration
from evenhand.plan import Direction
from evenhand.procedure import DelayResult, DelayTest
from evenhand.report.check import STAMPS
from evenhand.report.table import show_percentiles
from evenhand.report.throughput import describe_limit, dut_lines, last_invalid_line, trials_lines

DEFINITION = (
    "A delay lasts from building a frame to having received all of it. It includes what the tester"
    " itself adds, and the time of the frame on both links, which RFC 1242 excludes."
)
WHAT_COUNTS = (
    "The delay of a frame counts from its own stamp, so a late departure does not spoil the trial: only"
    " frames that left overdue, or right behind overdue frames, are excluded. A trial with more than a"
    " tenth of its frames excluded is INVALID."
)
NAMES = {
    "typical": "typical (median)",
    "worst_case": "worst case (99.9th percentile)",
    "latency": "latency",
    "pdv": "PDV (99.9th percentile minus minimum)",
    "ipdv_min": "IPDV minimum",
    "ipdv_median": "IPDV median",
    "ipdv_max": "IPDV maximum",
}


def delay_table(result: DelayResult) -> Table:
    """A row for each direction and figure: over the repetitions the median (of RFC 2544's latency the
    average), and the spread."""
    is_average = result.goal.test is DelayTest.LATENCY_RFC2544
    table = FittedTable(result.goal.test.headline)
    for name in ("direction", "figure"):
        table.add_column(name, no_wrap=name == "direction")
    for name in (
        "average" if is_average else "median",
        "own loop",
        "minimum",
        "maximum",
        "1st percentile",
        "99th percentile",
        "lost",
    ):
        table.add_column(name, justify="right", no_wrap=True)
    for direction in result.profile.directions:
        for figure in result.figures:
            table.add_row(direction, NAMES[figure], *_cells(result, direction, figure, is_average=is_average))
    return table


def delay_lines(result: DelayResult) -> list[str]:
    """What a reader must know of the table: conditions, definition, what the tester did, deviations."""
    profile, goal = result.profile, result.goal
    counted = f"{format_count(goal.tags)} tagged" if goal.tags else "all"
    lines = [
        f"{goal.test.headline} at {format_count(goal.rate_fps)} fps per direction; {profile.frames},"
        f" {profile.protocol},"
        f" {profile.address_words} ({profile.plan.label}); theoretical limit {describe_limit(profile)}.",
        f"{len(result.valid)} of {goal.repetitions} repetitions of {format_duration(goal.length_s)}"
        f" each, with {counted} frames that are due from {format_duration(goal.start_s)} on."
        " A lost frame counts as infinitely late.",
        DEFINITION,
        WHAT_COUNTS,
        *_percentile_lines(result),
        *_resolution_lines(result),
        *_own_loop_lines(result),
        *profile.sent_lines,
        *dut_lines(profile),
    ]
    if result.outcome == "tester_limit":
        lines.append(last_invalid_line(result.trials))
    lines += trials_lines(result.trials)
    return lines + [deviation.line for deviation in result.deviations]


def _percentile_lines(result: DelayResult) -> list[str]:
    """With fewer than a thousand values, the 99.9th percentile is the highest (RFC 2330, 11.3)."""
    tags = result.goal.tags
    if not result.goal.is_worst_case_maximum:
        return []
    return [
        f"With {format_count(tags)} tagged frames in a repetition the 99.9th percentile is"
        " their maximum; with 1,000 or more it is not."
    ]


def _resolution_lines(result: DelayResult) -> list[str]:
    if "pdv" not in result.figures:
        return []
    found = [(direction, result.pdv_resolution_ns(direction)) for direction in result.profile.directions]
    ends = ", ".join(
        f"{direction} {format_duration(width_ns / 1e9)}"
        for direction, width_ns in found
        if width_ns is not None
    )
    return (
        [f"PDV may be too high by at most the width of its class of the histogram: {ends}."] if ends else []
    )


def _own_loop_lines(result: DelayResult) -> list[str]:
    """What the tester itself adds, and who took the stamps."""
    own = result.own_loop
    if own.trial is None:
        lines = [f"What the tester's own loop adds at this load is not known: {own.unknown}."]
    else:
        shares = "; ".join(
            f"{direction}: median {_milliseconds(delays.p50_ns)}, 99.9th percentile"
            f" {_milliseconds(delays.p999_ns)}"
            for direction in result.profile.directions
            if (delays := own.delays(direction)) is not None
        )
        lasted = format_duration(own.trial.intended_duration_s)
        lines = [
            f"Share of the tester's own loop at this load, {shares}: its two ports were"
            f" connected to each other inside this machine for {lasted}, over all frames."
            " It is included in the delays; nothing is subtracted."
        ]
    stamps = ", ".join(f"{side}: {STAMPS[found]}" for side, found in result.hardware_stamps.items())
    return [*lines, f"Stamps are taken by software. Hardware stamps: {stamps}."] if stamps else lines


def _cells(result: DelayResult, direction: Direction, figure: str, *, is_average: bool) -> list[str]:
    statistics = result.statistics(direction, figure)
    if statistics is None:
        return ["-"] * 7
    middle = result.average(direction, figure) if is_average else statistics.median
    own = result.own_loop_figure(direction, figure)
    assert middle is not None, "there are no values for the statistics"
    return [
        _milliseconds(middle),
        "not known" if own is None else _milliseconds(own),
        *map(_milliseconds, (statistics.minimum, statistics.maximum)),
        *show_percentiles(statistics, _milliseconds),
        format_count(result.lost_frames(direction)),
    ]


def _milliseconds(value_ns: float) -> str:
    """The unit that RFC 8219 asks for, down to a nanosecond."""
    return f"{value_ns / 1e6:.6f} ms" if math.isfinite(value_ns) else "infinite"
