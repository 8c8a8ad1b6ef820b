# SPDX-License-Identifier: Apache-2.0
"""Station 10: the smallest intervals between bursts, for people (RFC 2544, 21)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evenhand.base.one_unit import WHOLE_FPS
from evenhand.base.table import Cell, Table, measured
from evenhand.base.units import format_count, format_duration, format_ratio
from evenhand.procedure import BurstIntervals
from evenhand.report.result_entry import ResultEntry, mapping, mappings, number, table_of, whole, words
from evenhand.report.result_lines import describe_conditions
from evenhand.search import Outcome

DEFINITION = (
    "Interval: from the beginning of a burst to the beginning of the next; gap: from the end of a burst"
    " to the beginning of the next."
)
STORIES = {
    str(Outcome.AT_OR_ABOVE_MAXIMUM): "none needed: bursts without a gap between them passed",
    str(Outcome.TESTER_LIMIT): "the tester itself did not keep the load, which says nothing about the DUT",
    str(Outcome.STOPPED): "stopped before the end",
}


def burst_table(entries: Sequence[ResultEntry]) -> Table:
    """A row for each size of bursts."""
    return table_of(
        ((entry.labels, _rows(entry.document)) for entry in entries),
        ["#frames", "#interval", "#gap", "#with loss", "#mean load per direction", "search"],
        title="Smallest interval between bursts without loss",
        caption=DEFINITION,
    )


def burst_lines(entry: ResultEntry) -> list[str]:
    """What a reader must know of the table: what the columns are, how it was searched."""
    goal = mapping(entry.document, "goal") or mapping(mapping(entry.document, "search"), "goal")
    precision = number(goal, "precision")
    duration_s, final_s = number(goal, "duration_s"), number(goal, "final_duration_s")
    if precision is None or duration_s is None or final_s is None:
        return [DEFINITION]
    return [
        f"{DEFINITION} Binary search to {format_ratio(precision)} of the interval, trials of"
        f" {format_duration(duration_s)}, the result confirmed by one of {format_duration(final_s)}."
    ]


def burst_conditions(result: BurstIntervals) -> list[str]:
    """What was sent, and how fast."""
    return [
        f"Bursts at {format_count(result.goal.rate_fps)} fps per direction;"
        f" {describe_conditions(result.profile)}."
    ]


def _rows(document: Mapping[str, Any]) -> Iterator[list[str | Cell]]:
    # In the run file of the verb, each size of bursts is a result of its own.
    for interval in mappings(document, "intervals") or [document]:
        times = (number(interval, key) for key in ("interval_s", "gap_s", "failed_interval_s"))
        mean_fps = number(interval, "mean_fps_per_direction")
        yield [
            format_count(whole(interval, "burst_frames")),
            *(measured(None if time_s is None else time_s * 1e6, "us") for time_s in times),
            measured(mean_fps, WHOLE_FPS),
            _story(interval),
        ]


def _story(interval: Mapping[str, Any]) -> str:
    search = mapping(interval, "search")
    outcome = str(search.get("outcome"))
    lowest_fps = number(mapping(search, "goal"), "min_fps")
    if outcome == Outcome.BELOW_MINIMUM and lowest_fps:
        largest_s = whole(interval, "burst_frames") / lowest_fps
        return f"no interval up to {format_duration(largest_s)} is without loss"
    return STORIES.get(outcome, words(search, "outcome"))
