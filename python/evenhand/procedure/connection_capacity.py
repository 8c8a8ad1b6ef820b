# SPDX-License-Identifier: Apache-2.0
"""Procedure: capacity of the connection tracking table (RFC 9693, 4.9): how many connections a DUT that keeps
state can hold."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

from evenhand.base.errors import RequestError
from evenhand.base.option import NUMBER, RATE, RATIO, Option, values_of
from evenhand.base.units import format_count, format_ratio
from evenhand.base.validation.typed_fields import check_types
from evenhand.plan import MAX_CONNECTIONS
from evenhand.procedure.connection_rate import (
    ConnectionRate,
    ConnectionRateGoal,
    measure_connection_rate,
    with_maximum,
)
from evenhand.procedure.connection_trials import DEFAULT_ALPHA, TOO_SHORT, check_timeout, longest_idle_s
from evenhand.procedure.connection_wish import check_connections, most_connections
from evenhand.procedure.descriptor import (
    Figure,
    FrameSizes,
    KnownThroughput,
    Procedure,
    as_number,
    describe_maximum,
)
from evenhand.procedure.events import Note, OnEvent, ignore
from evenhand.procedure.expected_time import halvings
from evenhand.procedure.limits import Retries
from evenhand.procedure.profile import Profile
from evenhand.procedure.record import Recorder
from evenhand.procedure.result_document import result_document
from evenhand.procedure.tester import OpenTester
from evenhand.search import DEFAULT_INVALID_RETRIES, DEFAULT_PATIENCE, Outcome
from evenhand.search.search_trial import SearchTrial, numbered_documents
from evenhand.trial import Deviation

BETA = 0.1
"""The table is too small for twice the connections if their rate falls below this share (R9693-14)."""
GAMMA = 0.5
"""The same between two numbers of connections."""
DEFAULT_START = 10_000


class CapacityOutcome(StrEnum):
    """How a search of the capacity ended."""

    FOUND = "found"
    AT_LEAST = "at_least"
    """The most connections that were to be tried are held."""
    TOO_FEW = "too_few"
    """Not even the first number is held."""
    TIMEOUT = "timeout"
    """The DUT would forget some of the next number of connections before all are validated, so that it was
    not tried."""
    TESTER_LIMIT = "tester_limit"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityGoal:
    """Where to search. Rates are connections per second."""

    start: int = DEFAULT_START
    """Connections that the DUT surely holds (C0)."""
    most: int = MAX_CONNECTIONS
    """More are not tried."""
    precision: float = 0.01
    """Stop when the bracket is no wider than this share of its upper bound (E)."""
    max_fps: float = math.inf
    """Highest rate of new connections that is tried."""
    rate_precision: float = 0.1
    """Precision of each rate that is found on the way."""
    alpha: float = DEFAULT_ALPHA
    """See `ConnectionRateGoal`."""
    invalid_retries: int = DEFAULT_INVALID_RETRIES
    patience: int = DEFAULT_PATIENCE

    def __post_init__(self) -> None:
        check_types(self)
        check_connections(self.start, "pseudorandom")
        if not self.start <= self.most <= MAX_CONNECTIONS:
            raise RequestError(
                f"at most {self.most} connections: must be {self.start} to {format_count(MAX_CONNECTIONS)}",
                code="procedure.out-of-range",
                where="most",
            )
        if not 0 < self.precision < 1:
            raise RequestError(
                f"precision {self.precision}: must be between 0 and 1",
                code="procedure.out-of-range",
                where="precision",
                next_step="Use 1%.",
            )
        self.rate_goal(self.start, None)  # checks the rest

    def longest_idle_s(self, waits_s: float) -> float | None:
        """How long, as far as it is known before, one of the first number of connections has no frame, or one
        of the most, if so many are to be tried, even at the highest rate. None as long as that is the
        line rate."""
        first_s = self.rate_goal(self.start, None).longest_idle_s(waits_s)
        if first_s is None or self.most == MAX_CONNECTIONS:
            return first_s
        return max(first_s, longest_idle_s(self.most, self.max_fps, self.alpha, waits_s))

    def rate_goal(
        self, connections: int, least_fps: float | None, known_fps: float | None = None
    ) -> ConnectionRateGoal:
        """The goal for the rate of so many connections, which matters down to `least_fps` only.

        Args:
            known_fps: The rate of fewer connections.
        """
        return ConnectionRateGoal(
            connections=connections,
            max_fps=self.max_fps,
            min_fps=least_fps,
            known_fps=known_fps,
            precision=self.rate_precision,
            alpha=self.alpha,
            invalid_retries=self.invalid_retries,
            patience=self.patience,
        )

    def to_document(self) -> dict[str, Any]:
        return {
            "start": self.start,
            "most": self.most,
            "precision": self.precision,
            "max_fps": self.max_fps,
            "rate_precision": self.rate_precision,
            "alpha": self.alpha,
            "beta": BETA,
            "gamma": GAMMA,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityStep:
    """One number of connections that was tried."""

    connections: int
    least_fps: float
    """The rate that was asked of it; 0 for the first."""
    rate: ConnectionRate

    @property
    def is_held(self) -> bool | None:
        """Whether that many connections are held; None if the tester did not manage to find out."""
        if self.rate.outcome in (Outcome.STOPPED, Outcome.TESTER_LIMIT) and self.rate.rate_fps is None:
            return None
        return self.rate.rate_fps is not None

    def to_document(self) -> dict[str, Any]:
        return {
            "connections": self.connections,
            "least_per_second": self.least_fps,
            "connections_per_second": self.rate.rate_fps,
            "is_held": self.is_held,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """What was found, and with what traffic."""

    profile: Profile
    goal: CapacityGoal
    outcome: CapacityOutcome
    held: int | None
    """The largest number of connections that the DUT held; a lower bound if the outcome says so."""
    not_held: int | None
    """The smallest that it did not."""
    steps: tuple[CapacityStep, ...]

    @property
    def trials(self) -> list[SearchTrial]:
        """Trials of all numbers that were tried."""
        return [trial for step in self.steps for trial in step.rate.trials]

    @property
    def deviations(self) -> list[Deviation]:
        """Deviations from the RFCs, each once."""
        found = {(d.requirement, d.text): d for step in self.steps for d in step.rate.deviations}
        return [found[key] for key in sorted(found)]

    def summary(self) -> dict[str, Any]:
        """The document without traffic and trials, which are those of the rates."""
        return {
            "outcome": str(self.outcome),
            "capacity": self.held,
            "not_held": self.not_held,
            "is_at_least": self.held is not None and self.not_held is None,
            "steps": [step.to_document() for step in self.steps],
            "goal": self.goal.to_document(),
        }

    def to_document(self) -> dict[str, Any]:
        """All of it, as `evenhand capacity --json` writes it."""
        return result_document(
            self.profile,
            self.summary(),
            trials=(trial.result for trial in self.trials),
            documents=numbered_documents(self.trials),
            deviations=self.deviations,
        )


def measure_capacity(
    tester: OpenTester,
    goal: CapacityGoal,
    *,
    name: str = "capacity",
    on_event: OnEvent = ignore,
    recorder: Recorder | None = None,
) -> Capacity:
    """Double the connections until their rate collapses, then halve the bracket (R9693-14). Each rate is a
    search with validation.

    Raises:
        RequestError, HostError, EvenhandError: See `measure_connection_rate`.
    """
    check_capacity(goal, tester)
    most = min(goal.most, most_connections(tester.profile.plan))
    steps: list[CapacityStep] = []

    def try_number(connections: int, share: float, known_fps: float | None) -> CapacityStep:
        least_fps = share * (known_fps or 0.0)
        on_event(Note(text=f"{format_count(connections)} connections:", is_heading=True))
        found = measure_connection_rate(
            tester,
            goal.rate_goal(connections, least_fps or None, known_fps),
            name=f"{name}, {connections} connections",
            on_event=on_event,
            recorder=recorder,
        )
        steps.append(CapacityStep(connections=connections, least_fps=least_fps, rate=found))
        return steps[-1]

    def end(outcome: CapacityOutcome, held: int | None, not_held: int | None) -> Capacity:
        return Capacity(
            profile=tester.profile,
            goal=goal,
            outcome=outcome,
            held=held,
            not_held=not_held,
            steps=tuple(steps),
        )

    held = try_number(goal.start, 0.0, None)
    if not held.is_held:
        return end(_why_not(held) or CapacityOutcome.TOO_FEW, None, goal.start)
    not_held: int | None = None
    while not_held is None or not_held - held.connections > max(1, goal.precision * not_held):
        if not_held is None and held.connections == most:
            return end(CapacityOutcome.AT_LEAST, most, None)
        number = min(2 * held.connections, most) if not_held is None else (held.connections + not_held) // 2
        share = BETA if not_held is None else GAMMA
        try:
            step = try_number(number, share, held.rate.rate_fps)
        except RequestError as error:
            if error.code != TOO_SHORT:
                raise
            # What was found is kept, although it is not all that was asked for.
            on_event(Note(text=f"{format_count(number)} connections: {error.what}. {error.next_step}"))
            return end(CapacityOutcome.TIMEOUT, held.connections, not_held)
        if step.is_held is None:
            return end(_why_not(step) or CapacityOutcome.TESTER_LIMIT, held.connections, not_held)
        if step.is_held:
            held = step
        else:
            not_held = number
    return end(CapacityOutcome.FOUND, held.connections, not_held)


def _why_not(step: CapacityStep) -> CapacityOutcome | None:
    """None: it is the DUT."""
    if step.is_held is not None:
        return None
    is_stopped = step.rate.outcome is Outcome.STOPPED
    return CapacityOutcome.STOPPED if is_stopped else CapacityOutcome.TESTER_LIMIT


def check_capacity(goal: CapacityGoal, tester: OpenTester) -> None:
    """RequestError for what cannot be, before a frame is sent.

    How fast more than the first number of connections are opened is only found on the way. If the user wants
    a certain number tried, the highest rate must be enough for that.
    """
    first = with_maximum(goal.rate_goal(goal.start, None), tester)
    if goal.most != MAX_CONNECTIONS:
        most = min(goal.most, most_connections(tester.profile.plan))
        idle_s = longest_idle_s(most, first.max_fps, goal.alpha, tester.waits.total_s)
        check_timeout(tester.setup.connection_timeout_s, idle_s, where="most, max_fps")


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityOptions:
    """Where to search."""

    start: Annotated[
        str,
        Option(
            declared="--from", grammar=NUMBER, sets="start", help="Connections that the DUT surely holds."
        ),
    ] = str(DEFAULT_START)
    most: Annotated[
        str | None, Option(grammar=NUMBER, help="Maximum number of connections. Default: all of the plan.")
    ] = None
    precision: Annotated[str, Option(grammar=RATIO, help="Precision at which the search stops.")] = "1%"
    maximum_rate: Annotated[
        str | None,
        Option(grammar=RATE, sets="max_fps", help="Maximum rate of new connections. Default: the line rate."),
    ] = None
    rate_precision: Annotated[
        str, Option(grammar=RATIO, help="Precision of the rates that are found on the way.")
    ] = "10%"
    alpha: Annotated[
        str,
        Option(
            grammar=RATIO,
            help="Rate at which connections are validated, as a share of the rate at which they were opened.",
        ),
    ] = "50%"


def _goal(options: CapacityOptions, retries: Retries, known: KnownThroughput | None) -> CapacityGoal:
    return CapacityGoal(**values_of(options), **retries)


def _run(bed: Any, goal: CapacityGoal, options: CapacityOptions, **conditions: Any) -> Capacity:
    name = conditions.pop("name", None) or "capacity"
    with bed.tester(**conditions) as tester:
        return measure_capacity(tester, goal, name=name, on_event=bed.on_event, recorder=bed.recorder)


def _numbers(goal: CapacityGoal) -> Iterator[int]:
    """Numbers that are tried if the table holds a hundred times the first number, or the most."""
    likely = min(goal.most, 100 * goal.start)
    number = goal.start
    while number < likely:
        yield number
        number *= 2
    yield from [likely] * halvings(float(likely), 2 * goal.precision)


def _expected_s(goal: CapacityGoal, waits_s: float) -> float:
    rate_fps = (1e6 if math.isinf(goal.max_fps) else goal.max_fps) / 3
    trials = 1 + halvings(goal.max_fps, goal.rate_precision) // 2
    return sum(trials * (number / rate_fps * (1 + 1 / goal.alpha) + 2 * waits_s) for number in _numbers(goal))


def _expected_parts(goal: CapacityGoal) -> Iterable[str]:
    numbers = list(_numbers(goal))
    yield f"{len(numbers)} searches of a rate with up to {format_count(max(numbers))} connections"


def _describe(goal: CapacityGoal, load: str | None) -> str:
    return (
        f"capacity from {format_count(goal.start)} connections, to {format_ratio(goal.precision)}; rates from"
        f" {describe_maximum(goal.max_fps)}"
    )


def _value(result: Mapping[str, Any]) -> float | None:
    return as_number(result.get("capacity"))


CAPACITY = Procedure(
    name="capacity",
    verb="capacity",
    help="""Find how many connections the table of a stateful NAT holds (RFC 9693 section 4.9).

    The number of connections is doubled until the rate at which they can be opened and validated collapses,
    and then the limit is searched between the last two numbers.""",
    example="evenhand capacity lab.toml --plan nat44 --from 10000 --most 1000000 --maximum-rate 100kfps",
    options=CapacityOptions,
    make_goal=_goal,
    run=_run,
    figure=Figure(name="connection table capacity", unit="connections", is_higher_better=True),
    value_of=_value,
    expected_s=_expected_s,
    expected_parts=_expected_parts,
    describe=_describe,
    frame_sizes=FrameSizes.ONE,
    load="max_fps",
    own_idle_s=CapacityGoal.longest_idle_s,
)
