# SPDX-License-Identifier: Apache-2.0
"""Procedure: maximum connection establishment rate (RFC 9693, 4.5): the highest rate at which a DUT that
keeps state opens connections, each of which is validated afterwards."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Annotated, Any

from evenhand.base.errors import RequestError
from evenhand.base.option import NUMBER, RATE, RATIO, Option
from evenhand.base.units import format_count, format_ratio
from evenhand.base.validation.document import at_key
from evenhand.procedure.connection_trials import (
    DEFAULT_ALPHA,
    ConnectionTrials,
    OneNumber,
    OrderName,
    check_connections,
    check_plan_has,
    check_timeout,
    longest_idle_s,
    most_connections,
)
from evenhand.procedure.descriptor import (
    DirectionChoice,
    Figure,
    FrameSizes,
    Procedure,
    describe_maximum,
    goals_of,
    open_above,
    throughput_of,
)
from evenhand.procedure.events import OnEvent, ignore
from evenhand.procedure.expected_time import halvings
from evenhand.procedure.maximum import CeilingWish, find_maximum
from evenhand.procedure.profile import Profile, plain_deviations, result_document
from evenhand.procedure.record import Recorder, recording
from evenhand.procedure.tester import OpenTester, choose_maximum
from evenhand.results.connections import ConnectionRateFound
from evenhand.results.goal import ProcedureGoal, check_above_zero
from evenhand.search import (
    Outcome,
    SearchEvent,
    SearchTrial,
    ThroughputGoal,
    ThroughputResult,
    TrialFinished,
    TrialTime,
    expected_search_s,
    run_search,
)
from evenhand.trial import Connections, Deviation, Load, LoadMeasurer, TrialResult

LEAST_SHARE = 0.01
"""Share of the maximum rate below which nothing is tried unless the user asks for it: a trial lasts as long
as its connections take."""
LIKELY_MAXIMUM_FPS = 1e6
"""For estimates of time, as long as the maximum is not known."""
LIKELY_SHARE_OPENED = 0.2
"""Share of the maximum at which a DUT is taken to open connections of which nothing is known yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionRateGoal(ProcedureGoal):
    """How many connections, and where to search. Rates are frames, and so connections, per second."""

    connections: int = 400_000
    """By default the smallest number of the scalability series (R9693-18): 40,000 source ports x 10
    destination ports."""
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
    known_fps: float | None = at_key(None, None)
    """A rate that was found before; see `ThroughputGoal`."""

    def check(self) -> None:
        check_connections(self.connections, self.order)
        if not 0 < self.alpha < 1:
            raise RequestError(
                f"connections validated at {format_ratio(self.alpha)} of the rate: must be above 0 and below"
                " 100 %",
                code="procedure.out-of-range",
                where="alpha",
                next_step="Use 50% or 80% (RFC 9693, 4.6).",
            )
        what = f"maximum rate {self.max_fps:g} connections/s"
        check_above_zero(self.max_fps, what, where="max_fps", next_step="Use, for example, 10k, or omit it.")
        if math.isinf(self.max_fps):  # the line rate, which is not known yet
            likely_fps = max(LIKELY_MAXIMUM_FPS, 2 * (self.min_fps or 0.0))
            replace(self, max_fps=likely_fps)  # checks the rest
        else:
            self.search_goal()  # likewise

    def search_goal(self) -> ThroughputGoal:
        """Rates are searched as loads are. A trial's length follows from its rate; that of the goal is about
        what one near the middle takes, for the estimate of the time left."""
        usual_s = self.connections / (self.max_fps / 2) * (1 + 1 / self.alpha)
        return ThroughputGoal(
            max_fps=self.max_fps,
            min_fps=self.min_fps or self.max_fps * LEAST_SHARE,
            precision=self.precision,
            duration_s=usual_s,
            final_duration_s=usual_s,
            known_fps=self.known_fps,
            stops_early=False,
            invalid_retries=self.invalid_retries,
            patience=self.patience,
        )

    def trial_s(self, waits_s: float) -> TrialTime:
        """Time of a trial at a rate: the connections are opened, and validated if all were."""

        def seconds(rate_fps: float, is_pass: bool) -> float:
            opening_s = self.connections / rate_fps + waits_s
            return opening_s + (self.connections / (self.alpha * rate_fps) + waits_s if is_pass else 0.0)

        return seconds

    def longest_idle_s(self, waits_s: float) -> float | None:
        """How long a connection has no frame, at the lowest rate that is tried; None as long as the maximum
        is the line rate, which is not known yet."""
        if math.isinf(self.max_fps):
            return None
        return longest_idle_s(self.connections, self.search_goal().lowest_fps, self.alpha, waits_s)


def with_likely_maximum(goal: ConnectionRateGoal) -> ConnectionRateGoal:
    """The goal with a maximum that is finite, to estimate times before it is known."""
    return replace(goal, max_fps=LIKELY_MAXIMUM_FPS) if math.isinf(goal.max_fps) else goal


def find_highest_rate(
    tester: OpenTester, max_fps: float, *, on_event: OnEvent, recorder: Recorder | None
) -> tuple[OpenTester, float]:
    """See `find_maximum`. Nothing above a rate at which the DUT loses frames is tried."""
    return find_maximum(
        tester,
        max_fps,
        where="max_fps",
        wish=CeilingWish(make_measurer=_opening, frames="each opens a connection"),
        on_event=on_event,
        recorder=recorder,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _OpeningMeasurer:
    """Opens as many connections as the time has room for, whether the DUT keeps them or not."""

    measurer: LoadMeasurer
    most: int

    def measure(self, duration_s: float, rate_fps: float) -> TrialResult:
        """See `Measurer.measure`."""
        count = max(1, min(self.most, round(duration_s * rate_fps)))
        return self.measurer.offer(
            Load.of_each_connection(Connections(use="establish", count=count), rate_fps)
        )


def _opening(tester: OpenTester, on_event: OnEvent) -> _OpeningMeasurer:
    """See `MakeMeasurer`: what the ceiling of new connections is found with."""
    return _OpeningMeasurer(
        measurer=tester.measurer(on_event, opens_connections=True), most=most_connections(tester.profile.plan)
    )


STATE_CHECK_S = 2.0
"""Time to find out whether the table can be emptied."""
PAIR_FIRST = "SEED-02"
"""A single address pair first: of loads that are forwarded, not of connections."""


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
    def trials(self) -> tuple[TrialResult, ...]:
        """Trials that opened connections, each with the one that validated them as its document's
        `validation`; `search.trials` says why each was made."""
        return tuple(trial.result for trial in self.search.trials)

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
        RequestError: The plan has no connections, or too few; the DUT forgets them too early.
        HostError: The DUT's table cannot be emptied; the ports do not know their line rate, the goal has no
            maximum, and the tester keeps no rate.
        EvenhandError: The engine could not make a trial at all.
    """
    check_before(goal, tester)
    tester.check_state(most=goal.connections, highest_fps=goal.max_fps, on_event=on_event)
    tester, goal = with_maximum(goal, tester, on_event=on_event, recorder=recorder)
    with recording(recorder, tester, name, kind="connections", goal=goal.to_document()) as record:
        result = search_rate(tester, goal, keep=record.add_trial, on_event=on_event)
        record.finish_with(str(result.outcome), result.summary())
    return result


def search_rate(
    tester: OpenTester,
    goal: ConnectionRateGoal,
    *,
    keep: Callable[[SearchTrial], None],
    on_event: OnEvent = ignore,
) -> ConnectionRate:
    """The search itself, for a goal with a maximum (`check_idle`).

    Args:
        keep: Gets each trial before the next begins.
    """
    tester = replace(tester, limits=replace(tester.limits, loss_ratio=0.0))
    measurer = tester.measurer(on_event, opens_connections=True)
    trials = ConnectionTrials(
        setup=tester.setup,
        measurer=measurer,
        plan=tester.profile.plan,
        order=goal.order.value,
        alpha=goal.alpha,
    )

    def on_progress(event: SearchEvent) -> None:
        if isinstance(event, TrialFinished):
            keep(event.trial)
            event = replace(event, quantity="rate of new connections")
        on_event(event)

    found = run_search(
        OneNumber(trials=trials, connections=goal.connections, is_first=goal.known_fps is None),
        goal.search_goal(),
        on_progress=on_progress,
        overhead_s=measurer.overhead_s,
        trial_s=goal.trial_s(measurer.overhead_s),
    )
    assert isinstance(found, ThroughputResult)
    return ConnectionRate(profile=tester.profile, goal=goal, search=found)


def with_maximum(
    goal: ConnectionRateGoal, tester: OpenTester, *, on_event: OnEvent, recorder: Recorder | None
) -> tuple[OpenTester, ConnectionRateGoal]:
    """The goal with a finite maximum, for which all is checked that can be before a connection counts; and
    the tester that knows its ceiling, if that is the maximum."""
    tester, max_fps = find_highest_rate(tester, goal.max_fps, on_event=on_event, recorder=recorder)
    return tester, check_idle(replace(goal, max_fps=max_fps), tester)


def check_before(goal: ConnectionRateGoal, tester: OpenTester) -> None:
    """RequestError for what is known to be impossible before a frame is sent."""
    check_plan_has(tester.profile.plan, goal.connections)
    if not math.isinf(goal.max_fps):
        check_idle(goal, tester)


def check_idle(goal: ConnectionRateGoal, tester: OpenTester) -> ConnectionRateGoal:
    """The same goal. RequestError if the DUT forgets some of its connections before they are validated."""
    choose_maximum(goal.max_fps, tester.profile, where="max_fps")
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
    ] = NUMBER.default(ConnectionRateGoal, "connections")
    maximum_rate: Annotated[
        str | None,
        Option(
            grammar=RATE,
            sets="max_fps",
            help="Maximum rate of new connections, which is tried first. Default: the line rate, or the"
            " tester's own ceiling where the ports do not know theirs.",
        ),
    ] = None
    minimum_rate: Annotated[
        str | None,
        Option(grammar=RATE, sets="min_fps", help="Minimum rate. Default: a hundredth of the maximum."),
    ] = None
    precision: Annotated[str, Option(grammar=RATIO, help="Precision at which the search stops.")] = (
        RATIO.default(ConnectionRateGoal, "precision")
    )
    alpha: Annotated[
        str,
        Option(
            grammar=RATIO,
            help="Rate at which connections are validated, as a share of the rate at which they were opened.",
        ),
    ] = RATIO.default(ConnectionRateGoal, "alpha")
    order: Annotated[
        OrderName, Option(help="Order in which four tuples are used; others are for comparison runs.")
    ] = OrderName.PSEUDORANDOM


def _expected_s(goal: ConnectionRateGoal, waits_s: float) -> float:
    finite = with_likely_maximum(goal)
    return STATE_CHECK_S + expected_search_s(
        finite.search_goal(),
        overhead_s=waits_s,
        limit_fps=LIKELY_SHARE_OPENED * finite.max_fps,
        trial_s=finite.trial_s(waits_s),
    )


def _supposed(goal: ConnectionRateGoal) -> str:
    rate_fps = LIKELY_SHARE_OPENED * with_likely_maximum(goal).max_fps
    return f"if the DUT opens about {format_count(round(rate_fps))} connections/s"


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
    make_goal=goals_of(ConnectionRateGoal),
    goals=ConnectionRateGoal,
    default_goal=lambda retries: ConnectionRateGoal(**retries),
    measure=measure_connection_rate,
    opens_connections=True,
    rates=DirectionChoice.NONE,
    figure=Figure(name="connection establishment rate", unit="connections/s", is_higher_better=True),
    found=ConnectionRateFound,
    value_of=throughput_of,
    left_open=open_above,
    expected_s=_expected_s,
    expected_parts=_expected_parts,
    supposed=_supposed,
    describe=_describe,
    frame_sizes=FrameSizes.ONE,
    load="max_fps",
    own_idle_s=ConnectionRateGoal.longest_idle_s,
)
