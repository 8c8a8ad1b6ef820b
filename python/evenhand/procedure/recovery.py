# SPDX-License-Identifier: Apache-2.0
"""Procedure: system recovery (RFC 2544, 26.5): for how long the DUT goes on losing frames after an
overload."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Annotated, Any

from evenhand.base.errors import RequestError
from evenhand.base.option import DURATION, RATE, Option, values_of
from evenhand.base.units import format_count, format_duration, format_rate
from evenhand.base.validation.document import to_document
from evenhand.plan import Direction
from evenhand.procedure.attempts import Attempts, RepeatedTrials
from evenhand.procedure.descriptor import (
    AfterOption,
    DirectionChoice,
    Figure,
    FrameSizes,
    KnownThroughput,
    Procedure,
    Section,
    ThroughputUse,
    check_is_no_bound,
    worst,
)
from evenhand.procedure.events import OnEvent, ignore
from evenhand.procedure.expected_time import count_of
from evenhand.procedure.limits import Retries
from evenhand.procedure.profile import (
    Profile,
    attempt_documents,
    attempts_at,
    count_verdicts,
    plain_deviations,
    result_document,
)
from evenhand.procedure.record import Recorder, recording
from evenhand.procedure.statistics import Statistics
from evenhand.procedure.tester import OpenTester, choose_maximum
from evenhand.results.recovery import OVERLOAD_S, REPETITIONS, RecoveryFigures, RecoveryFound, RecoveryGoal
from evenhand.trial import Deviation, DirectionResult, Load, TrialResult

STILL_LOSING = 0.9
"""What is lost so late in the second load says that the DUT may not have recovered at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery(RepeatedTrials):
    """Results of the repetitions, with their traffic."""

    goal: RecoveryGoal
    load: Load

    def values(self, direction: Direction) -> tuple[float, ...]:
        """Recovery time of each valid repetition in s: from the drop of the load (A) to the time at which the
        last lost frame was due (B).

        0 if nothing was lost after the drop.
        """
        return tuple(self._recovery_s(trial.directions[direction]) for trial in self.valid)

    def _recovery_s(self, result: DirectionResult) -> float:
        return 0.0 if result.last_lost is None else max(0.0, result.last_lost.due_s - self.load.duration_s)

    def statistics(self, direction: Direction) -> Statistics | None:
        """Statistics over the repetitions; None without a valid one."""
        return Statistics.of(self.values(direction))

    def average_s(self, direction: Direction) -> float | None:
        """Average over the repetitions in s, which RFC 2544 requires."""
        values = self.values(direction)
        return sum(values) / len(values) if values else None

    def lost_frames(self, direction: Direction) -> int:
        """Lost frames in all valid repetitions."""
        return sum(trial.directions[direction].lost_frames for trial in self.valid)

    def lossless(self, direction: Direction) -> int:
        """Number of repetitions in which the overload lost nothing, so that there was nothing to recover
        from."""
        return sum(trial.directions[direction].last_lost is None for trial in self.valid)

    def still_losing(self, direction: Direction) -> int:
        """Number of repetitions that lost frames until the end, so that the time is a lower bound."""
        return sum(value > STILL_LOSING * self.goal.observe_s for value in self.values(direction))

    def doubtful(self, direction: Direction) -> int:
        """Number of repetitions in which the tester's own lapses may explain all frames that were lost after
        the drop."""
        return sum(self._is_doubtful(trial, direction) for trial in self.valid)

    def _is_doubtful(self, trial: TrialResult, direction: Direction) -> bool:
        result = trial.directions[direction]
        if self._recovery_s(result) == 0:
            return False
        lost_after = max(1, sum(result.lost_by_tenth[math.ceil(10 * self.load.duration_s) :]))
        own = (
            result.sender.overdue_frames
            + result.receiver.gap_frames
            + result.away_frames
            + trial.missed_frames
        )
        return own >= lost_after

    @property
    def deviations(self) -> list[Deviation]:
        """Deviations from the RFCs, each once."""
        goal, theoretical_fps = self.goal, self.profile.theoretical_fps
        found: list[str] = []
        if goal.throughput_source is None:
            found.append(
                f"the throughput of {format_count(goal.throughput_fps)} fps per direction was"
                " given by the user and not measured"
            )
        if theoretical_fps is None:
            found.append(
                "the ports do not know their line rate, so the overload is 110 % of the throughput,"
                " whatever the line can carry"
            )
        if goal.duration_s < OVERLOAD_S:
            found.append(
                f"the overload lasted {format_duration(goal.duration_s)} instead of"
                f" {format_duration(OVERLOAD_S)}"
            )
        if not self.is_complete:
            found.append(f"{len(self.valid)} of {goal.repetitions} repetitions had a valid trial")
        # Its length is that of R2544-29, reported above.
        of_trials = [
            deviation
            for deviation in plain_deviations(self.trials, self.profile)
            if deviation.requirement != "R2544-20"
        ]
        own = [Deviation(requirement="R2544-29", text=text) for text in found]
        return sorted([*own, *of_trials], key=lambda deviation: deviation.requirement)

    def to_document(self) -> dict[str, Any]:
        """The whole result, as `evenhand recovery --json` writes it."""
        return result_document(
            self.profile,
            self.summary(),
            trials=self.trials,
            documents=attempt_documents(
                attempts_at(self.repetitions), "recovery", is_full_length=self.goal.is_full_length
            ),
            deviations=self.deviations,
        )

    def summary(self) -> dict[str, Any]:
        """The part that is written to the run file in addition to the trials."""
        return to_document(self.found)

    @property
    def found(self) -> RecoveryFound:
        """What was found, without the trials."""
        assert self.load.then is not None
        return RecoveryFound(
            outcome=self.outcome,
            overload_fps=self.load.rate_fps,
            lowered_fps=self.load.then.rate_fps,
            figures={direction: self._figures(direction) for direction in self.profile.directions},
            verdicts=count_verdicts(self.trials),
            goal=self.goal,
        )

    def _figures(self, direction: Direction) -> RecoveryFigures:
        statistics = self.statistics(direction)
        return RecoveryFigures(
            average_s=self.average_s(direction),
            minimum_s=None if statistics is None else statistics.minimum,
            maximum_s=None if statistics is None else statistics.maximum,
            median_s=None if statistics is None else statistics.median,
            values=self.values(direction),
            lost_frames=self.lost_frames(direction),
            lossless_repetitions=self.lossless(direction),
            still_losing_repetitions=self.still_losing(direction),
            doubtful_repetitions=self.doubtful(direction),
        )


def measure_recovery(
    tester: OpenTester,
    goal: RecoveryGoal,
    *,
    name: str = "recovery",
    on_event: OnEvent = ignore,
    recorder: Recorder | None = None,
) -> Recovery:
    """All repetitions. A trial with loss is the rule here; an INVALID one is repeated as in searches, and is
    never charged to the DUT.

    Raises:
        RequestError: The throughput is above the line rate.
        EvenhandError: The engine could not make a trial at all.
    """
    load = check_throughput(goal, tester.profile)
    tester = replace(tester, limits=replace(tester.limits, loss_ratio=0.0))
    with recording(recorder, tester, name, kind="recovery", goal=goal.to_document()) as record:
        measurer = tester.measurer(on_event)
        attempts = Attempts(
            measurer=measurer,
            on_event=on_event,
            record=record,
            purpose="recovery",
            overhead_s=measurer.overhead_s,
            invalid_retries=goal.invalid_retries,
            patience=goal.patience,
        )
        repetitions = attempts.repeat(goal.repetitions, load, is_full_length=goal.is_full_length)
        result = Recovery(profile=tester.profile, goal=goal, load=load, repetitions=repetitions)
        record.finish_with(result.outcome, result.summary())
    return result


def check_throughput(goal: RecoveryGoal, profile: Profile) -> Load:
    """The load of every trial. RequestError if the throughput is above the line rate, or a lower bound."""
    choose_maximum(goal.throughput_fps, profile, where="throughput_fps")
    if goal.is_throughput_at_least:
        check_is_no_bound(goal.throughput_fps, profile, source=goal.throughput_source, where="throughput_fps")
    return goal.load(profile.theoretical_fps)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryOptions:
    """Which overload, for how long, how often."""

    throughput: Annotated[
        str | None,
        Option(
            grammar=RATE,
            sets="throughput_fps",
            help="Throughput per direction; the overload is 110 % of it. A deviation.",
        ),
    ] = None
    after: AfterOption = None
    duration: Annotated[
        str, Option(grammar=DURATION, sets="duration_s", help="Duration of the overload.")
    ] = DURATION.default(RecoveryGoal, "duration_s")
    observe: Annotated[
        str,
        Option(
            grammar=DURATION,
            sets="observe_s",
            help="Duration of the load that follows, which is half the overload.",
        ),
    ] = DURATION.default(RecoveryGoal, "observe_s")
    repetitions: Annotated[int, Option(metavar="N", help="Number of valid trials.")] = REPETITIONS


def _goal(options: RecoveryOptions, retries: Retries, known: KnownThroughput | None) -> RecoveryGoal:
    if (options.throughput is None) == (known is None):
        raise RequestError(
            "no throughput given" if known is None else "two throughputs",
            code="procedure.no-load" if known is None else "procedure.two-throughputs",
            where="--throughput, --after",
            next_step=(
                "Name a run file with the throughput (--after), or write a rate such as --throughput 500kfps."
            ),
        )
    given = values_of(options)
    given.pop("after", None)
    if known is not None:
        given |= {
            "throughput_fps": known.fps,
            "throughput_source": known.source,
            "is_throughput_at_least": known.is_at_least,
        }
    return RecoveryGoal(**given, **retries)


def _expected_parts(goal: RecoveryGoal) -> Iterable[str]:
    overloads = f"{count_of(goal.repetitions, 'overload')} of {format_duration(goal.duration_s)}"
    yield f"{overloads}, each followed by half the load for {format_duration(goal.observe_s)}"


def _describe(goal: RecoveryGoal, load: str | None) -> str:
    overloads = f"{goal.repetitions} overloads of {format_duration(goal.duration_s)}"
    return f"{overloads} at 110 % of {load or format_rate(goal.throughput_fps)}"


RECOVERY = Procedure(
    name="recovery",
    verb="recovery",
    help="Measure system recovery (RFC 2544 section 26.5): for how long frames are lost after an overload"
    " of 110 % of the throughput drops to half of that.",
    example="evenhand recovery lab.toml --after throughput.evenhand --run recovery.evenhand",
    options=RecoveryOptions,
    make_goal=_goal,
    goals=RecoveryGoal,
    found=RecoveryFound,
    check=check_throughput,
    measure=measure_recovery,
    rates=DirectionChoice.RATIO,
    figure=Figure(name="recovery time", unit="s", is_higher_better=False),
    section=Section.RECOVERY,
    value_of=lambda found: worst(figures.average_s for figures in found.figures.values()),
    expected_s=lambda goal, waits_s: goal.repetitions * (goal.duration_s + goal.observe_s + waits_s),
    expected_parts=_expected_parts,
    describe=_describe,
    frame_sizes=FrameSizes.ONE,
    load="throughput_fps",
    throughput=ThroughputUse(option="throughput"),
)
