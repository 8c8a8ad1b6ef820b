# SPDX-License-Identifier: Apache-2.0
"""Procedure: maximum connection establishment rate (RFC 9693, 4.5): the highest rate at which a DUT that
keeps state opens connections, each of which is validated afterwards."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, Any

from evenhand.base.errors import RequestError
from evenhand.base.option import NUMBER, RATE, RATIO, Option, values_of
from evenhand.base.units import format_count, format_ratio
from evenhand.base.validation.typed_fields import check_types
from evenhand.procedure.connection_trials import (
    DEFAULT_ALPHA,
    ConnectionTrials,
    check_timeout,
    longest_idle_s,
)
from evenhand.procedure.connection_wish import check_connections, check_plan_has
from evenhand.procedure.descriptor import (
    Figure,
    FrameSizes,
    KnownThroughput,
    Procedure,
    as_number,
    describe_maximum,
)
from evenhand.procedure.events import OnEvent, ignore
from evenhand.procedure.expected_time import halvings
from evenhand.procedure.limits import Retries
from evenhand.procedure.profile import Profile, plain_deviations
from evenhand.procedure.record import Recorder, recording
from evenhand.procedure.result_document import result_document
from evenhand.procedure.tester import OpenTester, choose_maximum
from evenhand.search import (
    DEFAULT_INVALID_RETRIES,
    DEFAULT_PATIENCE,
    Outcome,
    SearchEvent,
    SearchTrial,
    ThroughputGoal,
    ThroughputResult,
    TrialFinished,
    run_search,
)
from evenhand.trial import Deviation, TrialResult

DEFAULT_CONNECTIONS = 400_000
"""The smallest number of the scalability series (R9693-18): 40,000 source ports x 10 destination ports."""
LEAST_SHARE = 0.01
"""Share of the maximum rate below which nothing is tried unless the user asks for it: a trial lasts as long
as its connections take."""
PAIR_FIRST = "SEED-02"
"""A single address pair first: of loads that are forwarded, not of connections."""


class OrderName(StrEnum):
    """In which order connections are given their four tuples."""

    PSEUDORANDOM = "pseudorandom"
    INCREASING = "increasing"
    DECREASING = "decreasing"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionRateGoal:
    """How many connections, and where to search. Rates are frames, and so connections, per second."""

    connections: int = DEFAULT_CONNECTIONS
    max_fps: float = math.inf
    """Highest rate that is tried; UP_TO_LINE_RATE: the maximum theoretical frame rate."""
    min_fps: float | None = None
    """Lowest; None: a hundredth of the maximum."""
    precision: float = 0.01
    """Stop when the bracket is no wider than this share of its upper bound (R9693-09)."""
    alpha: float = DEFAULT_ALPHA
    """Rate of the validation, as a share of the rate at which connections were opened; below 1
    (R9693-11)."""
    order: OrderName = OrderName.PSEUDORANDOM
    """Others than pseudorandom are deviations (R9693-05)."""
    known_fps: float | None = None
    """A rate that was found before; see `ThroughputGoal`."""
    invalid_retries: int = DEFAULT_INVALID_RETRIES
    patience: int = DEFAULT_PATIENCE

    def __post_init__(self) -> None:
        check_types(self)
        check_connections(self.connections, self.order)
        if not 0 < self.alpha < 1:
            raise RequestError(
                f"connections validated at {format_ratio(self.alpha)} of the rate: must be above 0 and below"
                " 100 %",
                code="procedure.out-of-range",
                where="alpha",
                next_step="Use 50% or 80% (RFC 9693, 4.6).",
            )
        if not math.isinf(self.max_fps):
            self.search_goal()  # checks the rest

    def search_goal(self) -> ThroughputGoal:
        """Rates are searched as loads are. A trial's length follows from its rate; that of the goal is about
        what one near the middle takes, for the estimate of the time left."""
        least_fps = self.min_fps or self.max_fps * LEAST_SHARE
        usual_s = self.connections / (self.max_fps / 2) * (1 + 1 / self.alpha)
        return ThroughputGoal(
            max_fps=self.max_fps,
            min_fps=least_fps,
            precision=self.precision,
            duration_s=usual_s,
            final_duration_s=usual_s,
            known_fps=self.known_fps,
            stops_early=False,
            invalid_retries=self.invalid_retries,
            patience=self.patience,
        )

    def longest_idle_s(self, waits_s: float) -> float | None:
        """How long a connection has no frame, at the lowest rate that is tried; None as long as the maximum
        is the line rate, which is not known yet."""
        if math.isinf(self.max_fps):
            return None
        slowest_fps = self.search_goal().lowest_fps
        return longest_idle_s(self.connections, slowest_fps, self.alpha, waits_s)

    def to_document(self) -> dict[str, Any]:
        return {
            "connections": self.connections,
            "max_fps": self.max_fps,
            "min_fps": self.min_fps,
            "precision": self.precision,
            "alpha": self.alpha,
            "order": str(self.order),
            "invalid_retries": self.invalid_retries,
            "patience": self.patience,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionRate:
    """Result of one search, with its traffic."""

    profile: Profile
    goal: ConnectionRateGoal
    search: ThroughputResult

    @property
    def outcome(self) -> Outcome:
        """How the search ended."""
        return self.search.outcome

    @property
    def trials(self) -> Sequence[SearchTrial]:
        """Trials of both phases, as `measure_connection_rate` joined them."""
        return self.search.trials

    @property
    def rate_fps(self) -> float | None:
        """Connections per second: the highest rate at which all were opened and held; a lower bound if
        `is_at_least`."""
        return self.search.throughput_fps

    @property
    def is_at_least(self) -> bool:
        """Whether the maximum passed, or the tester could not keep a higher rate."""
        return self.search.is_at_least

    @property
    def deviations(self) -> list[Deviation]:
        """Deviations from the RFCs, each once."""
        found = [
            deviation
            for deviation in plain_deviations((t.result for t in self.search.trials), self.profile)
            if deviation.requirement != PAIR_FIRST
        ]
        if self.goal.order is not OrderName.PSEUDORANDOM:
            text = f"four tuples in {self.goal.order} instead of pseudorandom order"
            found.append(Deviation(requirement="R9693-05", text=text))
        return sorted(found, key=lambda deviation: deviation.requirement)

    def to_document(self) -> dict[str, Any]:
        """All of it, as `evenhand connections --json` writes it."""
        return result_document(
            self.profile,
            self.summary(),
            trials=(trial.result for trial in self.search.trials),
            documents=[trial.to_document() for trial in self.search.trials],
            deviations=self.deviations,
        )

    def summary(self) -> dict[str, Any]:
        """The part that is written to the run file in addition to the trials."""
        return {
            "outcome": str(self.outcome),
            "connections": self.goal.connections,
            "connections_per_second": self.rate_fps,
            "is_at_least": self.is_at_least,
            "failed_per_second": self.search.upper_fps,
            "goal": self.goal.to_document(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class _RateMeasurer:
    """A `Measurer` whose trials open as many connections as the goal says, however long that takes."""

    trials: ConnectionTrials
    connections: int

    def measure(self, duration_s: float, rate_fps: float) -> TrialResult:
        """See `Measurer.measure`."""
        return self.trials.open_and_validate(self.connections, rate_fps)


def measure_connection_rate(
    tester: OpenTester,
    goal: ConnectionRateGoal,
    *,
    name: str = "connections",
    on_event: OnEvent = ignore,
    recorder: Recorder | None = None,
) -> ConnectionRate:
    """One search. Each trial begins with an empty table of the DUT, opens all connections at a rate, and
    passes if every frame arrived and every connection was validated.

    Raises:
        RequestError: The plan has no connections, or too few; the DUT forgets them too early; the ports do
            not know their line rate and the goal has no maximum.
        HostError: The DUT's table cannot be emptied.
        EvenhandError: The engine could not make a trial at all.
    """
    goal = with_maximum(goal, tester)
    tester = replace(tester, limits=replace(tester.limits, loss_ratio=0.0))
    measurer = tester.measurer(on_event, opens_connections=True)
    trials = ConnectionTrials(setup=tester.setup, measurer=measurer, order=goal.order.value, alpha=goal.alpha)
    with recording(recorder, tester, name, kind="connections", goal=goal.to_document()) as record:

        def on_progress(event: SearchEvent) -> None:
            if isinstance(event, TrialFinished):
                record.add_trial(event.trial)
                event = replace(event, quantity="rate of new connections")
            on_event(event)

        found = run_search(
            _RateMeasurer(trials=trials, connections=goal.connections),
            goal.search_goal(),
            on_progress=on_progress,
            overhead_s=2 * measurer.overhead_s,
        )
        assert isinstance(found, ThroughputResult)
        result = ConnectionRate(profile=tester.profile, goal=goal, search=found)
        record.finish_with(str(found.outcome), result.summary())
    return result


def with_maximum(goal: ConnectionRateGoal, tester: OpenTester) -> ConnectionRateGoal:
    """The goal with a finite maximum, for which all is checked that can be before a frame is sent."""
    goal = replace(goal, max_fps=choose_maximum(goal.max_fps, tester.profile, where="max_fps"))
    check_plan_has(tester.profile.plan, goal.connections)
    idle_s = goal.longest_idle_s(tester.waits.total_s)
    assert idle_s is not None
    check_timeout(tester.setup.connection_timeout_s, idle_s, where="connections, min_fps")
    return goal


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionRateOptions:
    """How many connections, and where to search."""

    connections: Annotated[
        str,
        Option(grammar=NUMBER, help="Connections that each trial opens; each has a four tuple of its own."),
    ] = str(DEFAULT_CONNECTIONS)
    maximum_rate: Annotated[
        str | None,
        Option(
            grammar=RATE,
            sets="max_fps",
            help="Maximum rate of new connections, which is tried first. Default: the line rate.",
        ),
    ] = None
    minimum_rate: Annotated[
        str | None,
        Option(grammar=RATE, sets="min_fps", help="Minimum rate. Default: a hundredth of the maximum."),
    ] = None
    precision: Annotated[str, Option(grammar=RATIO, help="Precision at which the search stops.")] = "1%"
    alpha: Annotated[
        str,
        Option(
            grammar=RATIO,
            help="Rate at which connections are validated, as a share of the rate at which they were opened.",
        ),
    ] = "50%"
    order: Annotated[
        OrderName, Option(help="Order in which four tuples are used; others are for comparison runs.")
    ] = OrderName.PSEUDORANDOM


def _goal(
    options: ConnectionRateOptions, retries: Retries, known: KnownThroughput | None
) -> ConnectionRateGoal:
    return ConnectionRateGoal(**values_of(options), **retries)


def _run(
    bed: Any, goal: ConnectionRateGoal, options: ConnectionRateOptions, **conditions: Any
) -> ConnectionRate:
    name = conditions.pop("name", None) or "connections"
    if conditions.get("established") is not None:
        raise RequestError(
            "connections cannot be established beforehand: this test opens its own",
            code="procedure.opens-its-own",
            where="--established",
            next_step="Omit it; --connections says how many each trial opens.",
        )
    with bed.tester(**conditions) as tester:
        return measure_connection_rate(tester, goal, name=name, on_event=bed.on_event, recorder=bed.recorder)


def _value(result: Mapping[str, Any]) -> float | None:
    return as_number(result.get("connections_per_second"))


def _expected_s(goal: ConnectionRateGoal, waits_s: float) -> float:
    """Each trial opens all connections and validates them; most are near the limit, which is taken to lie at
    a third of the maximum."""
    rate_fps = (1e6 if math.isinf(goal.max_fps) else goal.max_fps) / 3
    opening_s = goal.connections / rate_fps
    return (1 + halvings(goal.max_fps, goal.precision)) * (opening_s * (1 + 1 / goal.alpha) + 2 * waits_s)


def _expected_parts(goal: ConnectionRateGoal) -> Iterable[str]:
    yield (
        f"about {1 + halvings(goal.max_fps, goal.precision)} times {format_count(goal.connections)}"
        " connections, opened and validated"
    )


def _describe(goal: ConnectionRateGoal, load: str | None) -> str:
    return (
        f"rate of new connections from {describe_maximum(goal.max_fps)}, to {format_ratio(goal.precision)};"
        f" {format_count(goal.connections)} connections, each validated at {format_ratio(goal.alpha)} of the"
        " rate"
    )


CONNECTIONS = Procedure(
    name="connections",
    verb="connections",
    help="""Find the maximum connection establishment rate of a stateful NAT (RFC 9693 section 4.5).

    Each trial begins with an empty connection table, opens all connections, and then sends one frame back
    over each of them: a rate counts only if every connection holds.""",
    example="evenhand connections lab.toml --plan nat44 --connections 400k --maximum-rate 200kfps",
    options=ConnectionRateOptions,
    make_goal=_goal,
    run=_run,
    figure=Figure(name="connection establishment rate", unit="connections/s", is_higher_better=True),
    value_of=_value,
    expected_s=_expected_s,
    expected_parts=_expected_parts,
    describe=_describe,
    frame_sizes=FrameSizes.ONE,
    load="max_fps",
    own_idle_s=ConnectionRateGoal.longest_idle_s,
)
