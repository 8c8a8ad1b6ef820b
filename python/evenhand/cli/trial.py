# SPDX-License-Identifier: Apache-2.0
"""`evenhand trial`: one single trial, shown in full."""

from __future__ import annotations

from typing import Annotated

import typer

from evenhand.base.errors import RequestError
from evenhand.base.option import DURATION
from evenhand.base.rates import ANY_LINE, depends_on_line
from evenhand.base.units import parse_duration, parse_ratio
from evenhand.cli.common import TestbedArgument, out, with_options, write_json
from evenhand.cli.conditions import ConditionOptions
from evenhand.procedure import Conditions
from evenhand.procedure.conditions import check_conditions
from evenhand.procedure.expected_time import expected_of_trial
from evenhand.procedure.single_trial import TRIAL_S
from evenhand.procedure.throughput import NO_LOSS, LossRatioOption
from evenhand.report.trial import trial_report
from evenhand.spec.frames import FramesOption, read_frames
from evenhand.spec.rates import read_rate
from evenhand.trial import Load

EXAMPLE = "Example: evenhand trial lab.toml --rate 500kfps --duration 10s"
RATE_HELP = (
    "Intended load per direction: frames (500kfps), a share of the sending port's line rate (50%), or bits on"
    " the line with preamble and gap (2.5Gbit/s). 1Mfps/250kfps: forward and reverse."
)


@with_options
def trial(
    testbed: TestbedArgument,
    rate: Annotated[str, typer.Option("--rate", metavar="RATE", help=RATE_HELP)],
    duration: Annotated[
        str, typer.Option("--duration", metavar="TIME", help="Duration of the sending phase.")
    ] = DURATION.write(TRIAL_S),
    *,
    frame_size: FramesOption = None,
    loss_ratio: LossRatioOption = NO_LOSS,
    conditions: ConditionOptions,
) -> None:
    """Make one trial and show everything that was counted. Loss is a result: the exit code is 0 for FAIL and
    INVALID as well."""
    given = conditions.read(testbed)
    size, note = read_frames(given.plan, frame_size)
    read_rate(rate, conditions.rates, ANY_LINE, where="--rate")
    duration_s = parse_duration(duration, where="--duration")
    if duration_s <= 0:
        raise RequestError(
            f"{duration!r} must be greater than 0",
            code="cli.out-of-range",
            where="--duration",
            next_step="Write a duration such as 60s.",
        )
    largest_loss_ratio = parse_ratio(loss_ratio, where="--loss-ratio")
    setup = given.read_setup()
    texts = [rate, *conditions.rates.texts]
    line = given.line(setup, size, texts) if any(map(depends_on_line, texts)) else ANY_LINE
    rate_fps, rates = read_rate(rate, conditions.rates, line, where="--rate")
    asked = Conditions(
        **given.conditions(setup.testbed.limits, rates=rates, loss_ratio=largest_loss_ratio),
        frame_size=size,
        seed=conditions.seed,
    )
    check_conditions(asked)
    given.check_rate(setup, rate_fps, [size], rates=rates, where="--rate")
    load = Load(rate_fps=rate_fps, duration_s=duration_s)
    expected = expected_of_trial(load, asked["waits"].total_s, learning_s=given.learning_s)
    with given.open("trial", setup, [note], expected=expected) as (bed, store, _):
        measured = bed.trial(rate_fps=rate_fps, duration_s=duration_s, **asked)
    if conditions.json_output:
        write_json(
            {"command": "trial", "run": None if store is None else str(store.path), **measured.to_document()}
        )
        return
    out().print(trial_report(measured.trial, measured.profile))
    if store is not None:
        out().print(f"Stored in {store.path}.", markup=False)
