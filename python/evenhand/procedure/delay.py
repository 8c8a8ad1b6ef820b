# SPDX-License-Identifier: Apache-2.0
"""Procedure: latency (RFC 8219, 7.2; RFC 2544, 26.2) and packet delay variation (RFC 8219, 7.3): one trial at
one load, many times over."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from evenhand.base.errors import RequestError
from evenhand.base.option import DURATION, RATE, Option, values_of
from evenhand.base.units import format_duration, format_rate, parse_ratio
from evenhand.procedure.attempts import Attempts
from evenhand.procedure.conditions import Conditions
from evenhand.procedure.delay_result import DelayResult
from evenhand.procedure.descriptor import (
    AfterOption,
    Figure,
    FrameSizes,
    KnownThroughput,
    Procedure,
    Section,
    ThroughputUse,
    worst,
)
from evenhand.procedure.events import OnEvent, ignore
from evenhand.procedure.expected_time import count_of
from evenhand.procedure.limits import Retries
from evenhand.procedure.own_loop import OwnLoop, measure_own_loop
from evenhand.procedure.prepared_testbed import PreparedTestbed
from evenhand.procedure.record import Recorder, recording
from evenhand.procedure.tester import OpenTester, choose_maximum
from evenhand.results.delay import REPETITIONS, DelayFound, DelayGoal, DelayName, DelayTest
from evenhand.trial import Load, TrialResult


def measure_delay(
    tester: OpenTester,
    goal: DelayGoal,
    *,
    own_loop: OwnLoop | None = None,
    name: str | None = None,
    on_event: OnEvent = ignore,
    recorder: Recorder | None = None,
) -> DelayResult:
    """All repetitions. A trial with loss counts; an INVALID one is repeated as in searches, and is never
    charged to the DUT.

    Args:
        own_loop: What `measure_own_loop` found at this load before the tester was opened.

    Raises:
        RequestError: The rate is above the line rate.
        EvenhandError: The engine could not make a trial at all.
    """
    choose_maximum(goal.rate_fps, tester.profile, where="rate_fps")
    with recording(
        recorder,
        tester,
        name or str(goal.test),
        kind=str(goal.test),
        procedure=goal.test.procedure,
        goal=goal.to_document(),
    ) as record:
        measurer = tester.measurer(on_event, delays=goal.wish)
        attempts = Attempts(
            measurer=measurer,
            on_event=on_event,
            record=record,
            purpose=str(goal.test),
            overhead_s=measurer.overhead_s,
            invalid_retries=goal.invalid_retries,
            patience=goal.patience,
        )
        result = DelayResult(
            profile=tester.profile,
            goal=goal,
            repetitions=repeat_load(attempts, goal),
            own_loop=own_loop or OwnLoop(),
            hardware_stamps={
                side: str(tester.opened[side]["hardware_stamps"]) for side in tester.setup.testbed.ports
            },
        )
        record.finish_with(result.outcome, result.summary())
    return result


def own_loop_first(bed: PreparedTestbed, goal: DelayGoal, conditions: Conditions) -> dict[str, OwnLoop]:
    """The keyword of `measure_delay` for what the tester itself adds at this load, measured before the
    tester is open: it has the same CPUs."""
    plan, size, directions = bed.check_frames(conditions)
    return {
        "own_loop": measure_own_loop(
            bed.setup,
            plan,
            rate_fps=goal.rate_fps,
            duration_s=goal.length_s,
            frame_size=size,
            directions=directions,
            rates=conditions.get("rates"),
            seed=conditions.get("seed", 1),
            has_variation=goal.has_variation,
            invalid_retries=goal.invalid_retries,
            patience=goal.patience,
            engine=bed.engine,
            limits=bed.limits_of(conditions.get("limits")),
            on_event=bed.on_event,
            recorder=bed.recorder,
            replay=bed.replay,
        )
    }


def repeat_load(attempts: Attempts, goal: DelayGoal) -> tuple[tuple[TrialResult, ...], ...]:
    """Trials by repetition."""
    load = Load(rate_fps=goal.rate_fps, duration_s=goal.length_s)
    return attempts.repeat(goal.repetitions, load, is_full_length=goal.is_full_length)


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
    at: Annotated[
        str | None,
        Option(
            metavar="SHARE,...",
            help="Measure at these shares of the throughput (--after, or --rate) instead, one after another:"
            " 10%,50%,90% as FD.io CSIT does. Each is a deviation.",
        ),
    ] = None
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


def options_at_each_share(options: DelayOptions) -> tuple[DelayOptions, ...]:
    """The options of each of the loads that `--at` names; one, if it names none."""
    if options.at is None:
        return (options,)
    return tuple(replace(options, at=text.strip()) for text in options.at.split(","))


def _share(text: str) -> float:
    share = 1.0 if text.strip() == "100%" else parse_ratio(text, where="--at")
    if share <= 0:
        raise RequestError(
            f"{text!r}: no load",
            code="procedure.out-of-range",
            where="--at",
            next_step="Write shares of the throughput, such as 10%,50%,90%.",
        )
    return share


def _load_at(text: str, throughput_fps: float) -> float:
    """The share of this throughput; whole frames, unless there is less than one a second."""
    if "," in text:
        raise RequestError(
            f"{text!r}: several loads",
            code="procedure.one-load-only",
            where="--at",
            next_step='Give a point for each: at = "10%".',
        )
    load_fps = _share(text) * throughput_fps
    return load_fps if load_fps < 1 else float(int(load_fps))


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
    for name in ("after", "at", "own_loop", "profile"):
        given.pop(name, None)
    known_fps, is_bound = (None, False) if known is None else (known.fps, known.is_at_least)
    whole_fps = given.get("rate_fps", known_fps)
    if options.at is not None and whole_fps is not None:
        given["rate_fps"] = _load_at(options.at, whole_fps)
    return DelayGoal(
        test=test,
        throughput_fps=known_fps,
        is_throughput_at_least=is_bound,
        **{"rate_fps": known_fps, **given, **others},
        **retries,
    )


def median_us(*names: DelayName) -> Callable[[DelayFound], float | None]:
    """`value_of` that is the median of the first of these figures that a direction has."""

    def value_of(found: DelayFound) -> float | None:
        value_ns = worst(
            next((figure.median_ns for name in names if (figure := each.of.get(name))), None)
            for each in found.figures.values()
        )
        return None if value_ns is None else value_ns / NS_PER_US

    return value_of


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
        goals=DelayGoal,
        found=DelayFound,
        before=own_loop_first,
        measure=measure_delay,
        expected_s=expected_s,
        expected_parts=expected_parts,
        describe=describe,
        frame_sizes=FrameSizes.ONE_OR_MIX,
        load="rate_fps",
        section=Section.LATENCY,
        throughput=ThroughputUse(option="rate"),
        has_own_loop=lambda options: bool(options.own_loop),
        options_of_each_load=options_at_each_share,
        **own,
    )


TESTS = {"rfc8219": DelayTest.LATENCY, "rfc2544": DelayTest.LATENCY_RFC2544}


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyOptions(DelayOptions):
    """Load, duration, number of repetitions, and the RFC that the test follows."""

    profile: Annotated[
        Literal["rfc8219", "rfc2544"],
        Option(help="rfc8219: median and 99.9th percentile of 500 tagged frames; rfc2544: one frame."),
    ] = "rfc8219"
    tagged: Annotated[
        int | None,
        Option(
            sets="tagged_frames",
            metavar="N",
            least=0,
            help="Number of tagged frames in a trial. Default: as in the RFC.",
        ),
    ] = None


LATENCY = delay_procedure(
    name="latency",
    verb="latency",
    help="""Measure latency at the throughput (RFC 8219 section 7.2, or RFC 2544 section 26.2), with twenty
    repetitions.

    Latency lasts from building a frame to receiving it, and includes what the tester itself adds.""",
    example="evenhand latency lab.toml --after throughput.evenhand --run latency.evenhand",
    options=LatencyOptions,
    make_goal=lambda options, retries, known: delay_goal(TESTS[options.profile], options, retries, known),
    figure=Figure(name="typical latency", unit="us", is_higher_better=False),
    value_of=median_us("typical", "latency"),  # of RFC 8219, and of RFC 2544
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PdvOptions(DelayOptions):
    """Load, duration, number of repetitions, and whether consecutive frames are compared too."""

    ipdv: Annotated[
        bool,
        Option(
            sets="has_variation",
            help="Also report the differences of consecutive frames (RFC 8219, 7.3.2).",
            is_for_shell_only=True,
        ),
    ] = False


PDV = delay_procedure(
    name="pdv",
    verb="pdv",
    help="Measure packet delay variation at the throughput over every frame (RFC 8219 section 7.3), with"
    " twenty repetitions.",
    example="evenhand pdv lab.toml --after throughput.evenhand --ipdv",
    options=PdvOptions,
    make_goal=lambda options, retries, known: delay_goal(DelayTest.PDV, options, retries, known),
    figure=Figure(name="PDV", unit="us", is_higher_better=False),
    value_of=median_us("pdv"),
)
IPDV = replace(
    PDV,
    name="ipdv",
    verb=None,
    help="Measure the delay variation between consecutive frames (RFC 8219 section 7.3.2).",
    options=DelayOptions,
    make_goal=lambda options, retries, known: delay_goal(
        DelayTest.PDV, options, retries, known, has_variation=True
    ),
    figure=Figure(name="largest IPDV", unit="us", is_higher_better=False),
    value_of=median_us("ipdv_max"),
)
