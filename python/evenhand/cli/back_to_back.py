# SPDX-License-Identifier: Apache-2.0
"""`evenhand back-to-back`: the longest burst that the DUT forwards without loss, and the buffer time that it
implies."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from evenhand.base.errors import RequestError
from evenhand.base.units import parse_count, parse_duration, parse_rate, parse_ratio
from evenhand.cli.common import FrameSizesOption, TestbedArgument, read_frame_sizes
from evenhand.cli.conditions import ConditionOptions
from evenhand.cli.delay import read_throughput
from evenhand.cli.limits import RetryOptions
from evenhand.cli.options import with_options
from evenhand.cli.tables import show_found
from evenhand.procedure import UP_TO_LINE_RATE, BackToBackGoal, check_whole_sizes
from evenhand.procedure.back_to_back_model import REPETITIONS
from evenhand.report import back_to_back_lines, back_to_back_table
from evenhand.rig.testbed import TestbedLimits
from evenhand.search import ThroughputGoal

EXAMPLE = "Example: evenhand back-to-back lab.toml --frame-size 64,128 --max-burst 5s --run bursts.evenhand"
_PANEL = "Throughput, which is measured first"


@dataclass(frozen=True, slots=True, kw_only=True)
class BackToBackOptions:
    """How long bursts may be, how exact the search is, how often it is made."""

    rate: Annotated[
        str | None,
        typer.Option(
            "--rate",
            metavar="RATE",
            help="Within the burst, per direction; default: the line rate. Less is a deviation.",
        ),
    ] = None
    max_burst: Annotated[
        str, typer.Option("--max-burst", metavar="TIME", help="Longest burst that is tried; at most 30s.")
    ] = "2s"
    step: Annotated[
        str,
        typer.Option(
            "--step", metavar="FRAMES", help="The search ends when its bounds are no further apart."
        ),
    ] = "1"
    repetitions: Annotated[
        int, typer.Option("--repetitions", metavar="N", help="Searches for each frame size.")
    ] = REPETITIONS
    loss_verification: Annotated[
        int,
        typer.Option(
            "--loss-verification",
            metavar="N",
            min=0,
            help="Send a lossy burst again up to N times (ETSI TST009).",
        ),
    ] = 0
    actual_rate: Annotated[
        str | None,
        typer.Option(
            "--actual-rate", metavar="RATE", help="Tell the corrected buffer time for this rate as well."
        ),
    ] = None
    throughput: Annotated[
        str | None,
        typer.Option(
            "--throughput",
            metavar="RATE",
            help="Do not measure it; of one frame size. A deviation.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    after: Annotated[
        Path | None,
        typer.Option(
            "--after",
            metavar="RUN",
            help="Do not measure it: this run file has it, of the same testbed and plan.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    duration: Annotated[
        str,
        typer.Option(
            "--duration", metavar="TIME", help="Of the trials of its search.", rich_help_panel=_PANEL
        ),
    ] = "5s"
    final_duration: Annotated[
        str,
        typer.Option(
            "--final-duration", metavar="TIME", help="Of the trial that confirms it.", rich_help_panel=_PANEL
        ),
    ] = "60s"
    precision: Annotated[
        str,
        typer.Option(
            "--precision", metavar="RATIO", help="Width at which its search stops.", rich_help_panel=_PANEL
        ),
    ] = "0.5%"

    def read(self, retries: RetryOptions, testbed: TestbedLimits) -> BackToBackGoal:
        """RequestError names the option."""
        repeated = retries.read(testbed)
        return BackToBackGoal(
            rate_fps=UP_TO_LINE_RATE if self.rate is None else parse_rate(self.rate, where="--rate"),
            max_burst_s=parse_duration(self.max_burst, where="--max-burst"),
            step_frames=parse_count(self.step, where="--step"),
            repetitions=self.repetitions,
            loss_verifications=self.loss_verification,
            throughput_fps=None
            if self.throughput is None
            else parse_rate(self.throughput, where="--throughput"),
            throughput_goal=ThroughputGoal(
                max_fps=UP_TO_LINE_RATE,
                duration_s=parse_duration(self.duration, where="--duration"),
                final_duration_s=parse_duration(self.final_duration, where="--final-duration"),
                precision=parse_ratio(self.precision, where="--precision"),
                **repeated,
            ),
            actual_fps=None
            if self.actual_rate is None
            else parse_rate(self.actual_rate, where="--actual-rate"),
            **repeated,
        )

    def check(self, sizes: int) -> None:
        """RequestError for options that do not go together."""
        if self.throughput is None:
            return
        if self.after is not None:
            raise RequestError(
                "two throughputs", where="--throughput, --after", next_step="Give one of them."
            )
        if sizes > 1:
            raise RequestError(
                f"one throughput for {sizes} frame sizes",
                where="--throughput",
                next_step="Use --after, or one --frame-size, or leave it out.",
            )


@with_options
def back_to_back(
    testbed: TestbedArgument,
    *,
    frame_size: FrameSizesOption = None,
    goal: BackToBackOptions,
    retries: RetryOptions,
    conditions: ConditionOptions,
) -> None:
    """Find the longest burst without loss (RFC 9004), fifty times over, and the buffer time that it implies.

    Throughput is measured first, with the same flows; frame sizes that the DUT forwards at the line rate are
    skipped.
    """
    given = conditions.read(testbed)
    refuse_mixed_sizes(frame_size)
    any_sizes, notes = read_frame_sizes(given.plan, frame_size)
    sizes = check_whole_sizes(any_sizes)
    goal.check(len(sizes))
    goal.read(retries, TestbedLimits())  # what is wrong with it is told before the file is read
    setup = given.read_setup()
    chosen = goal.read(retries, setup.testbed.limits)
    if goal.rate is not None:
        given.check_rate(setup, chosen.rate_fps, sizes, where="--rate")
    throughputs = None
    if goal.after is not None:
        found = {size: read_throughput(goal.after, setup, given, frame_size=size) for size in sizes}
        throughputs = {size: (rate_fps, goal.after.name) for size, rate_fps in found.items()}
    with given.open("back-to-back", setup, notes, goal=chosen, times=len(sizes)) as (bed, store, _):
        table = bed.back_to_back(sizes, goal=chosen, throughputs=throughputs, **given.of(setup))
    show_found(
        "back-to-back", table, back_to_back_table, back_to_back_lines, store, is_json=conditions.json_output
    )


def refuse_mixed_sizes(texts: list[str] | None) -> None:
    """RequestError: a burst has frames of one size (R6985-02)."""
    for text in texts or []:
        if "imix" in text.lower():
            raise RequestError(
                f"{text!r}: a mix of frame sizes is not used in back-to-back tests (RFC 9004, 3)",
                where="--frame-size",
                next_step="Name sizes, such as 64,128,512: each is measured for itself.",
            )
