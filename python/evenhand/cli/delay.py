# SPDX-License-Identifier: Apache-2.0
"""`evenhand latency` and `evenhand pdv`: how long frames take, and by how much that varies, at the throughput."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from evenhand.cli.after import throughput_searches
from evenhand.cli.common import (
    DEFAULT_SEED,
    EngineOption,
    FramesOption,
    JsonOption,
    OneWayOption,
    SeedOption,
    TestbedArgument,
    err,
    read_directions,
    read_frames,
    warn_about,
)
from evenhand.cli.learning import LearningOptions
from evenhand.cli.limits import LimitOptions, RetryOptions
from evenhand.cli.options import PlanOptions, RunOptions, with_options
from evenhand.cli.single_pair import devices_of
from evenhand.cli.tables import show_found
from evenhand.cli.waits import WaitOptions
from evenhand.errors import RequestError
from evenhand.plan import AddressPlan, Direction, FrameSize, describe_mix, describe_size, whole_octets
from evenhand.procedure import DelayGoal, DelayTest, OpenTestbed, Setup, limits_of, read_setup
from evenhand.procedure.delay import REPETITIONS
from evenhand.progress import ProgressDisplay
from evenhand.report import delay_lines, delay_table
from evenhand.search import Outcome
from evenhand.series import StoredSearch, without_folders
from evenhand.testbed import TestbedLimits, check_rate
from evenhand.units import format_rate, parse_duration, parse_rate

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
        str | None, typer.Option("--rate", metavar="RATE", help="Load per direction. Default: the throughput that --after has.")
    ] = None
    after: Annotated[
        Path | None, typer.Option("--after", metavar="RUN", help="A run file with the throughput of the same testbed, plan and frame size.")
    ] = None
    duration: Annotated[str | None, typer.Option("--duration", metavar="TIME", help="Of each trial. Default: as the RFC has it.")] = None
    start: Annotated[
        str | None, typer.Option("--from", metavar="TIME", help="Frames that are due before do not count. Default: as the RFC has it.")
    ] = None
    repetitions: Annotated[int, typer.Option("--repetitions", metavar="N", help="Trials that count.")] = REPETITIONS

    def read(self, test: DelayTest, throughput_fps: float | None, **others: Any) -> DelayGoal:
        """RequestError names the option."""
        if self.rate is None and throughput_fps is None:
            raise RequestError(
                "at which load?", where="--rate, --after",
                next_step="Name a run file that has the throughput with --after, or write a load like --rate 500kfps.",
            )  # fmt: skip
        rate_fps = throughput_fps if self.rate is None else parse_rate(self.rate, where="--rate")
        assert rate_fps is not None
        return DelayGoal(
            test=test, rate_fps=rate_fps, throughput_fps=throughput_fps, repetitions=self.repetitions,
            duration_s=None if self.duration is None else parse_duration(self.duration, where="--duration"),
            from_s=None if self.start is None else parse_duration(self.start, where="--from"), **others,
        )  # fmt: skip


@with_options
def latency(
    testbed: TestbedArgument,
    *,
    plan: PlanOptions,
    frame_size: FramesOption = None,
    load: LoadOptions,
    profile: Annotated[
        LatencyProfile, typer.Option("--profile", help="rfc8219: median and 99.9th percentile of 500 tagged frames; rfc2544: one frame.")
    ] = LatencyProfile.RFC8219,
    tagged: Annotated[
        int | None, typer.Option("--tagged", metavar="N", help="Tagged frames of a trial. Default: as the RFC has it.")
    ] = None,
    one_way: OneWayOption = False,
    learning: LearningOptions,
    seed: SeedOption = DEFAULT_SEED,
    waits: WaitOptions,
    limits: LimitOptions,
    retries: RetryOptions,
    run: RunOptions,
    engine: EngineOption = None,
    json_output: JsonOption = False,
) -> None:
    """Measure latency at the throughput (RFC 8219 section 7.2, or RFC 2544 section 26.2), twenty times over.

    Latency is from building a frame to receiving it, and contains what the tester itself adds.
    """
    test = DelayTest.LATENCY if profile is LatencyProfile.RFC8219 else DelayTest.LATENCY_RFC2544
    _measure(
        "latency", test, testbed, plan=plan, frame_size=frame_size, load=load, one_way=one_way, learning=learning, seed=seed, waits=waits,
        limits=limits, retries=retries, run=run, engine=engine, json_output=json_output, tagged_frames=tagged,
    )  # fmt: skip


@with_options
def pdv(
    testbed: TestbedArgument,
    *,
    plan: PlanOptions,
    frame_size: FramesOption = None,
    load: LoadOptions,
    ipdv: Annotated[bool, typer.Option("--ipdv", help="The differences of consecutive frames as well (RFC 8219, 7.3.2).")] = False,
    one_way: OneWayOption = False,
    learning: LearningOptions,
    seed: SeedOption = DEFAULT_SEED,
    waits: WaitOptions,
    limits: LimitOptions,
    retries: RetryOptions,
    run: RunOptions,
    engine: EngineOption = None,
    json_output: JsonOption = False,
) -> None:
    """Measure packet delay variation at the throughput over every frame (RFC 8219 section 7.3), twenty times over."""
    _measure(
        "pdv", DelayTest.PDV, testbed, plan=plan, frame_size=frame_size, load=load, one_way=one_way, learning=learning, seed=seed,
        waits=waits, limits=limits, retries=retries, run=run, engine=engine, json_output=json_output, has_variation=ipdv,
    )  # fmt: skip


def _measure(
    verb: str,
    test: DelayTest,
    testbed: str,
    *,
    plan: PlanOptions,
    frame_size: str | None,
    load: LoadOptions,
    one_way: bool,
    learning: LearningOptions,
    seed: int,
    waits: WaitOptions,
    limits: LimitOptions,
    retries: RetryOptions,
    run: RunOptions,
    engine: Path | None,
    json_output: bool,
    **others: Any,
) -> None:
    address_plan = plan.read()
    warn_about(address_plan)
    choice = learning.read(address_plan)
    size, note = read_frames(address_plan, frame_size)
    chosen_waits, given_limits = waits.read(), limits.read()
    directions = read_directions(one_way=one_way)
    # What is wrong with it is told before the files are read.
    load.read(test, 1e6 if load.after is not None else None, **retries.read(TestbedLimits()), **others)
    setup = read_setup(testbed, address_plan)
    throughput_fps = None
    if load.after is not None:
        throughput_fps = read_throughput(load.after, setup, address_plan, frame_size=size, directions=directions)
    goal = load.read(test, throughput_fps, **retries.read(setup.testbed.limits), **others)
    check_rate(goal.rate_fps, setup.testbed.max_theoretical_fps(size), line_rate_bps=None, frame_size=size, where="--rate")
    with ExitStack() as stack:
        store = stack.enter_context(run.open(verb))
        progress = stack.enter_context(ProgressDisplay(err()))
        if note is not None:
            progress.say(note)
        bed = OpenTestbed(setup=setup, engine=engine, recorder=store, on_event=progress.on_event)
        found = bed.delay(
            goal=goal, plan=address_plan, frame_size=size, directions=directions, seed=seed, waits=chosen_waits,
            limits=limits_of(setup.testbed.limits, given=given_limits), host_macs=learning.host_macs.value, learning=choice,
        )  # fmt: skip
    show_found(verb, found, delay_table, delay_lines, store, is_json=json_output)


def read_throughput(path: Path, setup: Setup, plan: AddressPlan, *, frame_size: FrameSize, directions: tuple[Direction, ...]) -> float:
    """The throughput per direction of the last search in that run which was made under these conditions.

    Raises:
        RequestError, HostError: It cannot be read, or has no such search.
    """
    wanted = (
        devices_of(without_folders(setup.to_document())),
        plan.to_contract(),
        whole_octets(frame_size),
        describe_mix(plan, frame_size),
        sorted(directions),
    )
    outcomes = [str(outcome) for outcome in (Outcome.FOUND, Outcome.AT_OR_ABOVE_MAXIMUM)]
    found: StoredSearch | None = None
    for search in throughput_searches(path):
        conditions = (
            devices_of(search.setup), search.plan, search.frame_size, search.setup.get("mix"), sorted(search.setup.get("directions", []))
        )  # fmt: skip
        if search.kind == "throughput" and search.result is not None and search.outcome in outcomes and conditions == wanted:
            found = search
    if found is None or found.result is None:
        raise RequestError(
            f"this run has no throughput of these ports, {plan.title} with the same addresses, {describe_size(frame_size)} and the same"
            " directions",
            where=f"--after {path}", next_step=f"Measure it first: evenhand throughput {setup.name} --plan {plan.title} --run FILE.",
        )  # fmt: skip
    throughput_fps: float = found.result["throughput_fps_per_direction"]
    if found.goal.get("loss_ratio"):
        raise RequestError(
            f"the throughput of {format_rate(throughput_fps)} in this run was found with a loss ratio above 0", where=f"--after {path}",
            next_step="Name a run without --loss-ratio, or give the load with --rate.",
        )  # fmt: skip
    return throughput_fps
