# SPDX-License-Identifier: Apache-2.0
"""`evenhand recovery`: for how long the DUT goes on losing frames after an overload."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from evenhand.cli.common import (
    DEFAULT_SEED,
    EngineOption,
    FrameSizeOption,
    JsonOption,
    OneWayOption,
    SeedOption,
    TestbedArgument,
    err,
    read_directions,
    read_frame_size,
    warn_about,
)
from evenhand.cli.delay import read_throughput
from evenhand.cli.learning import LearningOptions
from evenhand.cli.limits import LimitOptions, RetryOptions
from evenhand.cli.options import PlanOptions, RunOptions, with_options
from evenhand.cli.tables import show_found
from evenhand.cli.waits import WaitOptions
from evenhand.errors import RequestError
from evenhand.procedure import OpenTestbed, RecoveryGoal, limits_of, read_setup
from evenhand.procedure.recovery import REPETITIONS
from evenhand.progress import ProgressDisplay
from evenhand.report import recovery_lines, recovery_table
from evenhand.testbed import TestbedLimits, check_rate
from evenhand.units import parse_duration, parse_rate

EXAMPLE = "Example: evenhand recovery lab.toml --after throughput.evenhand --run recovery.evenhand"


@dataclass(frozen=True, slots=True, kw_only=True)
class OverloadOptions:
    """Which overload, for how long, how often."""

    throughput: Annotated[
        str | None, typer.Option("--throughput", metavar="RATE", help="Per direction, of which 110 % are the overload. A deviation.")
    ] = None
    after: Annotated[
        Path | None, typer.Option("--after", metavar="RUN", help="A run file with the throughput of the same testbed, plan and frame size.")
    ] = None
    duration: Annotated[str, typer.Option("--duration", metavar="TIME", help="Of the overload.")] = "60s"
    observe: Annotated[str, typer.Option("--observe", metavar="TIME", help="Of the load that follows, half of the overload.")] = "60s"
    repetitions: Annotated[int, typer.Option("--repetitions", metavar="N", help="Trials that count.")] = REPETITIONS

    def read(self, retries: RetryOptions, testbed: TestbedLimits, measured_fps: float | None) -> RecoveryGoal:
        """RequestError names the option."""
        if (self.throughput is None) == (self.after is None):
            raise RequestError(
                "which throughput?" if self.after is None else "two throughputs", where="--throughput, --after",
                next_step="Name a run file that has it with --after, or write a rate like --throughput 500kfps.",
            )  # fmt: skip
        rate_fps = measured_fps if self.throughput is None else parse_rate(self.throughput, where="--throughput")
        assert rate_fps is not None
        return RecoveryGoal(
            throughput_fps=rate_fps, throughput_source=None if self.after is None else self.after.name,
            duration_s=parse_duration(self.duration, where="--duration"), observe_s=parse_duration(self.observe, where="--observe"),
            repetitions=self.repetitions, **retries.read(testbed),
        )  # fmt: skip


@with_options
def recovery(
    testbed: TestbedArgument,
    *,
    plan: PlanOptions,
    frame_size: FrameSizeOption = None,
    goal: OverloadOptions,
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
    """Measure system recovery (RFC 2544 section 26.5): 110 % of the throughput, then half of that; how long are frames still lost?"""
    address_plan = plan.read()
    warn_about(address_plan)
    choice = learning.read(address_plan)
    size, note = read_frame_size(address_plan, frame_size)
    chosen_waits, given_limits = waits.read(), limits.read()
    directions = read_directions(one_way=one_way)
    goal.read(retries, TestbedLimits(), 1e6)  # what is wrong with it is told before the files are read
    setup = read_setup(testbed, address_plan)
    measured_fps = None
    if goal.after is not None:
        measured_fps = read_throughput(goal.after, setup, address_plan, frame_size=size, directions=directions)
    chosen = goal.read(retries, setup.testbed.limits, measured_fps)
    check_rate(chosen.throughput_fps, setup.testbed.max_theoretical_fps(size), line_rate_bps=None, frame_size=size, where="--throughput")
    with ExitStack() as stack:
        store = stack.enter_context(run.open("recovery"))
        progress = stack.enter_context(ProgressDisplay(err()))
        if note is not None:
            progress.say(note)
        bed = OpenTestbed(setup=setup, engine=engine, recorder=store, on_event=progress.on_event)
        found = bed.recovery(
            goal=chosen, plan=address_plan, frame_size=size, directions=directions, seed=seed, waits=chosen_waits,
            limits=limits_of(setup.testbed.limits, given=given_limits), host_macs=learning.host_macs.value, learning=choice,
        )  # fmt: skip
    show_found("recovery", found, recovery_table, recovery_lines, store, is_json=json_output)
