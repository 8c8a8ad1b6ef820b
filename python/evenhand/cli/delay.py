# SPDX-License-Identifier: Apache-2.0
"""`evenhand latency` and `evenhand pdv`: how long frames take, and by how much that varies, at the
throughput."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from evenhand.base.errors import RequestError
from evenhand.base.units import format_rate, parse_duration, parse_rate
from evenhand.base.without_folders import without_folders
from evenhand.cli.common import FramesOption, TestbedArgument, read_frames
from evenhand.cli.conditions import ConditionOptions, Given
from evenhand.cli.limits import RetryOptions
from evenhand.cli.options import with_options
from evenhand.cli.single_pair import devices_of
from evenhand.cli.tables import show_found
from evenhand.cli.throughput_source import throughput_searches
from evenhand.plan import FrameSize, describe_mix, describe_size, whole_octets, with_titles
from evenhand.procedure import DelayGoal, DelayTest
from evenhand.procedure.delay import REPETITIONS
from evenhand.report import delay_lines, delay_table
from evenhand.rig import Setup
from evenhand.rig.testbed import TestbedLimits
from evenhand.search import Outcome
from evenhand.series import StoredSearch

LATENCY_EXAMPLE = "Example: evenhand latency lab.toml --after throughput.evenhand --run latency.evenhand"
PDV_EXAMPLE = "Example: evenhand pdv lab.toml --after throughput.evenhand --ipdv"


class LatencyProfile(StrEnum):
    """Whose latency test."""

    RFC8219 = "rfc8219"
    RFC2544 = "rfc2544"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOptions:
    """At which load, for how long, how often."""

    rate: Annotated[
        str | None,
        typer.Option(
            "--rate", metavar="RATE", help="Load per direction. Default: the throughput that --after has."
        ),
    ] = None
    after: Annotated[
        Path | None,
        typer.Option(
            "--after",
            metavar="RUN",
            help="A run file with the throughput of the same testbed, plan and frame size.",
        ),
    ] = None
    duration: Annotated[
        str | None,
        typer.Option("--duration", metavar="TIME", help="Of each trial. Default: as the RFC has it."),
    ] = None
    start: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="TIME",
            help="Frames that are due before do not count. Default: as the RFC has it.",
        ),
    ] = None
    repetitions: Annotated[int, typer.Option("--repetitions", metavar="N", help="Trials that count.")] = (
        REPETITIONS
    )
    own_loop: Annotated[
        bool,
        typer.Option(
            "--own-loop/--no-own-loop",
            help="Measure first what the tester itself adds at this load, with its two ports joined to each"
            " other (memif ports only).",
        ),
    ] = True

    def read(self, test: DelayTest, throughput_fps: float | None, **others: Any) -> DelayGoal:
        """RequestError names the option."""
        if self.rate is None and throughput_fps is None:
            raise RequestError(
                "at which load?",
                where="--rate, --after",
                next_step="Name a run file that has the throughput with --after, or write a load like --rate"
                " 500kfps.",
            )
        rate_fps = throughput_fps if self.rate is None else parse_rate(self.rate, where="--rate")
        assert rate_fps is not None
        return DelayGoal(
            test=test,
            rate_fps=rate_fps,
            throughput_fps=throughput_fps,
            repetitions=self.repetitions,
            duration_s=None if self.duration is None else parse_duration(self.duration, where="--duration"),
            from_s=None if self.start is None else parse_duration(self.start, where="--from"),
            **others,
        )


@with_options
def latency(
    testbed: TestbedArgument,
    *,
    frame_size: FramesOption = None,
    load: LoadOptions,
    profile: Annotated[
        LatencyProfile,
        typer.Option(
            "--profile",
            help="rfc8219: median and 99.9th percentile of 500 tagged frames; rfc2544: one frame.",
        ),
    ] = LatencyProfile.RFC8219,
    tagged: Annotated[
        int | None,
        typer.Option("--tagged", metavar="N", help="Tagged frames of a trial. Default: as the RFC has it."),
    ] = None,
    retries: RetryOptions,
    conditions: ConditionOptions,
) -> None:
    """Measure latency at the throughput (RFC 8219 section 7.2, or RFC 2544 section 26.2), twenty times over.

    Latency is from building a frame to receiving it, and contains what the tester itself adds.
    """
    test = DelayTest.LATENCY if profile is LatencyProfile.RFC8219 else DelayTest.LATENCY_RFC2544
    _measure("latency", test, testbed, frame_size, load, retries, conditions, tagged_frames=tagged)


@with_options
def pdv(
    testbed: TestbedArgument,
    *,
    frame_size: FramesOption = None,
    load: LoadOptions,
    ipdv: Annotated[
        bool, typer.Option("--ipdv", help="The differences of consecutive frames as well (RFC 8219, 7.3.2).")
    ] = False,
    retries: RetryOptions,
    conditions: ConditionOptions,
) -> None:
    """Measure packet delay variation at the throughput over every frame (RFC 8219 section 7.3), twenty times
    over."""
    _measure("pdv", DelayTest.PDV, testbed, frame_size, load, retries, conditions, has_variation=ipdv)


def _measure(
    verb: str,
    test: DelayTest,
    testbed: str,
    frame_size: str | None,
    load: LoadOptions,
    retries: RetryOptions,
    conditions: ConditionOptions,
    **others: Any,
) -> None:
    given = conditions.read(testbed)
    size, note = read_frames(given.plan, frame_size)
    # What is wrong with it is told before the files are read.
    load.read(test, 1e6 if load.after is not None else None, **retries.read(TestbedLimits()), **others)
    setup = given.read_setup()
    throughput_fps = (
        None if load.after is None else read_throughput(load.after, setup, given, frame_size=size)
    )
    goal = load.read(test, throughput_fps, **retries.read(setup.testbed.limits), **others)
    given.check_rate(setup, goal.rate_fps, [size], where="--rate")
    with given.open(verb, setup, [note], goal=goal, is_own_loop_first=load.own_loop) as (bed, store, _):
        found = bed.delay(goal=goal, has_own_loop=load.own_loop, **given.of(setup, frame_size=size))
    show_found(verb, found, delay_table, delay_lines, store, is_json=conditions.json_output)


def read_throughput(path: Path, setup: Setup, given: Given, *, frame_size: FrameSize) -> float:
    """The throughput per direction of the last search in that run which was made under these conditions.

    Raises:
        RequestError, HostError: It cannot be read, or has no such search.
    """
    plan = given.plan
    wanted = (
        devices_of(without_folders(setup.to_document())),
        plan.to_contract(),
        whole_octets(frame_size),
        describe_mix(plan, frame_size),
        sorted(given.conditions["directions"]),
    )
    outcomes = [
        str(outcome) for outcome in (Outcome.FOUND, Outcome.AT_OR_ABOVE_MAXIMUM, Outcome.TESTER_LIMIT)
    ]
    found: StoredSearch | None = None
    for search in throughput_searches(path):
        conditions = (
            devices_of(search.setup),
            search.plan,
            search.frame_size,
            with_titles(search.setup.get("mix")),
            sorted(search.setup.get("directions", [])),
        )
        has_number = search.result is not None and search.result["throughput_fps_per_direction"] is not None
        if search.kind == "throughput" and has_number and search.outcome in outcomes and conditions == wanted:
            found = search
    if found is None or found.result is None:
        raise RequestError(
            f"this run has no throughput of these ports, {plan.title} with the same addresses,"
            f" {describe_size(frame_size)} and the same"
            " directions",
            where=f"--after {path}",
            next_step=f"Measure it first: evenhand throughput {setup.name} --plan {plan.title} --run FILE.",
        )
    throughput_fps: float = found.result["throughput_fps_per_direction"]
    if found.goal.get("loss_ratio"):
        raise RequestError(
            f"the throughput of {format_rate(throughput_fps)} in this run was found with a loss ratio above"
            " 0",
            where=f"--after {path}",
            next_step="Name a run without --loss-ratio, or give the load with --rate.",
        )
    return throughput_fps
