# SPDX-License-Identifier: Apache-2.0
"""Station 10: system recovery, for people (RFC 2544, 26.5)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evenhand.base.table import Cell, Column, Table, measured
from evenhand.base.units import format_count, format_duration
from evenhand.procedure import Recovery
from evenhand.report.result_entry import ResultEntry, describe_conditions, last_invalid_lines, table_of
from evenhand.results.recovery import RecoveryFound
from evenhand.run.campaign_record import AT_LEAST

DEFINITION = (
    "Recovery time: from the reduction of the load (A) to the time at which the last lost frame was due"
    " (B), B - A; 0 if nothing was lost after the reduction. A queue that was merely full has"
    " recovered at once."
)
REMARKS = {
    "lossless_repetitions": (
        "no frame was lost, so there was nothing to recover from: check whether the throughput is correct"
    ),
    "still_losing_repetitions": (
        "frames were lost up to the end, so the time is a lower bound: repeat with a longer --observe"
    ),
    "doubtful_repetitions": (
        "no more frames were lost after the reduction than the tester's own lapses may explain"
    ),
}


def recovery_table(entries: Sequence[ResultEntry]) -> Table:
    """A row for each direction; RFC 2544 reports the average."""
    return table_of(
        ((entry.labels, _rows(entry.found)) for entry in entries),
        [
            Column("direction", is_name=True),
            "#average",
            "#minimum",
            "#maximum",
            "#median",
            "#lost",
            "#repetitions",
        ],
        title="System recovery",
        caption=DEFINITION,
    )


def recovery_lines(entry: ResultEntry) -> list[str]:
    """What a reader must know of the table: definition, what spoils a figure."""
    return [
        DEFINITION,
        *(
            f"{direction}: {count} of {len(figures.values)} repetitions {what}."
            for direction, figures in entry.found.figures.items()
            for name, what in REMARKS.items()
            if (count := getattr(figures, name))
        ),
        *last_invalid_lines(entry.found.outcome, entry.trials),
    ]


def recovery_conditions(result: Recovery) -> list[str]:
    """What was sent, and how fast."""
    goal, load = result.goal, result.load
    assert load.then is not None
    source = "the user's" if goal.throughput_source is None else f"as measured in {goal.throughput_source}"
    return [
        f"System recovery: {format_count(load.rate_fps)} fps per direction for"
        f" {format_duration(load.duration_s)}, then"
        f" {format_count(load.then.rate_fps)} fps for {format_duration(load.then.duration_s)};"
        f" throughput {format_count(goal.throughput_fps)} fps, {source};"
        f" {describe_conditions(result.profile)}."
    ]


def _rows(found: RecoveryFound) -> Iterator[list[str | Cell]]:
    for direction, figures in found.figures.items():
        bound = AT_LEAST if figures.still_losing_repetitions else ""
        times = (figures.average_s, figures.minimum_s, figures.maximum_s, figures.median_s)
        yield [
            direction,
            *(measured(time_s, "s", bound=bound) for time_s in times),
            format_count(figures.lost_frames),
            f"{len(figures.values)} of {found.goal.repetitions}",
        ]
