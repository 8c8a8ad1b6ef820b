# SPDX-License-Identifier: Apache-2.0
"""`evenhand recovery`: for how long the DUT goes on losing frames after an overload."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from evenhand.base.errors import RequestError
from evenhand.base.units import parse_duration, parse_rate
from evenhand.cli.common import FrameSizeOption, TestbedArgument, read_frame_size
from evenhand.cli.conditions import ConditionOptions
from evenhand.cli.delay import read_throughput
from evenhand.cli.limits import RetryOptions
from evenhand.cli.options import with_options
from evenhand.cli.tables import show_found
from evenhand.procedure import RecoveryGoal
from evenhand.procedure.recovery import REPETITIONS
from evenhand.report import recovery_lines, recovery_table
from evenhand.rig.testbed import TestbedLimits

EXAMPLE = "Example: evenhand recovery lab.toml --after throughput.evenhand --run recovery.evenhand"


@dataclass(frozen=True, slots=True, kw_only=True)
class OverloadOptions:
    """Which overload, for how long, how often."""

    throughput: Annotated[
        str | None,
        typer.Option(
            "--throughput",
            metavar="RATE",
            help="Per direction, of which 110 % are the overload. A deviation.",
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
    duration: Annotated[str, typer.Option("--duration", metavar="TIME", help="Of the overload.")] = "60s"
    observe: Annotated[
        str, typer.Option("--observe", metavar="TIME", help="Of the load that follows, half of the overload.")
    ] = "60s"
    repetitions: Annotated[int, typer.Option("--repetitions", metavar="N", help="Trials that count.")] = (
        REPETITIONS
    )

    def read(self, retries: RetryOptions, testbed: TestbedLimits, measured_fps: float | None) -> RecoveryGoal:
        """RequestError names the option."""
        if (self.throughput is None) == (self.after is None):
            raise RequestError(
                "which throughput?" if self.after is None else "two throughputs",
                where="--throughput, --after",
                next_step="Name a run file that has it with --after, or write a rate like --throughput"
                " 500kfps.",
            )
        rate_fps = (
            measured_fps if self.throughput is None else parse_rate(self.throughput, where="--throughput")
        )
        assert rate_fps is not None
        return RecoveryGoal(
            throughput_fps=rate_fps,
            throughput_source=None if self.after is None else self.after.name,
            duration_s=parse_duration(self.duration, where="--duration"),
            observe_s=parse_duration(self.observe, where="--observe"),
            repetitions=self.repetitions,
            **retries.read(testbed),
        )


@with_options
def recovery(
    testbed: TestbedArgument,
    *,
    frame_size: FrameSizeOption = None,
    goal: OverloadOptions,
    retries: RetryOptions,
    conditions: ConditionOptions,
) -> None:
    """Measure system recovery (RFC 2544 section 26.5): 110 % of the throughput, then half of that; how long
    are frames still lost?"""
    given = conditions.read(testbed)
    size, note = read_frame_size(given.plan, frame_size)
    goal.read(retries, TestbedLimits(), 1e6)  # what is wrong with it is told before the files are read
    setup = given.read_setup()
    measured_fps = None if goal.after is None else read_throughput(goal.after, setup, given, frame_size=size)
    chosen = goal.read(retries, setup.testbed.limits, measured_fps)
    given.check_rate(setup, chosen.throughput_fps, [size], where="--throughput")
    with given.open("recovery", setup, [note], goal=chosen) as (bed, store, _):
        found = bed.recovery(goal=chosen, **given.of(setup, frame_size=size))
    show_found("recovery", found, recovery_table, recovery_lines, store, is_json=conditions.json_output)
