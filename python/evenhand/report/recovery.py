# SPDX-License-Identifier: Apache-2.0
"""Station 10: system recovery, for people (RFC 2544, 26.5)."""

from __future__ import annotations

from rich.table import Table

from evenhand.base.terminal_table import FittedTable
from evenhand.base.units import format_count, format_duration
from evenhand.plan import Direction
from evenhand.procedure import Recovery
from evenhand.report.throughput import describe_limit, dut_lines, last_invalid_line, trials_lines
from evenhand.run.campaign_record import AT_LEAST

DEFINITION = (
    "Recovery time: from the reduction of the load (A) to the time at which the last lost frame was due"
    " (B), B - A; 0 if nothing was lost after the reduction. A queue that was merely full has"
    " recovered at once."
)


def recovery_table(result: Recovery) -> Table:
    """A row for each direction; RFC 2544 reports the average."""
    table = FittedTable("System recovery")
    table.add_column("direction", no_wrap=True)
    for name in ("average", "minimum", "maximum", "median", "lost", "repetitions"):
        table.add_column(name, justify="right", no_wrap=True)
    for direction in result.profile.directions:
        statistics, average_s = result.statistics(direction), result.average_s(direction)
        if statistics is None or average_s is None:
            cells = ["-"] * 4
        else:
            bound = AT_LEAST if result.still_losing(direction) else ""
            cells = [
                bound + _time(value)
                for value in (average_s, statistics.minimum, statistics.maximum, statistics.median)
            ]
        counted = f"{len(result.valid)} of {result.goal.repetitions}"
        table.add_row(direction, *cells, format_count(result.lost_frames(direction)), counted)
    return table


def recovery_lines(result: Recovery) -> list[str]:
    """What a reader must know of the table: conditions, definition, what spoils a figure, deviations."""
    profile, goal, load = result.profile, result.goal, result.load
    assert load.then is not None
    source = "the user's" if goal.throughput_source is None else f"as measured in {goal.throughput_source}"
    lines = [
        f"System recovery: {format_count(load.rate_fps)} fps per direction for"
        f" {format_duration(load.duration_s)}, then"
        f" {format_count(load.then.rate_fps)} fps for {format_duration(load.then.duration_s)};"
        f" throughput {format_count(goal.throughput_fps)} fps, {source}; {profile.frames},"
        f" {profile.protocol},"
        f" {profile.address_words} ({profile.plan.label}); theoretical limit {describe_limit(profile)}.",
        DEFINITION,
    ]
    for direction in profile.directions:
        lines += _direction_lines(result, direction)
    lines += [*profile.sent_lines, *dut_lines(profile)]
    if result.outcome == "tester_limit":
        lines.append(last_invalid_line(result.trials))
    lines += trials_lines(result.trials)
    return lines + [deviation.line for deviation in result.deviations]


def _direction_lines(result: Recovery, direction: Direction) -> list[str]:
    said = (
        (
            result.lossless(direction),
            (
                "no frame was lost, so there was nothing to recover from: check whether the throughput is"
                " correct"
            ),
        ),
        (
            result.still_losing(direction),
            "frames were lost up to the end, so the time is a lower bound: repeat with a longer --observe",
        ),
        (
            result.doubtful(direction),
            "no more frames were lost after the reduction than the tester's own lapses may explain",
        ),
    )
    return [
        f"{direction}: {count} of {len(result.valid)} repetitions {what}." for count, what in said if count
    ]


def _time(value_s: float) -> str:
    return "0 s" if value_s == 0 else format_duration(value_s)
