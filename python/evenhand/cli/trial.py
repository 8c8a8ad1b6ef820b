# SPDX-License-Identifier: Apache-2.0
"""`evenhand trial`: one single trial, shown in full."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from evenhand.cli.common import (
    DEFAULT_SEED,
    EngineOption,
    FramesOption,
    HostNameOption,
    JsonOption,
    LossRatioOption,
    OneWayOption,
    SeedOption,
    TestbedArgument,
    err,
    open_run,
    out,
    read_directions,
    read_frames,
    warn_about,
    write_json,
)
from evenhand.cli.learning import LearningOptions
from evenhand.cli.limits import LimitOptions
from evenhand.cli.options import PlanOptions, with_options
from evenhand.cli.waits import WaitOptions
from evenhand.errors import RequestError
from evenhand.procedure import OpenTestbed, limits_of, read_setup
from evenhand.progress import ProgressDisplay
from evenhand.report import trial_report
from evenhand.testbed import check_rate
from evenhand.units import parse_duration, parse_rate, parse_ratio

EXAMPLE = "Example: evenhand trial lab.toml --rate 500kfps --duration 10s"


@with_options
def trial(
    testbed: TestbedArgument,
    rate: Annotated[str, typer.Option("--rate", metavar="RATE", help="Intended load per direction.")],
    duration: Annotated[str, typer.Option("--duration", metavar="TIME", help="Of the sending phase.")] = "60s",
    *,
    plan: PlanOptions,
    frame_size: FramesOption = None,
    loss_ratio: LossRatioOption = "0",
    one_way: OneWayOption = False,
    learning: LearningOptions,
    seed: SeedOption = DEFAULT_SEED,
    waits: WaitOptions,
    limits: LimitOptions,
    run: Annotated[
        Path | None, typer.Option("--run", metavar="FILE", help="Store the trial here (must not exist). Default: nowhere.")
    ] = None,
    host_name: HostNameOption = False,
    engine: EngineOption = None,
    json_output: JsonOption = False,
) -> None:
    """Make one trial and show all that it counted. Loss is a result: FAIL and INVALID end with exit code 0."""
    address_plan = plan.read()
    warn_about(address_plan)
    choice = learning.read(address_plan)
    size, note = read_frames(address_plan, frame_size)
    rate_fps = parse_rate(rate, where="--rate")
    duration_s = parse_duration(duration, where="--duration")
    if duration_s <= 0:
        raise RequestError(f"{duration!r} must be above 0", where="--duration", next_step="Write a duration like 60s.")
    largest_loss_ratio = parse_ratio(loss_ratio, where="--loss-ratio")
    given_limits = limits.read()
    chosen_waits = waits.read()
    setup = read_setup(testbed, address_plan)
    check_rate(rate_fps, setup.testbed.max_theoretical_fps(size), line_rate_bps=None, frame_size=size, where="--rate")
    with ExitStack() as stack:
        store = None if run is None else stack.enter_context(open_run(run, host_name=host_name))
        progress = stack.enter_context(ProgressDisplay(err()))
        if note is not None:
            progress.say(note)
        bed = OpenTestbed(setup=setup, engine=engine, recorder=store, on_event=progress.on_event)
        measured = bed.trial(
            rate_fps=rate_fps, duration_s=duration_s, plan=address_plan, frame_size=size, directions=read_directions(one_way=one_way),
            seed=seed, waits=chosen_waits, host_macs=learning.host_macs.value, learning=choice,
            limits=limits_of(setup.testbed.limits, loss_ratio=largest_loss_ratio, given=given_limits),
        )  # fmt: skip
    if json_output:
        write_json({"command": "trial", "run": None if run is None else str(run), **measured.to_document()})
    else:
        out().print(trial_report(measured.trial, measured.profile))
