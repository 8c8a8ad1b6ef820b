# SPDX-License-Identifier: Apache-2.0
"""`evenhand burst`: how close bursts may follow each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from evenhand.base.units import parse_count, parse_duration, parse_rate, parse_ratio
from evenhand.cli.common import FrameSizeOption, TestbedArgument, read_frame_size
from evenhand.cli.conditions import ConditionOptions
from evenhand.cli.limits import RetryOptions
from evenhand.cli.options import with_options
from evenhand.cli.tables import show_found
from evenhand.procedure import UP_TO_LINE_RATE, BurstGoal
from evenhand.report import burst_lines, burst_table
from evenhand.rig.testbed import TestbedLimits

EXAMPLE = "Example: evenhand burst lab.toml --burst 16,64 --run burst.evenhand"


@dataclass(frozen=True, slots=True, kw_only=True)
class BurstOptions:
    """Which bursts, and how their interval is searched."""

    burst: Annotated[
        str,
        typer.Option("--burst", metavar="FRAMES,...", help="Frames of a burst; each is searched for itself."),
    ] = "16,64,256,1024"
    rate: Annotated[
        str | None,
        typer.Option(
            "--rate",
            metavar="RATE",
            help="Within a burst, per direction; default: the line rate. Less is a deviation.",
        ),
    ] = None
    duration: Annotated[
        str, typer.Option("--duration", metavar="TIME", help="Of the trials of a search.")
    ] = "5s"
    final_duration: Annotated[
        str, typer.Option("--final-duration", metavar="TIME", help="Of the trial that confirms its result.")
    ] = "60s"
    precision: Annotated[
        str, typer.Option("--precision", metavar="RATIO", help="Width at which the search stops.")
    ] = "0.5%"

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
    frame_size: FrameSizeOption = None,
    goal: BurstOptions,
    retries: RetryOptions,
    conditions: ConditionOptions,
) -> None:
    """Find the smallest interval between bursts that loses nothing (RFC 2544 section 21), for bursts of 16,
    64, 256 and 1024 frames."""
    given = conditions.read(testbed)
    size, note = read_frame_size(given.plan, frame_size)
    goal.read(retries, TestbedLimits())  # what is wrong with it is told before the file is read
    setup = given.read_setup()
    chosen = goal.read(retries, setup.testbed.limits)
    if goal.rate is not None:
        given.check_rate(setup, chosen.rate_fps, [size], where="--rate")
    with given.open("burst", setup, [note], goal=chosen) as (bed, store, _):
        found = bed.burst(goal=chosen, **given.of(setup, frame_size=size))
    show_found("burst", found, burst_table, burst_lines, store, is_json=conditions.json_output)
