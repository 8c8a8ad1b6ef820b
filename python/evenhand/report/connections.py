# SPDX-License-Identifier: Apache-2.0
"""Station 10: what the tests of a DUT that keeps state found (RFC 9693), for people: the lines below the
table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from evenhand.base.units import format_count
from evenhand.procedure.connection_capacity import CapacityOutcome
from evenhand.report.result_entry import ResultEntry, mapping, mappings, number, show, whole, words
from evenhand.report.throughput import describe_outcome

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
    return [
        f"Outcome: {describe_outcome(entry.document, entry.trials)}. Each frame opens one of"
        f" {format_count(whole(entry.document, 'connections'))} connections."
    ]


def capacity_lines(entry: ResultEntry) -> list[str]:
    """The lines of a connection table's capacity."""
    document = entry.document
    held, not_held = (
        show(count, format_count, none="none") for count in (entry.value, number(document, "not_held"))
    )
    outcome = CAPACITY_OUTCOMES.get(str(document.get("outcome")), words(document, "outcome"))
    return [f"Outcome: {outcome}. Connections held: {held}; not held: {not_held}.", *_step_lines(document)]


def _step_lines(document: Mapping[str, Any]) -> Iterator[str]:
    """Each number of connections that was tried, in order."""
    for step in mappings(document, "steps"):
        rate = show(
            number(step, "connections_per_second"),
            lambda each: f"at {format_count(each)}/s",
            none="at no rate",
        )
        is_held = step.get("is_held")
        verdict = "not decided" if is_held is None else f"held, opened {rate}" if is_held else "not held"
        yield f"{format_count(whole(step, 'connections'))} connections: {verdict}."


def tear_down_lines(entry: ResultEntry) -> list[str]:
    """The lines of a tear-down rate: the table has the median."""
    rates = ", ".join(
        show(
            number(removal, "connections_per_second"),
            lambda rate: f"{format_count(rate)}/s",
            none="too fast to be measured",
        )
        for removal in mappings(entry.document, "removals")
    )
    connections = format_count(whole(mapping(entry.document, "goal"), "connections"))
    return [f"Each time {connections} connections were removed: {rates or 'never'}."]
