# SPDX-License-Identifier: Apache-2.0
"""Procedure: what latency, PDV and IPDV have in common: at which load, for how long, how often."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from evenhand.base.errors import RequestError
from evenhand.base.option import DURATION, RATE, Option, values_of
from evenhand.base.units import format_duration, format_rate
from evenhand.procedure.delay_goal import REPETITIONS, DelayGoal, DelayTest
from evenhand.procedure.delay_result import DelayResult
from evenhand.procedure.descriptor import (
    AfterOption,
    FrameSizes,
    KnownThroughput,
    Procedure,
    Section,
    ThroughputUse,
    as_number,
    figures_by_direction,
    worst,
)
from evenhand.procedure.expected_time import count_of
from evenhand.procedure.limits import Retries

NS_PER_US = 1e3


@dataclass(frozen=True, slots=True, kw_only=True)
class DelayOptions:
    """Load, duration, and number of repetitions."""

    rate: Annotated[
        str | None,
        Option(
            grammar=RATE,
            sets="rate_fps",
            help="Load per direction. Default: the throughput in the file that --after names.",
        ),
    ] = None
    after: AfterOption = None
    duration: Annotated[
        str | None,
        Option(grammar=DURATION, sets="duration_s", help="Duration of each trial. Default: as in the RFC."),
    ] = None
    start: Annotated[
        str | None,
        Option(
            grammar=DURATION,
            declared="--from",
            sets="from_s",
            help="Exclude frames that are due before this time. Default: as in the RFC.",
        ),
    ] = None
    repetitions: Annotated[int, Option(metavar="N", help="Number of valid trials.")] = REPETITIONS
    own_loop: Annotated[
        bool,
        Option(
            declared="--own-loop/--no-own-loop",
            help="First measure what the tester itself adds at this load, with its two ports joined to"
            " each other (memif ports only).",
        ),
    ] = True


def delay_goal(
    test: DelayTest, options: DelayOptions, retries: Retries, known: KnownThroughput | None, **others: Any
) -> DelayGoal:
    """The goal of one of the tests. RequestError names the option.

    Args:
        others: Other attributes of the goal, which the options do not have.
    """
    if options.rate is None and known is None:
        raise RequestError(
            "no load given",
            code="procedure.no-load",
            where="--rate, --after",
            next_step="Name a run file with the throughput (--after), or write a load such as --rate"
            " 500kfps.",
        )
    given = values_of(options)
    for name in ("after", "own_loop", "profile"):
        given.pop(name, None)
    known_fps, is_bound = (None, False) if known is None else (known.fps, known.is_at_least)
    return DelayGoal(
        test=test,
        throughput_fps=known_fps,
        is_throughput_at_least=is_bound,
        **{"rate_fps": known_fps, **given, **others},
        **retries,
    )


def run_delay(bed: Any, goal: DelayGoal, options: DelayOptions, **conditions: Any) -> DelayResult:
    """One execution."""
    found: DelayResult = bed.delay(goal=goal, has_own_loop=options.own_loop, **conditions)
    return found


def median_us(result: Mapping[str, Any], names: Sequence[str]) -> float | None:
    """The median of the first of these figures that a direction has; of two directions the worse one."""
    found: list[Mapping[str, Any]] = [
        next((of[name] for name in names if of.get(name)), {}) for of in figures_by_direction(result)
    ]
    value_ns = worst(as_number(statistics.get("median_ns")) for statistics in found)
    return None if value_ns is None else value_ns / NS_PER_US


def expected_s(goal: DelayGoal, waits_s: float) -> float:
    return goal.repetitions * (goal.length_s + waits_s)


def expected_parts(goal: DelayGoal) -> Iterable[str]:
    yield f"{count_of(goal.repetitions, 'trial')} of {format_duration(goal.length_s)}"


def describe(goal: DelayGoal, load: str | None) -> str:
    trials = f"{goal.repetitions} trials of {format_duration(goal.length_s)}"
    return f"{trials} at {load or format_rate(goal.rate_fps)}"


def delay_procedure(**own: Any) -> Procedure:
    """A test of delays: what it says of itself, and what is the same for all of them."""
    return Procedure(
        run=run_delay,
        expected_s=expected_s,
        expected_parts=expected_parts,
        describe=describe,
        frame_sizes=FrameSizes.ONE_OR_MIX,
        load="rate_fps",
        section=Section.LATENCY,
        throughput=ThroughputUse(option="rate"),
        has_own_loop=lambda options: bool(options.own_loop),
        **own,
    )
