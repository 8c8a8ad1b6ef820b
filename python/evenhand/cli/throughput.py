# SPDX-License-Identifier: Apache-2.0
"""`evenhand throughput`: the highest load that the DUT forwards without loss."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from functools import partial
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
    NoRunOption,
    OneWayOption,
    PlanOption,
    RunOption,
    SeedOption,
    SourcePortsOption,
    TestbedArgument,
    choose_frame_size,
    err,
    open_run,
    out,
    read_plan,
    run_file,
    warn_about,
    write_json,
)
from evenhand.cli.learning import (
    ALL_HOSTS_FIRST,
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
    InvalidRetriesOption,
    LimitOptions,
    LongestOverdueOption,
    OfferedToleranceOption,
    OverdueAfterOption,
    OverdueToleranceOption,
    PatienceOption,
    limits_of,
    retries_of,
)
from evenhand.cli.searches import GoalOption, SearchKind, SearchOption, StartOption, choose_search
from evenhand.cli.setup import Setup, choose_maximum, engine_versions, open_tester, read_setup
from evenhand.cli.single_pair import AfterOption, SinglePairFirstOption, check_options, check_same_dut, read_single_pair
from evenhand.cli.waits import LearningWait, ResidualWait, RestabilizeWait, RoutingWait, WaitSet, WaitsOption, read_waits
from evenhand.plan import AddressPlan, Direction, HostMacs, Traffic
from evenhand.progress import ProgressDisplay
from evenhand.report import Profile, SinglePair, search_document, search_lines, search_tables
from evenhand.search import Goal, SearchEvent, SearchResult, ThroughputGoal, TrialFinished, run_search
from evenhand.series import RunStore
from evenhand.testbed import check_rate
from evenhand.trial import EngineMeasurer, Limits, Waits
from evenhand.units import parse_duration, parse_rate, parse_ratio

EXAMPLE = "Example: evenhand throughput lab.toml --plan gateway-v6 --maximum-rate 2Mfps --loss-ratio 0.1% --run first.evenhand"

ONE_PAIR = "throughput, one address pair"


def throughput(
    testbed: TestbedArgument,
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
    maximum_rate: Annotated[
        str | None, typer.Option("--maximum-rate", metavar="RATE", help="Per direction; default: the line rate. It is tried first.")
    ] = None,
    minimum_rate: Annotated[
        str | None, typer.Option("--minimum-rate", metavar="RATE", help="Default: a thousandth of the maximum.")
    ] = None,
    duration: Annotated[str, typer.Option("--duration", metavar="TIME", help="Of the trials of the search.")] = "5s",
    final_duration: Annotated[str, typer.Option("--final-duration", metavar="TIME", help="Of the trial that confirms the result.")] = "60s",
    precision: Annotated[str, typer.Option("--precision", metavar="RATIO", help="Width at which the search stops.")] = "0.5%",
    loss_verifications: Annotated[
        int,
        typer.Option("--loss-verification", metavar="N", min=0, help="Repeat a lossy trial up to N times before it counts (ETSI TST009)."),
    ] = 0,
    loss_ratio: LossRatioOption = "0",
    search_kind: SearchOption = SearchKind.BINARY,
    goals: GoalOption = None,
    start: StartOption = None,
    one_way: OneWayOption = False,
    single_pair_first: SinglePairFirstOption = False,
    after: AfterOption = None,
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
    invalid_retries: InvalidRetriesOption = None,
    patience: PatienceOption = None,
    run: RunOption = None,
    no_run: NoRunOption = False,
    host_name: HostNameOption = False,
    engine: EngineOption = None,
    json_output: JsonOption = False,
) -> None:
    """Find the throughput (RFC 2544 section 26.1) by the search of choice; loads are per direction."""
    address_plan = read_plan(
        plan, hosts, networks, host_mode=host_mode, network_mode=network_mode, fixed_source=fixed_source,
        fixed_source_network=fixed_source_network, common_network=common_network, source_ports=source_ports,
        destination_ports=destination_ports,
    )  # fmt: skip
    warn_about(address_plan)
    check_host_macs(host_macs, address_plan)
    check_options(address_plan, first=single_pair_first, after=after)
    size, note = choose_frame_size(address_plan, frame_size)
    maximum_fps = None if maximum_rate is None else parse_rate(maximum_rate, where="--maximum-rate")
    chosen_waits = read_waits(
        waits, routing=wait_after_routing, learning=wait_after_learning, residual=wait_residual, restabilize=wait_restabilize
    )
    given_limits = LimitOptions(
        offered_tolerance=offered_tolerance, overdue_after=overdue_after, overdue_tolerance=overdue_tolerance,
        longest_overdue=longest_overdue,
    ).read()  # fmt: skip
    binary_goal = make_goal(
        maximum_fps=maximum_fps or 1e12, minimum_rate=minimum_rate, duration=duration, final_duration=final_duration, precision=precision,
        loss_ratio=loss_ratio, loss_verifications=loss_verifications,
    )  # fmt: skip
    goal = choose_search(binary_goal, search_kind, goals, start)
    setup = read_setup(testbed, address_plan)
    known = setup.testbed.limits
    goal = replace(goal, **retries_of(known, invalid=invalid_retries, patience=patience))  # type: ignore[arg-type]
    limits = limits_of(known, loss_ratio=goal.loss_ratio, given=given_limits)
    if maximum_fps is not None:
        limit = setup.testbed.max_theoretical_fps(size)
        check_rate(maximum_fps, limit, line_rate_bps=None, frame_size=size, where="--maximum-rate")
    directions: tuple[Direction, ...] = ("forward",) if one_way else ("forward", "reverse")
    before = None
    if after is not None:
        before = read_single_pair(after, setup, address_plan, frame_size=size, directions=directions, loss_ratio=goal.loss_ratio)
    run = run_file("throughput", run, no_run)
    with ExitStack() as stack:
        store = None if run is None else stack.enter_context(open_run(run, host_name=host_name))
        progress = stack.enter_context(ProgressDisplay(err()))
        if note is not None:
            progress.say(note)
        search = partial(
            measure_throughput, setup, size=size, seed=seed, directions=directions, goal=goal, maximum_fps=maximum_fps, waits=chosen_waits,
            limits=limits, engine=engine, store=store, progress=progress, host_macs=host_macs.value,
            learning=LearningChoice(is_skipped=no_learning, allows_unreachable=allow_unreachable),
        )  # fmt: skip
        first = None
        if single_pair_first:
            progress.say(f"1 of 2: {address_plan.label}, one address pair.", style="bold")
            first = search(address_plan.single_pair(), name=ONE_PAIR)
            before = SinglePair.of(*first)
            progress.say(f"2 of 2: {Traffic(plan=address_plan, directions=directions).addresses}.", style="bold")
        result, profile = search(address_plan, name="throughput", single_pair=before)
    if json_output:
        document = {"command": "throughput", "run": None if run is None else str(run), **search_document(result, profile)}
        if first is not None:
            document["first_search"] = search_document(*first)
        write_json(document)
        return
    console = out()
    if first is not None:
        for table in search_tables(first[0], title="Trials with one address pair"):
            console.print(table)
            console.print()
        for line in search_lines(*first):
            console.print(line, markup=False)
        console.print()
    for table in search_tables(result):
        console.print(table)
        console.print()
    for line in search_lines(result, profile):
        console.print(line, markup=False)
    if run is not None:
        console.print(f"Stored in {run}.", markup=False)


def make_goal(
    *,
    maximum_fps: float,
    minimum_rate: str | None,
    duration: str,
    final_duration: str,
    precision: str,
    loss_ratio: str,
    loss_verifications: int = 0,
) -> ThroughputGoal:
    """The goal from its options. RequestError names the option."""
    return ThroughputGoal(
        max_fps=maximum_fps,
        min_fps=None if minimum_rate is None else parse_rate(minimum_rate, where="--minimum-rate"),
        duration_s=parse_duration(duration, where="--duration"),
        final_duration_s=parse_duration(final_duration, where="--final-duration"),
        precision=parse_ratio(precision, where="--precision"),
        loss_ratio=parse_ratio(loss_ratio, where="--loss-ratio"),
        loss_verifications=loss_verifications,
    )


def measure_throughput(
    setup: Setup,
    plan: AddressPlan,
    *,
    name: str,
    size: int,
    seed: int,
    directions: tuple[Direction, ...],
    goal: Goal,
    maximum_fps: float | None,
    waits: Waits,
    engine: Path | None,
    store: RunStore | None,
    progress: ProgressDisplay,
    limits: Limits | None = None,
    host_macs: HostMacs = "port",
    learning: LearningChoice = ALL_HOSTS_FIRST,
    single_pair: SinglePair | None = None,
) -> tuple[SearchResult, Profile]:
    """One search with an engine of its own; each trial is stored before the next begins (D11).

    Args:
        single_pair: What was found before with one address pair; the DUT must be the same.
    """
    with ExitStack() as stack:
        opened = open_tester(setup, plan, frame_size=size, seed=seed, directions=directions, engine=engine, host_macs=host_macs)
        tester = stack.enter_context(opened)
        if single_pair is not None:
            check_same_dut(single_pair, tester.profile)
            tester = replace(tester, profile=replace(tester.profile, single_pair=single_pair))
        goal = replace(goal, max_fps=choose_maximum(maximum_fps, tester.profile, where="--maximum-rate"))
        tester = learn_first(tester, choice=learning, progress=progress)
        writer = None
        if store is not None:
            store.add_versions(engine_versions(tester.session))
            details = setup_details(setup, tester, waits)
            writer = stack.enter_context(
                store.search(name, kind="throughput", plan=plan.to_contract(), frame_size=size, seed=seed, setup=details, goal=goal)
            )

        def on_progress(event: SearchEvent) -> None:
            if writer is not None and isinstance(event, TrialFinished):
                writer.add_trial(event.trial)
            progress.on_search_event(event)

        measurer = EngineMeasurer(
            session=tester.session, directions=directions, waits=waits,
            limits=limits or limits_of(setup.testbed.limits, loss_ratio=goal.loss_ratio, given={}), on_event=progress.on_engine_event,
        )  # fmt: skip
        result = run_search(measurer, goal, on_progress=on_progress, overhead_s=measurer.overhead_s)
        if writer is not None:
            writer.finish(result)
        return result, tester.profile
