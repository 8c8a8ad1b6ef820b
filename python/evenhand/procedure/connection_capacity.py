# SPDX-License-Identifier: Apache-2.0
"""Procedure: capacity of the connection tracking table (RFC 9693, 4.9): how many connections a DUT that keeps
state can hold."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import count
from typing import Annotated, Any

from evenhand.base.errors import RequestError
from evenhand.base.option import NUMBER, RATE, RATIO, Option
from evenhand.base.time_span import TimeSpan
from evenhand.base.units import format_count, format_ratio
from evenhand.base.validation.document import to_document
from evenhand.plan import MAX_CONNECTIONS
from evenhand.procedure.connection_capacity_goal import (
    CapacityGoal,
    LikelyTable,
    expected_capacity,
    likely_capacity_s,
    likely_connections,
    likely_rate_fps,
    next_number,
)
from evenhand.procedure.connection_rate import (
    ConnectionRate,
    check_before,
    check_idle,
    search_rate,
    with_maximum,
)
from evenhand.procedure.connection_trials import TOO_SHORT, check_timeout, longest_idle_s, most_connections
from evenhand.procedure.descriptor import (
    DirectionChoice,
    Figure,
    FrameSizes,
    LeftOpen,
    Procedure,
    as_number,
    describe_maximum,
    goals_of,
)
from evenhand.procedure.events import Note, OnEvent, ProcedureEvent, ignore, with_left
from evenhand.procedure.profile import Profile, result_document
from evenhand.procedure.record import Recorder, recording
from evenhand.procedure.tester import OpenTester
from evenhand.results.connections import CapacityFound, CapacityOutcome, TriedCapacity
from evenhand.search import Outcome, TrialFinished, TrialStarted
from evenhand.search.search_trial import SearchTrial, numbered_documents
from evenhand.trial import Deviation, TrialResult


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
        if self.rate.outcome in (Outcome.STOPPED, Outcome.TESTER_CEILING) and self.rate.rate_fps is None:
            return None
        return self.rate.rate_fps is not None

    @property
    def found(self) -> TriedCapacity:
        """What was found, without the trials."""
        return TriedCapacity(
            connections=self.connections,
            least_per_second=self.least_fps,
            connections_per_second=self.rate.rate_fps,
            is_held=self.is_held,
        )


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
    def trials(self) -> tuple[TrialResult, ...]:
        """Trials of all numbers that were tried."""
        return tuple(trial for step in self.steps for trial in step.rate.trials)

    @property
    def deviations(self) -> list[Deviation]:
        """Deviations from the RFCs, each once."""
        found = {(d.requirement, d.text): d for step in self.steps for d in step.rate.deviations}
        return [found[key] for key in sorted(found)]

    def summary(self) -> dict[str, Any]:
        """The document without traffic and trials, which are those of the rates."""
        return to_document(self.found)

    @property
    def found(self) -> CapacityFound:
        """What was found, without the trials."""
        return CapacityFound(
            outcome=str(self.outcome),
            capacity=self.held,
            not_held=self.not_held,
            is_at_least=self.held is not None and self.outcome is not CapacityOutcome.FOUND,
            steps=tuple(step.found for step in self.steps),
            goal=self.goal.to_document(),
        )

    def to_document(self) -> dict[str, Any]:
        """All of it, as `evenhand capacity --json` writes it."""
        return result_document(
            self.profile,
            self.summary(),
            trials=self.trials,
            documents=numbered_documents(trial for step in self.steps for trial in step.rate.search.trials),
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
    check_before(goal.rate_goal(goal.start, None), tester)
    if math.isfinite(goal.max_fps):
        _check_most(goal, tester, goal.max_fps)
    tester.check_state(most=goal.start, highest_fps=goal.max_fps, on_event=on_event)
    tester, goal = with_highest_rate(goal, tester, on_event=on_event, recorder=recorder)
    with recording(recorder, tester, name, kind="capacity", goal=goal.to_document()) as record:
        found = _search_capacity(tester, goal, keep=record.add_trial, on_event=on_event)
        record.finish_with(str(found.outcome), found.summary())
    return found


def _search_capacity(
    tester: OpenTester, goal: CapacityGoal, *, keep: Callable[[SearchTrial], None], on_event: OnEvent
) -> Capacity:
    """The searches of all numbers, whose trials are counted as those of one."""
    most = min(goal.most, most_connections(tester.profile.plan))
    steps: list[CapacityStep] = []
    numbers = count(1)
    likely = LikelyTable(goal=goal, waits_s=tester.waits.total_s, most=most)

    def try_number(
        connections: int, share: float = 0.0, *, held: CapacityStep | None = None, not_held: int | None = None
    ) -> CapacityStep:
        known_fps = None if held is None else held.rate.rate_fps
        least_fps = share * (known_fps or 0.0)
        likely.begin(known_fps)
        before = 0 if held is None else held.connections

        def take(trial: SearchTrial) -> None:
            if held is None:
                likely.note_rate(trial)
            else:
                likely.note(trial, connections)
            keep(replace(trial, number=next(numbers)))

        def tell(event: ProcedureEvent) -> None:
            if isinstance(event, TrialFinished) and not event.remaining_trials:
                is_held = event.lower_fps > 0
                bounds = (connections, not_held) if is_held else (before, connections)
                event = with_left(event, likely.left(connections, *bounds, share, 0.0))
            elif isinstance(event, TrialStarted | TrialFinished):
                own_s = event.remaining_s
                event = with_left(event, likely.left(connections, before, not_held, share, own_s))
            on_event(event)

        on_event(Note(text=f"{format_count(connections)} connections:", is_heading=True))
        found = search_rate(
            tester,
            check_idle(goal.rate_goal(connections, least_fps or None, known_fps), tester),
            keep=take,
            on_event=tell,
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

    held = try_number(goal.start)
    if not held.is_held:
        return end(_why_not(held) or CapacityOutcome.TOO_FEW, None, goal.start)
    not_held: int | None = None
    while (step_to := next_number(goal, most=most, held=held.connections, not_held=not_held)) is not None:
        number, share = step_to
        try:
            step = try_number(number, share, held=held, not_held=not_held)
        except RequestError as error:
            if error.code != TOO_SHORT:
                raise
            # What was found is kept, although it is not all that was asked for.
            on_event(Note(text=f"{format_count(number)} connections: {error.what}. {error.next_step}"))
            return end(CapacityOutcome.TIMEOUT, held.connections, not_held)
        if step.is_held is None:
            return end(_why_not(step) or CapacityOutcome.TESTER_CEILING, held.connections, not_held)
        if step.is_held:
            held = step
        else:
            not_held = number
    outcome = CapacityOutcome.AT_LEAST if not_held is None else CapacityOutcome.FOUND
    return end(outcome, held.connections, not_held)


def _why_not(step: CapacityStep) -> CapacityOutcome | None:
    """None: it is the DUT."""
    if step.is_held is not None:
        return None
    is_stopped = step.rate.outcome is Outcome.STOPPED
    return CapacityOutcome.STOPPED if is_stopped else CapacityOutcome.TESTER_CEILING


def with_highest_rate(
    goal: CapacityGoal, tester: OpenTester, *, on_event: OnEvent, recorder: Recorder | None
) -> tuple[OpenTester, CapacityGoal]:
    """The goal with a finite rate; see `with_maximum`. RequestError for what cannot be, before a connection
    counts.

    How fast more than the first number of connections are opened is only found on the way. If the user wants
    a certain number tried, the highest rate must be enough for that.
    """
    tester, first = with_maximum(
        goal.rate_goal(goal.start, None), tester, on_event=on_event, recorder=recorder
    )
    _check_most(goal, tester, first.max_fps)
    return tester, replace(goal, max_fps=first.max_fps)


def _check_most(goal: CapacityGoal, tester: OpenTester, highest_fps: float) -> None:
    """RequestError if the user wants more connections tried than the DUT's time-out has room for."""
    if goal.most == MAX_CONNECTIONS:
        return
    most = min(goal.most, most_connections(tester.profile.plan))
    idle_s = longest_idle_s(most, highest_fps, goal.alpha, tester.waits.total_s)
    check_timeout(tester.setup.connection_timeout_s, idle_s, where="most, max_fps")


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityOptions:
    """Where to search."""

    start: Annotated[
        str,
        Option(
            declared="--from", grammar=NUMBER, sets="start", help="Connections that the DUT surely holds."
        ),
    ] = NUMBER.default(CapacityGoal, "start")
    most: Annotated[
        str | None, Option(grammar=NUMBER, help="Maximum number of connections. Default: all of the plan.")
    ] = None
    precision: Annotated[str, Option(grammar=RATIO, help="Precision at which the search stops.")] = (
        RATIO.default(CapacityGoal, "precision")
    )
    maximum_rate: Annotated[
        str | None,
        Option(
            grammar=RATE,
            sets="max_fps",
            help="Maximum rate of new connections. Default: the line rate, or the tester's own ceiling where"
            " the ports do not know theirs.",
        ),
    ] = None
    rate_precision: Annotated[
        str, Option(grammar=RATIO, help="Precision of the rates that are found on the way.")
    ] = RATIO.default(CapacityGoal, "rate_precision")
    alpha: Annotated[
        str,
        Option(
            grammar=RATIO,
            help="Rate at which connections are validated, as a share of the rate at which they were opened.",
        ),
    ] = RATIO.default(CapacityGoal, "alpha")


def _expected_parts(goal: CapacityGoal) -> Iterable[str]:
    example = TimeSpan.of(likely_capacity_s(goal, 0.0)).words
    yield (
        f"a search of the rate with each number of connections: {example} of sending for a table of"
        f" {format_count(likely_connections(goal))}"
    )


def _supposed(goal: CapacityGoal) -> str:
    return (
        "by how many connections the DUT holds, if it opens at least"
        f" {format_count(round(likely_rate_fps(goal)))} of them per second"
    )


CAPACITY = Procedure(
    name="capacity",
    verb="capacity",
    help="""Find how many connections the table of a stateful NAT holds (RFC 9693 section 4.9).

    The number of connections is doubled until the rate at which they can be opened and validated collapses,
    and then the limit is searched between the last two numbers.""",
    example="evenhand capacity lab.toml --plan nat44 --from 10000 --most 1000000 --maximum-rate 100kfps",
    options=CapacityOptions,
    make_goal=goals_of(CapacityGoal),
    goals=CapacityGoal,
    found=CapacityFound,
    default_goal=lambda retries: CapacityGoal(**retries),
    measure=measure_capacity,
    opens_connections=True,
    rates=DirectionChoice.NONE,
    figure=Figure(name="connection table capacity", unit="connections", is_higher_better=True),
    value_of=lambda found: as_number(found.capacity),
    left_open=lambda found: LeftOpen(high=as_number(found.not_held)),
    expected_s=lambda goal, waits_s: expected_capacity(goal, waits_s).least_s,
    longest_s=lambda goal, waits_s: expected_capacity(goal, waits_s).most_s,
    expected_parts=_expected_parts,
    supposed=_supposed,
    describe=lambda goal, load: (
        f"capacity from {format_count(goal.start)} connections, to {format_ratio(goal.precision)}; rates from"
        f" {describe_maximum(goal.max_fps)}"
    ),
    frame_sizes=FrameSizes.ONE,
    load="max_fps",
    own_idle_s=CapacityGoal.longest_idle_s,
)
