# SPDX-License-Identifier: Apache-2.0
"""Station 10: what the tests of a DUT that keeps state found (RFC 9693), for people: the lines below the
table."""

from __future__ import annotations

from collections.abc import Sequence

from evenhand.base.units import format_count
from evenhand.procedure import Profile
from evenhand.procedure.connection_capacity import Capacity, CapacityOutcome
from evenhand.procedure.connection_rate import ConnectionRate
from evenhand.procedure.tear_down import TearDown
from evenhand.report.throughput import dut_lines, trials_lines
from evenhand.search import Outcome, describe_outcome
from evenhand.trial import Deviation, TrialResult

CAPACITY_OUTCOMES = {
    CapacityOutcome.FOUND: "found",
    CapacityOutcome.AT_LEAST: "the most that were to be tried are held: the limit was not reached",
    CapacityOutcome.TOO_FEW: "not even the first number is held",
    CapacityOutcome.TIMEOUT: "the DUT would forget some of the next number before all are validated",
    CapacityOutcome.TESTER_LIMIT: "tester limit: the tester itself could not keep the rates",
    CapacityOutcome.STOPPED: "stopped",
}


def rate_lines(found: ConnectionRate) -> list[str]:
    """The lines of a maximum connection establishment rate. A frame opens a connection, so that fps are
    connections per second."""
    trials = [trial.result for trial in found.trials]
    return [
        f"Outcome: {describe_outcome(found.search)}. Each frame opens one of"
        f" {format_count(found.goal.connections)} connections.",
        *_closing(found.profile, trials, found.deviations, found.outcome is not Outcome.TESTER_LIMIT),
    ]


def capacity_lines(found: Capacity) -> list[str]:
    """The lines of the capacity of a connection table."""
    held, not_held = ("none" if n is None else format_count(n) for n in (found.held, found.not_held))
    trials = [trial.result for trial in found.trials]
    is_decided = found.outcome is not CapacityOutcome.TESTER_LIMIT
    return [
        f"Outcome: {CAPACITY_OUTCOMES[found.outcome]}. Connections held: {held}; not held: {not_held}.",
        *_closing(found.profile, trials, found.deviations, is_decided),
    ]


def tear_down_lines(found: TearDown) -> list[str]:
    """The lines of a tear-down rate: the table has the median."""
    rates = ", ".join(
        "too fast to be measured" if removal.per_second is None else f"{format_count(removal.per_second)}/s"
        for removal in found.removals
    )
    return [
        f"Each time {format_count(found.goal.connections)} connections were removed: {rates or 'never'}.",
        *_closing(found.profile, found.trials, found.deviations, found.outcome != "tester_limit"),
    ]


def _closing(
    profile: Profile, trials: Sequence[TrialResult], deviations: Sequence[Deviation], is_decided: bool
) -> list[str]:
    return [
        *profile.sent_lines,
        *dut_lines(profile),
        *trials_lines(trials, is_decided=is_decided),
        *(deviation.line for deviation in deviations),
    ]
