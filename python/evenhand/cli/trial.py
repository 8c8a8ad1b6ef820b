# SPDX-License-Identifier: Apache-2.0
"""`evenhand trial`: one single trial, shown in full."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from evenhand.cli.common import (
    DEFAULT_MODE,
    DEFAULT_SEED,
    CommonNetworkOption,
    DestinationPortsOption,
    EngineOption,
    FixedSourceNetworkOption,
    FixedSourceOption,
    FrameSizeOption,
    HostModeOption,
    HostNameOption,
    HostsOption,
    JsonOption,
    LossRatioOption,
    NetworkModeOption,
    NetworksOption,
    OneWayOption,
    PlanOption,
    SeedOption,
    SourcePortsOption,
    TestbedArgument,
    choose_frame_size,
    err,
    open_run,
    out,
    read_plan,
    warn_about,
    write_json,
)
from evenhand.cli.learning import (
    AllowUnreachableOption,
    HostMacSet,
    HostMacsOption,
    LearningChoice,
    NoLearningOption,
    check_host_macs,
    learn_first,
    setup_details,
)
from evenhand.cli.limits import (
    LimitOptions,
    LongestOverdueOption,
    OfferedToleranceOption,
    OverdueAfterOption,
    OverdueToleranceOption,
    limits_of,
)
from evenhand.cli.setup import choose_maximum, engine_versions, open_tester, read_setup
from evenhand.cli.waits import LearningWait, ResidualWait, RestabilizeWait, RoutingWait, WaitSet, WaitsOption, read_waits
from evenhand.errors import RequestError
from evenhand.plan import Direction
from evenhand.progress import ProgressDisplay
from evenhand.report import trial_report
from evenhand.testbed import check_rate
from evenhand.trial import EngineMeasurer
from evenhand.units import format_duration, format_rate, parse_duration, parse_rate, parse_ratio

EXAMPLE = "Example: evenhand trial lab.toml --rate 500kfps --duration 10s"


def trial(
    testbed: TestbedArgument,
    rate: Annotated[str, typer.Option("--rate", metavar="RATE", help="Intended load per direction.")],
    duration: Annotated[str, typer.Option("--duration", metavar="TIME", help="Of the sending phase.")] = "60s",
    plan: PlanOption = "gateway-v4",
    hosts: HostsOption = None,
    networks: NetworksOption = None,
    host_mode: HostModeOption = DEFAULT_MODE,
    network_mode: NetworkModeOption = DEFAULT_MODE,
    fixed_source: FixedSourceOption = False,
    fixed_source_network: FixedSourceNetworkOption = False,
    common_network: CommonNetworkOption = False,
    source_ports: SourcePortsOption = None,
    destination_ports: DestinationPortsOption = None,
    frame_size: FrameSizeOption = None,
    loss_ratio: LossRatioOption = "0",
    one_way: OneWayOption = False,
    host_macs: HostMacsOption = HostMacSet.PORT,
    no_learning: NoLearningOption = False,
    allow_unreachable: AllowUnreachableOption = False,
    seed: SeedOption = DEFAULT_SEED,
    waits: WaitsOption = WaitSet.RFC,
    wait_after_routing: RoutingWait = None,
    wait_after_learning: LearningWait = None,
    wait_residual: ResidualWait = None,
    wait_restabilize: RestabilizeWait = None,
    offered_tolerance: OfferedToleranceOption = None,
    overdue_after: OverdueAfterOption = None,
    overdue_tolerance: OverdueToleranceOption = None,
    longest_overdue: LongestOverdueOption = None,
    run: Annotated[
        Path | None, typer.Option("--run", metavar="FILE", help="Store the trial here (must not exist). Default: nowhere.")
    ] = None,
    host_name: HostNameOption = False,
    engine: EngineOption = None,
    json_output: JsonOption = False,
) -> None:
    """Make one trial and show all that it counted. Loss is a result: FAIL and INVALID end with exit code 0."""
    address_plan = read_plan(
        plan, hosts, networks, host_mode=host_mode, network_mode=network_mode, fixed_source=fixed_source,
        fixed_source_network=fixed_source_network, common_network=common_network, source_ports=source_ports,
        destination_ports=destination_ports,
    )  # fmt: skip
    warn_about(address_plan)
    check_host_macs(host_macs, address_plan)
    size, note = choose_frame_size(address_plan, frame_size)
    rate_fps = parse_rate(rate, where="--rate")
    duration_s = parse_duration(duration, where="--duration")
    if duration_s <= 0:
        raise RequestError(f"{duration!r} must be above 0", where="--duration", next_step="Write a duration like 60s.")
    largest_loss_ratio = parse_ratio(loss_ratio, where="--loss-ratio")
    given_limits = LimitOptions(
        offered_tolerance=offered_tolerance, overdue_after=overdue_after, overdue_tolerance=overdue_tolerance,
        longest_overdue=longest_overdue,
    ).read()  # fmt: skip
    chosen_waits = read_waits(
        waits, routing=wait_after_routing, learning=wait_after_learning, residual=wait_residual, restabilize=wait_restabilize
    )
    setup = read_setup(testbed, address_plan)
    limits = limits_of(setup.testbed.limits, loss_ratio=largest_loss_ratio, given=given_limits)
    check_rate(rate_fps, setup.testbed.max_theoretical_fps(size), line_rate_bps=None, frame_size=size, where="--rate")
    directions: tuple[Direction, ...] = ("forward",) if one_way else ("forward", "reverse")
    with ExitStack() as stack:
        store = None if run is None else stack.enter_context(open_run(run, host_name=host_name))
        progress = stack.enter_context(ProgressDisplay(err()))
        if note is not None:
            progress.say(note)
        opened = open_tester(
            setup, address_plan, frame_size=size, seed=seed, directions=directions, engine=engine, host_macs=host_macs.value
        )
        tester = stack.enter_context(opened)
        choose_maximum(rate_fps, tester.profile, where="--rate")
        choice = LearningChoice(is_skipped=no_learning, allows_unreachable=allow_unreachable)
        tester = learn_first(tester, choice=choice, progress=progress)
        writer = None
        if store is not None:
            store.add_versions(engine_versions(tester.session))
            details = setup_details(setup, tester, chosen_waits)
            goal = {"rate_fps": rate_fps, "duration_s": duration_s, "loss_ratio": limits.loss_ratio}
            writer = stack.enter_context(
                store.search(
                    "trial", kind="trial", plan=address_plan.to_contract(), frame_size=size, seed=seed, setup=details, goal=goal
                )
            )  # fmt: skip
        measurer = EngineMeasurer(
            session=tester.session, directions=directions, waits=chosen_waits, limits=limits, on_event=progress.on_engine_event
        )
        progress.begin_single_trial(
            f"trial at {format_rate(rate_fps)} per direction for {format_duration(duration_s)}", duration_s + measurer.overhead_s
        )
        result = measurer.measure(duration_s, rate_fps)
        if writer is not None:
            writer.add_result(result, number=1, purpose="single", is_full_length=True)
            writer.finish_with(str(result.verdict))
    if json_output:
        write_json(
            {
                "command": "trial",
                "run": None if run is None else str(run),
                **tester.profile.to_document(),
                "deviations": [d.to_document() for d in tester.profile.deviations],
                "trial": result.raw,
            }
        )
    else:
        out().print(trial_report(result, tester.profile))
