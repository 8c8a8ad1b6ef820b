# SPDX-License-Identifier: Apache-2.0
"""Station 10: the smallest intervals between bursts, for people (RFC 2544, 21)."""

from __future__ import annotations

from rich.table import Table

from evenhand.base.terminal_table import FittedTable
from evenhand.base.units import format_count, format_duration, format_ratio
from evenhand.procedure import BurstInterval, BurstIntervals
from evenhand.report.throughput import describe_limit, dut_lines, trials_lines
from evenhand.search import Outcome


def burst_table(result: BurstIntervals) -> Table:
    """A row for each size of bursts."""
    table = FittedTable("Smallest interval between bursts without loss")
    for name in ("frames", "interval", "gap", "with loss", "mean load per direction"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("search", overflow="fold")
    for interval in result.intervals:
        times = (interval.interval_s, interval.gap_s, interval.failed_interval_s)
        mean = "-" if interval.mean_fps is None else f"{format_count(round(interval.mean_fps))} fps"
        table.add_row(format_count(interval.frames), *map(_time, times), mean, _story(interval))
    return table


def burst_lines(result: BurstIntervals) -> list[str]:
    """What a reader must know of the table: conditions, what the columns are, deviations."""
    profile, goal = result.profile, result.goal
    lines = [
        f"Bursts at {format_count(goal.rate_fps)} fps per direction; {profile.frames}, {profile.protocol},"
        f" {profile.address_words}"
        f" ({profile.plan.label}); theoretical limit {describe_limit(profile)}.",
        "Interval: from the beginning of a burst to the beginning of the next; gap: from"
        " the end of a burst to the beginning of the next. Binary search to"
        f" {format_ratio(goal.precision)} of the interval, trials of"
        f" {format_duration(goal.duration_s)}, the result confirmed by one of"
        f" {format_duration(goal.final_duration_s)}.",
        *profile.sent_lines,
        *dut_lines(profile),
    ]
    lines += trials_lines(
        [trial.result for trial in result.trials], is_decided=result.outcome != "tester_limit"
    )
    return lines + [deviation.line for deviation in result.deviations]


def _story(interval: BurstInterval) -> str:
    match interval.outcome:
        case Outcome.FOUND:
            return "found"
        case Outcome.AT_OR_ABOVE_MAXIMUM:
            return "none needed: bursts without a gap between them passed"
        case Outcome.BELOW_MINIMUM:
            largest_s = interval.frames / interval.search.goal.lowest_fps
            return f"no interval up to {format_duration(largest_s)} is without loss"
        case Outcome.TESTER_LIMIT:
            return "the tester itself did not keep the load, which says nothing about the DUT"
        case Outcome.STOPPED:
            return "stopped before the end"


def _time(value_s: float | None) -> str:
    if value_s is None:
        return "-"
    return "0 s" if value_s == 0 else format_duration(value_s)
