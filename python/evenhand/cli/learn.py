# SPDX-License-Identifier: Apache-2.0
"""`evenhand learn`: does the DUT reach every host? Measures nothing."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Annotated

import typer

from evenhand.base.errors import HostError, error_part
from evenhand.base.option import DURATION
from evenhand.base.rates import ANY_LINE, depends_on_line, in_frames
from evenhand.base.units import format_rate, parse_duration
from evenhand.cli.common import (
    EngineOption,
    JsonOption,
    TestbedArgument,
    out,
    warn_about,
    with_options,
    write_json,
)
from evenhand.cli.error_output import reported
from evenhand.cli.run_options import ProgressOption, progress_display
from evenhand.procedure import Conditions, OpenTestbed, check_reachable, open_tester
from evenhand.procedure.expected_time import OPENING_S, ExpectedTime, learning_s
from evenhand.report.learning import learning_lines
from evenhand.rig import plan_defaults_of, read_setup
from evenhand.spec.common_options import (
    DEFAULT_SEED,
    AllowUnreachableOption,
    HostMacsOption,
    SeedOption,
    check_host_macs,
)
from evenhand.spec.plan import CountOptions, DirectionOption, PlanOption, read_directions
from evenhand.trial import DEFAULT_ROUNDS, DEFAULT_WAIT_S, learn

EXAMPLE = "Example: evenhand learn lab.toml --plan direct-v4-net16"
MOST_ROUNDS = 1000


@with_options
def learn_hosts(
    testbed: TestbedArgument,
    *,
    plan: PlanOption = None,
    counts: CountOptions,
    host_macs: HostMacsOption = "port",
    rate: Annotated[
        str, typer.Option("--rate", metavar="RATE", help="Rate of the learning frames, per direction.")
    ] = "20kfps",
    rounds: Annotated[
        int, typer.Option("--rounds", metavar="N", min=1, max=MOST_ROUNDS, help="Maximum attempts per host.")
    ] = DEFAULT_ROUNDS,
    wait: Annotated[
        str, typer.Option("--wait", metavar="TIME", help="Wait after the last frame of each round.")
    ] = DURATION.write(DEFAULT_WAIT_S),
    allow_unreachable: AllowUnreachableOption = False,
    direction: DirectionOption = "both",
    seed: SeedOption = DEFAULT_SEED,
    engine: EngineOption = None,
    progress_form: ProgressOption = "auto",
    json_output: JsonOption = False,
) -> None:
    """Send a frame to every host until each has come back. Hosts whose frame has not come back are named,
    with exit code 3.

    In direct plans this makes the DUT resolve each host (throughput and trial do so themselves, before the
    first trial). In gateway plans it shows whether the DUT's routes lead to every host.
    """
    defaults = plan_defaults_of(testbed)
    name = plan or defaults.plan
    address_plan = counts.or_of(defaults, name).read(name, where="--plan")
    warn_about(address_plan)
    check_host_macs(host_macs, address_plan)
    wait_s = parse_duration(wait, where="--wait")
    in_frames(rate, ANY_LINE, where="--rate")
    setup = read_setup(testbed, address_plan)
    directions = read_directions(direction)
    size = address_plan.smallest_frame_size
    of_ports = ANY_LINE
    if depends_on_line(rate):
        sent = Conditions(plan=address_plan, frame_size=size, directions=directions)
        of_ports = OpenTestbed(setup=setup, engine=engine).line(sent, [rate])
    rate_fps = in_frames(rate, of_ports, where="--rate")
    expected_s = OPENING_S + learning_s(address_plan, rate_fps=rate_fps, wait_s=wait_s)
    with ExitStack() as stack:
        progress = stack.enter_context(progress_display(progress_form))
        progress.expect(
            ExpectedTime(
                seconds=expected_s,
                parts=(f"one round at {format_rate(rate_fps)} if every host is reached; at most {rounds}"),
                assumes="",
            )
        )
        opened = open_tester(
            setup,
            address_plan,
            frame_size=size,
            seed=seed,
            directions=directions,
            engine=engine,
            host_macs=host_macs,
        )
        tester = stack.enter_context(opened)
        result = learn(
            tester.session,
            rate_fps=rate_fps,
            rounds=rounds,
            wait_s=wait_s,
            directions=directions,
            on_progress=progress.on_event,
        )
        dut = setup.own_facts()
    unreachable = None
    if not allow_unreachable:
        try:
            check_reachable(
                result, next_step="Check the DUT's routes, its neighbour table, and the limits of that table."
            )
        except HostError as error:
            unreachable = reported(error)
    if json_output:
        document = {
            "command": "learn",
            "run": None,
            **tester.profile.to_document(),
            "deviations": [],
            "learning": result.to_document(),
        }
        write_json({**document, "dut": dut, "error": error_part(unreachable)})
    else:
        for line in [*learning_lines(result), f"Plan: {address_plan.label}. {tester.profile.link_line}"]:
            out().print(line, markup=False)
    if unreachable is not None:
        raise unreachable
