# SPDX-License-Identifier: Apache-2.0
"""`evenhand loss`: how many frames the DUT loses at which load."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import Annotated

import typer

from evenhand.cli.common import (
    DEFAULT_SEED,
    EngineOption,
    FrameSizesOption,
    JsonOption,
    OneWayOption,
    SeedOption,
    TestbedArgument,
    err,
    read_directions,
    read_frame_sizes,
    warn_about,
)
from evenhand.cli.learning import LearningOptions
from evenhand.cli.limits import LimitOptions, RetryOptions
from evenhand.cli.options import PlanOptions, RepetitionOptions, RunOptions, with_options
from evenhand.cli.tables import show_found
from evenhand.cli.waits import WaitOptions
from evenhand.procedure import UP_TO_LINE_RATE, Conditions, LossGoal, OpenTestbed, limits_of, read_setup
from evenhand.progress import ProgressDisplay
from evenhand.report import loss_lines, loss_sizes_table, loss_table, table_lines
from evenhand.testbed import TestbedLimits, check_rate
from evenhand.units import parse_duration, parse_rate, parse_ratio

EXAMPLE = "Example: evenhand loss lab.toml --maximum-rate 1Mfps --step 5% --run loss.evenhand"


@dataclass(frozen=True, slots=True, kw_only=True)
class LossOptions:
    """Which loads, and how long the trials are."""

    maximum_rate: Annotated[
        str | None, typer.Option("--maximum-rate", metavar="RATE", help="The load of 100 %, per direction; default: the line rate.")
    ] = None
    step: Annotated[str, typer.Option("--step", metavar="RATIO", help="Of the maximum, by which the load is lowered; at most 10%.")] = "10%"
    duration: Annotated[str, typer.Option("--duration", metavar="TIME", help="Of each trial.")] = "60s"

    def read(self, retries: RetryOptions, testbed: TestbedLimits) -> LossGoal:
        """RequestError names the option."""
        return LossGoal(
            max_fps=UP_TO_LINE_RATE if self.maximum_rate is None else parse_rate(self.maximum_rate, where="--maximum-rate"),
            step=parse_ratio(self.step, where="--step"),
            duration_s=parse_duration(self.duration, where="--duration"),
            **retries.read(testbed),
        )


@with_options
def loss(
    testbed: TestbedArgument,
    *,
    plan: PlanOptions,
    frame_size: FrameSizesOption = None,
    goal: LossOptions,
    repetition: RepetitionOptions,
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
    """Find the frame loss rate (RFC 2544 section 26.3) from the maximum down, until two loads in a row lose nothing.

    A load that the tester itself does not keep is named, and not charged to the DUT.
    """
    address_plan = plan.read()
    warn_about(address_plan)
    choice = learning.read(address_plan)
    sizes, notes = read_frame_sizes(address_plan, frame_size)
    repetitions = repetition.read()
    is_table = len(sizes) > 1 or repetitions.count > 1
    chosen_waits, given_limits = waits.read(), limits.read()
    goal.read(retries, TestbedLimits())  # what is wrong with it is told before the file is read
    setup = read_setup(testbed, address_plan)
    chosen = goal.read(retries, setup.testbed.limits)
    if goal.maximum_rate is not None:
        for size in sizes:
            limit = setup.testbed.max_theoretical_fps(size)
            check_rate(chosen.max_fps, limit, line_rate_bps=None, frame_size=size, where="--maximum-rate")
    with ExitStack() as stack:
        store = stack.enter_context(run.open("loss"))
        progress = stack.enter_context(ProgressDisplay(err()))
        for note in notes:
            progress.say(note)
        bed = OpenTestbed(setup=setup, engine=engine, recorder=store, on_event=progress.on_event)
        conditions = Conditions(
            plan=address_plan, frame_size=sizes[0], directions=read_directions(one_way=one_way), seed=seed, waits=chosen_waits,
            limits=limits_of(setup.testbed.limits, given=given_limits), host_macs=learning.host_macs.value, learning=choice,
        )  # fmt: skip
        table, found = None, None
        if is_table:
            table = bed.loss_table(sizes, repetitions=repetitions, goal=chosen, **conditions)
        else:
            found = bed.loss(goal=chosen, **conditions)
    if table is not None:
        show_found("loss", table, loss_sizes_table, table_lines, store, is_json=json_output)
        return
    assert found is not None
    show_found("loss", found, loss_table, loss_lines, store, is_json=json_output)
