# SPDX-License-Identifier: Apache-2.0
"""Station 10: what the tests of a DUT that keeps state found (RFC 9693), for people: the lines below the
table."""

from __future__ import annotations

from evenhand.base.units import format_count
from evenhand.report.result_entry import ResultEntry, show, with_spaces
from evenhand.report.throughput import describe_outcome
from evenhand.results.connections import (
    CapacityFound,
    CapacityOutcome,
    ConnectionRateFound,
    TearDownFound,
    TriedCapacity,
)

CAPACITY_OUTCOMES = {
    str(CapacityOutcome.FOUND): "found",
    str(CapacityOutcome.AT_LEAST): "the most that were to be tried are held: the limit was not reached",
    str(CapacityOutcome.TOO_FEW): "not even the first number is held",
    str(CapacityOutcome.TIMEOUT): "the DUT would forget some of the next number before all are validated",
    str(CapacityOutcome.TESTER_CEILING): "tester ceiling: the tester itself could not keep the rates",
    str(CapacityOutcome.STOPPED): "stopped",
}


def rate_lines(entry: ResultEntry) -> list[str]:
    """The lines of a maximum connection establishment rate. A frame opens a connection, so that fps are
    connections per second."""
    found: ConnectionRateFound = entry.found
    return [
        f"Outcome: {describe_outcome(found, entry.trials)}. Each frame opens one of"
        f" {format_count(found.connections)} connections."
    ]


def capacity_lines(entry: ResultEntry) -> list[str]:
    """The lines of a connection table's capacity."""
    found: CapacityFound = entry.found
    held, not_held = (show(count, format_count, none="none") for count in (entry.value, found.not_held))
    outcome = CAPACITY_OUTCOMES.get(found.outcome, with_spaces(found.outcome))
    first = f"Outcome: {outcome}. Connections held: {held}; not held: {not_held}."
    return [first, *map(_step_line, found.steps)]


def _step_line(step: TriedCapacity) -> str:
    opened = show(step.connections_per_second, lambda rate: f"at {format_count(rate)}/s", none="at no rate")
    verdict = "not held" if step.is_held is False else f"held, opened {opened}"
    decided = "not decided" if step.is_held is None else verdict
    return f"{format_count(step.connections)} connections: {decided}."


def tear_down_lines(entry: ResultEntry) -> list[str]:
    """The lines of a tear-down rate: the table has the median."""
    found: TearDownFound = entry.found
    rates = ", ".join(
        show(removal.per_second, lambda rate: f"{format_count(rate)}/s", none="too fast to be measured")
        for removal in found.removals
    )
    return [f"Each time {format_count(found.connections)} connections were removed: {rates or 'never'}."]
