# SPDX-License-Identifier: Apache-2.0
"""`evenhand throughput`: the highest load that the DUT forwards without loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from evenhand.base.errors import RequestError
from evenhand.base.units import parse_duration, parse_rate, parse_ratio
from evenhand.cli.common import (
    FrameSizesOption,
    LossRatioOption,
    TestbedArgument,
    out,
    read_frame_sizes,
    write_json,
)
from evenhand.cli.conditions import ConditionOptions
from evenhand.cli.limits import RetryOptions
from evenhand.cli.options import RepetitionOptions, with_options
from evenhand.cli.searches import SearchOptions
from evenhand.cli.single_pair import SinglePairOptions, read_single_pair
from evenhand.cli.tables import show_found
from evenhand.plan import Traffic
from evenhand.procedure import UP_TO_LINE_RATE, Conditions, SinglePair
from evenhand.procedure.throughput import too_few
from evenhand.report import search_lines, search_tables, table_lines, throughput_sizes_table
from evenhand.rig.testbed import TestbedLimits
from evenhand.search import Role, ThroughputGoal

EXAMPLE = (
    "Example: evenhand throughput lab.toml --plan gateway-v6 --maximum-rate 2Mfps --loss-ratio 0.1%"
    " --run first.evenhand"
)

ONE_PAIR = "throughput, one address pair"


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalOptions:
    """Where to search, how long the trials are, and when to stop."""

    maximum_rate: Annotated[
        str | None,
        typer.Option(
            "--maximum-rate",
            metavar="RATE",
            help="Per direction. It is tried first. Default: the line rate, or the tester's own ceiling.",
        ),
    ] = None
    minimum_rate: Annotated[
        str | None,
        typer.Option("--minimum-rate", metavar="RATE", help="Default: a thousandth of the maximum."),
    ] = None
    duration: Annotated[
        str, typer.Option("--duration", metavar="TIME", help="Of the trials of the search.")
    ] = "5s"
    final_duration: Annotated[
        str, typer.Option("--final-duration", metavar="TIME", help="Of the trial that confirms the result.")
    ] = "60s"
    precision: Annotated[
        str, typer.Option("--precision", metavar="RATIO", help="Width at which the search stops.")
    ] = "0.5%"
    loss_verification: Annotated[
        int,
        typer.Option(
            "--loss-verification",
            metavar="N",
            min=0,
            help="Repeat a lossy trial up to N times before it counts (ETSI TST009).",
        ),
    ] = 0
    loss_ratio: LossRatioOption = "0"

    def read(self, retries: RetryOptions, testbed: TestbedLimits) -> ThroughputGoal:
        """RequestError names the option."""
        return ThroughputGoal(
            max_fps=UP_TO_LINE_RATE
            if self.maximum_rate is None
            else parse_rate(self.maximum_rate, where="--maximum-rate"),
            min_fps=None
            if self.minimum_rate is None
            else parse_rate(self.minimum_rate, where="--minimum-rate"),
            duration_s=parse_duration(self.duration, where="--duration"),
            final_duration_s=parse_duration(self.final_duration, where="--final-duration"),
            precision=parse_ratio(self.precision, where="--precision"),
            loss_ratio=parse_ratio(self.loss_ratio, where="--loss-ratio"),
            loss_verifications=self.loss_verification,
            **retries.read(testbed),
        )


@with_options
def throughput(
    testbed: TestbedArgument,
    *,
    frame_size: FrameSizesOption = None,
    goal: GoalOptions,
    search: SearchOptions,
    repetition: RepetitionOptions,
    single_pair: SinglePairOptions,
    retries: RetryOptions,
    conditions: ConditionOptions,
) -> None:
    """Find the throughput (RFC 2544 section 26.1) by the search of choice; loads are per direction."""
    given = conditions.read(testbed)
    single_pair.check(given.plan)
    sizes, notes = read_frame_sizes(given.plan, frame_size)
    repetitions = repetition.read()
    if single_pair.after is not None and len(sizes) > 1:
        raise RequestError(
            f"a run to compare with has one frame size, and here are {len(sizes)}",
            where="--after, --frame-size",
            next_step="Use --single-pair-first, or one size.",
        )
    search.choose(
        goal.read(retries, TestbedLimits())
    )  # what is wrong with it is told before the file is read
    setup = given.read_setup()
    chosen = search.choose(goal.read(retries, setup.testbed.limits))
    if goal.maximum_rate is not None:
        given.check_rate(setup, chosen.max_fps, sizes, where="--maximum-rate")
    before = None
    if single_pair.after is not None:
        before = read_single_pair(
            single_pair.after,
            setup,
            given.plan,
            frame_size=sizes[0],
            directions=given.conditions["directions"],
            loss_ratio=chosen.loss_ratio,
        )
    times = len(sizes) * (repetitions.count + single_pair.single_pair_first)
    with given.open("throughput", setup, notes, goal=chosen, times=times) as (bed, store, progress):
        if len(sizes) > 1 or repetitions.count > 1:
            same = Conditions(**given.of(setup, loss_ratio=chosen.loss_ratio), single_pair=before)
            first_too = single_pair.single_pair_first
            table = bed.throughput_table(
                sizes, repetitions=repetitions, goal=chosen, single_pair_first=first_too, **same
            )
            show_found(
                "throughput",
                table,
                throughput_sizes_table,
                table_lines,
                store,
                is_json=conditions.json_output,
            )
            return
        same = given.of(setup, frame_size=sizes[0], loss_ratio=chosen.loss_ratio)
        first = None
        if single_pair.single_pair_first:
            progress.say(f"1 of 2: {given.plan.label}, one address pair.", style="bold")
            one_pair: Conditions = {**same, "plan": given.plan.single_pair()}
            first = bed.throughput(goal=chosen, name=ONE_PAIR, role=Role.SINGLE_PAIR, **one_pair)
            before = SinglePair.of(first.search, first.profile)
            progress.say(
                f"2 of 2: {Traffic(plan=given.plan, directions=same['directions']).addresses}.", style="bold"
            )
        found = bed.throughput(goal=chosen, **Conditions(**same, single_pair=before))
    if conditions.json_output:
        document = {
            "command": "throughput",
            "run": None if store is None else str(store.path),
            **found.to_document(),
        }
        if first is not None:
            document["first_search"] = first.to_document()
        write_json(document)
        return
    console = out()
    if first is not None:
        for part in search_tables(first.search, title="Trials with one address pair"):
            console.print(part)
            console.print()
        for line in search_lines(first.search, first.profile):
            console.print(line, markup=False)
        console.print()
    for part in search_tables(found.search):
        console.print(part)
        console.print()
    for line in search_lines(found.search, found.profile):
        console.print(line, markup=False)
    for deviation in too_few(1):
        console.print(f"Deviation from {deviation.requirement}: {deviation.text}", markup=False)
    if store is not None:
        console.print(f"Stored in {store.path}.", markup=False)
