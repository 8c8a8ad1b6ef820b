# SPDX-License-Identifier: Apache-2.0
"""`evenhand loss`: how many frames the DUT loses at which load."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from evenhand.base.units import parse_duration, parse_rate, parse_ratio
from evenhand.cli.common import FrameSizesOption, TestbedArgument, read_frame_sizes
from evenhand.cli.conditions import ConditionOptions
from evenhand.cli.limits import RetryOptions
from evenhand.cli.options import RepetitionOptions, with_options
from evenhand.cli.tables import show_found
from evenhand.procedure import UP_TO_LINE_RATE, LossGoal
from evenhand.report import loss_lines, loss_sizes_table, loss_table, table_lines
from evenhand.rig.testbed import TestbedLimits

EXAMPLE = "Example: evenhand loss lab.toml --maximum-rate 1Mfps --step 5% --run loss.evenhand"


@dataclass(frozen=True, slots=True, kw_only=True)
class LossOptions:
    """Which loads, and how long the trials are."""

    maximum_rate: Annotated[
        str | None,
        typer.Option(
            "--maximum-rate", metavar="RATE", help="The load of 100 %, per direction; default: the line rate."
        ),
    ] = None
    step: Annotated[
        str,
        typer.Option(
            "--step", metavar="RATIO", help="Of the maximum, by which the load is lowered; at most 10%."
        ),
    ] = "10%"
    duration: Annotated[str, typer.Option("--duration", metavar="TIME", help="Of each trial.")] = "60s"

    def read(self, retries: RetryOptions, testbed: TestbedLimits) -> LossGoal:
        """RequestError names the option."""
        return LossGoal(
            max_fps=UP_TO_LINE_RATE
            if self.maximum_rate is None
            else parse_rate(self.maximum_rate, where="--maximum-rate"),
            step=parse_ratio(self.step, where="--step"),
            duration_s=parse_duration(self.duration, where="--duration"),
            **retries.read(testbed),
        )


@with_options
def loss(
    testbed: TestbedArgument,
    *,
    frame_size: FrameSizesOption = None,
    goal: LossOptions,
    repetition: RepetitionOptions,
    retries: RetryOptions,
    conditions: ConditionOptions,
) -> None:
    """Find the frame loss rate (RFC 2544 section 26.3) from the maximum down, until two loads in a row lose
    nothing.

    A load that the tester itself does not keep is named, and not charged to the DUT.
    """
    given = conditions.read(testbed)
    sizes, notes = read_frame_sizes(given.plan, frame_size)
    repetitions = repetition.read()
    goal.read(retries, TestbedLimits())  # what is wrong with it is told before the file is read
    setup = given.read_setup()
    chosen = goal.read(retries, setup.testbed.limits)
    if goal.maximum_rate is not None:
        given.check_rate(setup, chosen.max_fps, sizes, where="--maximum-rate")
    table, found = None, None
    with given.open("loss", setup, notes, goal=chosen, times=len(sizes) * repetitions.count) as (
        bed,
        store,
        _,
    ):
        if len(sizes) > 1 or repetitions.count > 1:
            table = bed.loss_table(sizes, repetitions=repetitions, goal=chosen, **given.of(setup))
        else:
            found = bed.loss(goal=chosen, **given.of(setup, frame_size=sizes[0]))
    if table is not None:
        show_found("loss", table, loss_sizes_table, table_lines, store, is_json=conditions.json_output)
        return
    assert found is not None
    show_found("loss", found, loss_table, loss_lines, store, is_json=conditions.json_output)
