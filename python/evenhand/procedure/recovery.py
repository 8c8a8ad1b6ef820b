# SPDX-License-Identifier: Apache-2.0
"""Procedure: system recovery (RFC 2544, 26.5): for how long the DUT goes on losing frames after an
overload."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

from evenhand.base.errors import RequestError
from evenhand.base.option import DURATION, RATE, Option, values_of
from evenhand.base.units import format_duration, format_rate
from evenhand.procedure.attempts import Attempts
from evenhand.procedure.descriptor import (
    AfterOption,
    Figure,
    FrameSizes,
    KnownThroughput,
    Procedure,
    Section,
    ThroughputUse,
    as_number,
    figures_by_direction,
    worst,
)
from evenhand.procedure.events import OnEvent, ignore
from evenhand.procedure.expected_time import count_of
from evenhand.procedure.known_throughput import check_is_no_bound
from evenhand.procedure.limits import Retries
from evenhand.procedure.profile import Profile
from evenhand.procedure.record import Recorder, recording
from evenhand.procedure.recovery_goal import OVERLOAD_S, REPETITIONS, RecoveryGoal
from evenhand.procedure.recovery_result import Recovery
from evenhand.procedure.tester import OpenTester, choose_maximum
from evenhand.trial import Load, TrialResult


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
        result = Recovery(
            profile=tester.profile, goal=goal, load=load, repetitions=repeat_overload(attempts, goal, load)
        )
        record.finish_with(result.outcome, result.summary())
    return result


def check_throughput(goal: RecoveryGoal, profile: Profile) -> Load:
    """The load of every trial. RequestError if the throughput is above the line rate, or a lower bound."""
    choose_maximum(goal.throughput_fps, profile, where="throughput_fps")
    if goal.is_throughput_at_least:
        check_is_no_bound(goal.throughput_fps, profile, source=goal.throughput_source, where="throughput_fps")
    return goal.load(profile.theoretical_fps)


def repeat_overload(
    attempts: Attempts, goal: RecoveryGoal, load: Load
) -> tuple[tuple[TrialResult, ...], ...]:
    """Trials by repetition. One that was stopped or stayed INVALID is the last: the tester will not keep that
    load the next time either."""
    repetitions: list[tuple[TrialResult, ...]] = []
    for number in range(1, goal.repetitions + 1):
        later, is_full_length = goal.repetitions - number, goal.duration_s >= OVERLOAD_S
        what = f"repetition {number} of {goal.repetitions}"
        repetitions.append(
            tuple(attempts.measure(what=what, load=load, later=later, is_full_length=is_full_length))
        )
        if not repetitions[-1][-1].is_valid:
            break
    return tuple(repetitions)


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
    ] = "60s"
    observe: Annotated[
        str,
        Option(
            grammar=DURATION,
            sets="observe_s",
            help="Duration of the load that follows, which is half the overload.",
        ),
    ] = "60s"
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


def _run(bed: Any, goal: RecoveryGoal, options: RecoveryOptions, **conditions: Any) -> Recovery:
    found: Recovery = bed.recovery(goal=goal, **conditions)
    return found


def _value(result: Mapping[str, Any]) -> float | None:
    return worst(as_number(figures.get("average_s")) for figures in figures_by_direction(result))


def _expected_s(goal: RecoveryGoal, waits_s: float) -> float:
    return goal.repetitions * (goal.duration_s + goal.observe_s + waits_s)


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
    run=_run,
    figure=Figure(name="recovery time", unit="s", is_higher_better=False),
    section=Section.RECOVERY,
    value_of=_value,
    expected_s=_expected_s,
    expected_parts=_expected_parts,
    describe=_describe,
    frame_sizes=FrameSizes.ONE,
    load="throughput_fps",
    throughput=ThroughputUse(option="throughput"),
)
