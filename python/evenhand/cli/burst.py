# SPDX-License-Identifier: Apache-2.0
"""`evenhand burst`: how close bursts may follow each other."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
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
from evenhand.cli.learning import LearningOptions
from evenhand.cli.limits import LimitOptions, RetryOptions
from evenhand.cli.options import PlanOptions, RunOptions, with_options
from evenhand.cli.tables import show_found
from evenhand.cli.waits import WaitOptions
from evenhand.procedure import UP_TO_LINE_RATE, BurstGoal, OpenTestbed, limits_of, read_setup
from evenhand.progress import ProgressDisplay
from evenhand.report import burst_lines, burst_table
from evenhand.testbed import TestbedLimits, check_rate
from evenhand.units import parse_count, parse_duration, parse_rate, parse_ratio

EXAMPLE = "Example: evenhand burst lab.toml --burst 16,64 --run burst.evenhand"


@dataclass(frozen=True, slots=True, kw_only=True)
class BurstOptions:
    """Which bursts, and how their interval is searched."""

    burst: Annotated[str, typer.Option("--burst", metavar="FRAMES,...", help="Frames of a burst; each is searched for itself.")] = (
        "16,64,256,1024"
    )
    rate: Annotated[
        str | None,
        typer.Option("--rate", metavar="RATE", help="Within a burst, per direction; default: the line rate. Less is a deviation."),
    ] = None
    duration: Annotated[str, typer.Option("--duration", metavar="TIME", help="Of the trials of a search.")] = "5s"
    final_duration: Annotated[str, typer.Option("--final-duration", metavar="TIME", help="Of the trial that confirms its result.")] = "60s"
    precision: Annotated[str, typer.Option("--precision", metavar="RATIO", help="Width at which the search stops.")] = "0.5%"

    def read(self, retries: RetryOptions, testbed: TestbedLimits) -> BurstGoal:
        """RequestError names the option."""
        return BurstGoal(
            burst_frames=tuple(parse_count(text, where="--burst") for text in self.burst.split(",")),
            rate_fps=UP_TO_LINE_RATE if self.rate is None else parse_rate(self.rate, where="--rate"),
            precision=parse_ratio(self.precision, where="--precision"),
            duration_s=parse_duration(self.duration, where="--duration"),
            final_duration_s=parse_duration(self.final_duration, where="--final-duration"),
            **retries.read(testbed),
        )


@with_options
def burst(
    testbed: TestbedArgument,
    *,
    plan: PlanOptions,
    frame_size: FrameSizeOption = None,
    goal: BurstOptions,
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
    """Find the smallest interval between bursts that loses nothing (RFC 2544 section 21), for bursts of 16, 64, 256 and 1024 frames."""
    address_plan = plan.read()
    warn_about(address_plan)
    choice = learning.read(address_plan)
    size, note = read_frame_size(address_plan, frame_size)
    chosen_waits, given_limits = waits.read(), limits.read()
    goal.read(retries, TestbedLimits())  # what is wrong with it is told before the file is read
    setup = read_setup(testbed, address_plan)
    chosen = goal.read(retries, setup.testbed.limits)
    if goal.rate is not None:
        check_rate(chosen.rate_fps, setup.testbed.max_theoretical_fps(size), line_rate_bps=None, frame_size=size, where="--rate")
    with ExitStack() as stack:
        store = stack.enter_context(run.open("burst"))
        progress = stack.enter_context(ProgressDisplay(err()))
        if note is not None:
            progress.say(note)
        bed = OpenTestbed(setup=setup, engine=engine, recorder=store, on_event=progress.on_event)
        found = bed.burst(
            goal=chosen, plan=address_plan, frame_size=size, directions=read_directions(one_way=one_way), seed=seed, waits=chosen_waits,
            limits=limits_of(setup.testbed.limits, given=given_limits), host_macs=learning.host_macs.value, learning=choice,
        )  # fmt: skip
    show_found("burst", found, burst_table, burst_lines, store, is_json=json_output)
