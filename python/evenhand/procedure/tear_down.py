# SPDX-License-Identifier: Apache-2.0
"""Procedure: connection tear-down rate (RFC 9693, 4.8): how fast a DUT that keeps state removes connections
when its table is emptied."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any

from evenhand.base.errors import RequestError
from evenhand.base.option import NUMBER, RATE, Option, values_of
from evenhand.base.units import format_count, format_rate
from evenhand.base.validation.document import to_document
from evenhand.procedure.attempts import Attempts
from evenhand.procedure.connection_trials import (
    ConnectionWish,
    check_plan_has,
    check_timeout,
    established_idle_s,
)
from evenhand.procedure.descriptor import DirectionChoice, Figure, FrameSizes, KnownThroughput, Procedure
from evenhand.procedure.events import OnEvent, ignore
from evenhand.procedure.expected_time import count_of
from evenhand.procedure.limits import Retries
from evenhand.procedure.profile import Profile, attempt_documents, plain_deviations, result_document
from evenhand.procedure.record import Recorder, recording
from evenhand.procedure.tester import OpenTester, choose_maximum
from evenhand.results.connections import Removal, TearDownFound
from evenhand.results.goal import ProcedureGoal, check_repetitions
from evenhand.trial import Connections, Deviation, Load, LoadMeasurer, TrialResult

if TYPE_CHECKING:
    from evenhand.rig import Setup

REPETITIONS = 10
"""R9693-19."""
REMOVED = "removed"
"""What is known of the removal, in the document of the trial that opened the connections."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TearDownGoal(ProcedureGoal):
    """How many connections are removed, and how often."""

    connections: int = 400_000
    rate_fps: float
    """Rate at which they are opened."""
    repetitions: int = REPETITIONS

    def check(self) -> None:
        ConnectionWish(count=self.connections, rate_fps=self.rate_fps)  # checks both
        check_repetitions(self.repetitions, REPETITIONS)

    def longest_idle_s(self, waits_s: float) -> float:
        """How long the first connection has no frame before it is removed."""
        return established_idle_s(
            ConnectionWish(count=self.connections, rate_fps=self.rate_fps), waits_s, sending_s=0.0
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TearDown:
    """What was found, and with what traffic."""

    profile: Profile
    goal: TearDownGoal
    outcome: str
    """`measured`, `stopped`; `not_opened` if the DUT did not take all connections, `tester_ceiling` if the
    tester did not open them as it should."""
    removals: tuple[Removal, ...]
    trials: tuple[TrialResult, ...]
    """Trials that opened connections."""

    @property
    def per_second(self) -> float | None:
        """The median of all repetitions."""
        found = [removal.per_second for removal in self.removals if removal.per_second is not None]
        return median(found) if found else None

    @property
    def deviations(self) -> list[Deviation]:
        """Deviations from the RFCs, each once."""
        found = plain_deviations(self.trials, self.profile)
        if len(self.removals) < REPETITIONS:
            text = f"{count_of(len(self.removals), 'repetition')} instead of {REPETITIONS}"
            found.append(Deviation(requirement="R9693-19", text=text))
        return sorted(found, key=lambda deviation: deviation.requirement)

    def summary(self) -> dict[str, Any]:
        """The part that is written to the run file in addition to the trials."""
        return to_document(self.found)

    @property
    def found(self) -> TearDownFound:
        """What was found, without the trials."""
        return TearDownFound(
            outcome=self.outcome,
            connections=self.goal.connections,
            per_second=self.per_second,
            removals=self.removals,
            goal=self.goal.to_document(),
        )

    def to_document(self) -> dict[str, Any]:
        """All of it, as `evenhand tear-down --json` writes it."""
        return result_document(
            self.profile,
            self.summary(),
            trials=self.trials,
            documents=attempt_documents(
                ((1, trial) for trial in self.trials), "establish", is_full_length=True
            ),
            deviations=self.deviations,
        )


@dataclass(slots=True, kw_only=True)
class _RemovingMeasurer:
    """Trials that open connections, which are removed afterwards: that time is kept with the trial, since a
    run that goes on neither opens nor removes them again."""

    setup: Setup
    measurer: LoadMeasurer
    _is_table_empty: bool = False

    def stored(self, load: Load) -> TrialResult | None:
        return self.measurer.stored(load)

    def offer(self, load: Load) -> TrialResult:
        before = self.stored(load)
        if before is not None:
            return before
        if not self._is_table_empty:
            self.setup.empty_connections()
        self._is_table_empty = False
        opened = self.measurer.offer(load)
        removed = self.setup.empty_connections()
        self._is_table_empty = True
        return TrialResult.from_contract({**opened.raw, REMOVED: removed.to_document()})


def measure_tear_down(
    tester: OpenTester,
    goal: TearDownGoal,
    *,
    name: str = "tear-down",
    on_event: OnEvent = ignore,
    recorder: Recorder | None = None,
) -> TearDown:
    """Open connections, empty the DUT's table, and time that; again and again (R9693-13).

    Raises:
        RequestError: The plan has no connections, or too few; the rate is above the line rate.
        HostError: The DUT's table cannot be emptied.
        EvenhandError: The engine could not make a trial at all.
    """
    check_plan_has(tester.profile.plan, goal.connections)
    choose_maximum(goal.rate_fps, tester.profile, where="rate_fps")
    idle_s = goal.longest_idle_s(tester.waits.total_s)
    check_timeout(tester.setup.connection_timeout_s, idle_s, where="connections, rate_fps")
    tester.check_state(most=goal.connections, highest_fps=goal.rate_fps, on_event=on_event)
    tester = replace(tester, limits=replace(tester.limits, loss_ratio=0.0))
    removals: list[Removal] = []
    trials: list[TrialResult] = []
    outcome = "measured"
    with recording(recorder, tester, name, kind="tear-down", goal=goal.to_document()) as record:
        measurer = tester.measurer(on_event, opens_connections=True)
        attempts = Attempts(
            measurer=_RemovingMeasurer(setup=tester.setup, measurer=measurer),
            on_event=on_event,
            record=record,
            purpose="establish",
            overhead_s=measurer.overhead_s,
            invalid_retries=goal.invalid_retries,
            patience=goal.patience,
        )
        load = Load.of_each_connection(Connections(use="establish", count=goal.connections), goal.rate_fps)
        for number in range(goal.repetitions):
            what = f"{format_count(goal.connections)} connections are opened"
            for trial in attempts.measure(
                what=what, load=load, later=goal.repetitions - number - 1, is_full_length=True
            ):
                trials.append(trial)
            if not trials[-1].is_pass:
                outcome = (
                    "stopped"
                    if trials[-1].was_stopped
                    else "not_opened"
                    if trials[-1].is_valid
                    else "tester_ceiling"
                )
                break
            removed = trials[-1].raw[REMOVED]
            removals.append(
                Removal(
                    connections=goal.connections, counted=removed["connections"], seconds=removed["seconds"]
                )
            )
        result = TearDown(
            profile=tester.profile, goal=goal, outcome=outcome, removals=tuple(removals), trials=tuple(trials)
        )
        record.finish_with(outcome, result.summary())
    return result


@dataclass(frozen=True, slots=True, kw_only=True)
class TearDownOptions:
    """How many connections are removed, and how often."""

    rate: Annotated[
        str | None,
        Option(grammar=RATE, sets="rate_fps", help="Rate at which connections are opened; required."),
    ] = None
    connections: Annotated[str, Option(grammar=NUMBER, help="Connections that are opened and removed.")] = (
        "400000"
    )
    repetitions: Annotated[
        int, Option(metavar="N", least=1, help="Number of times the connections are opened and removed.")
    ] = REPETITIONS


def _goal(options: TearDownOptions, retries: Retries, known: KnownThroughput | None) -> TearDownGoal:
    if options.rate is None:
        raise RequestError(
            "no rate given at which connections are opened",
            code="procedure.rate-missing",
            where="--rate",
            next_step="Use at most half of what evenhand connections finds: --rate 10kfps.",
        )
    return TearDownGoal(**values_of(options), **retries)


def _expected_parts(goal: TearDownGoal) -> Iterable[str]:
    opened = f"{format_count(goal.connections)} connections at {format_rate(goal.rate_fps)}"
    yield f"{goal.repetitions} times {opened}"


def _describe(goal: TearDownGoal, load: str | None) -> str:
    return (
        f"removal of {format_count(goal.connections)} connections, {goal.repetitions} times; opened at"
        f" {format_rate(goal.rate_fps)}"
    )


TEAR_DOWN = Procedure(
    name="tear-down",
    verb="tear-down",
    help="""Find how fast a stateful NAT removes connections when its table is emptied (RFC 9693 section 4.8).

    The command that empties the table is timed. For a DUT of your own it is in the testbed file, and should
    end when the table is empty.""",
    example="evenhand tear-down lab.toml --plan nat44 --connections 400k --rate 20kfps",
    options=TearDownOptions,
    make_goal=_goal,
    goals=TearDownGoal,
    found=TearDownFound,
    measure=measure_tear_down,
    opens_connections=True,
    rates=DirectionChoice.NONE,
    figure=Figure(name="connection tear-down rate", unit="connections/s", is_higher_better=True),
    value_of=lambda found: found.per_second,
    expected_s=lambda goal, waits_s: goal.repetitions * (goal.connections / goal.rate_fps + waits_s),
    expected_parts=_expected_parts,
    describe=_describe,
    frame_sizes=FrameSizes.ONE,
    load="rate_fps",
    own_idle_s=TearDownGoal.longest_idle_s,
)
