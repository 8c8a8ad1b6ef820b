# SPDX-License-Identifier: Apache-2.0
"""`evenhand demo --dut linux`: the main job on the kernel's own router in a network namespace of this
machine."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evenhand.base.errors import HostError
from evenhand.base.units import format_count, format_ratio
from evenhand.cli.common import err, out, write_json
from evenhand.cli.progress.line import ProgressDisplay
from evenhand.cli.run_options import open_run
from evenhand.plan import AddressPlan, Direction, Traffic, make_plan, plan_title
from evenhand.procedure import Began, Measured, OpenTestbed, SinglePair, open_tester
from evenhand.report.suite import SuiteEntry, suite_deviations, suite_lines, suite_table
from evenhand.rig import Setup, make_lab_setup
from evenhand.rig.host.facts import read_host_facts, read_versions
from evenhand.rig.lab import LinuxLab, linux_lab
from evenhand.run import RunStore
from evenhand.search import Outcome, Role, SearchHead, ThroughputGoal, ThroughputResult, find_tester_ceiling
from evenhand.trial import (
    SHORT_WAITS,
    USUAL_OVERDUE_AFTER_US,
    EngineMeasurer,
    Limits,
    TrialResult,
    find_engine,
)

LAB_NAME = "demo"
DIRECTIONS: tuple[Direction, ...] = ("forward", "reverse")
PLANS = ("gateway_v4", "gateway_v6")
"""Each with one address pair first, then with all addresses (SEED-02, SEED-05)."""
LOSS_RATIO = 0.02
"""The veth ring holds 256 frames: each stall of the hypervisor, a few milliseconds long, costs up to a
thousand of them. On the machine this was tuned on, stalls alone cost 0.4 to 1 % at any load; a search for
less would find the stalls, not the router."""
LOSS_VERIFICATIONS = 2
"""Stalls of the hypervisor come and go; a device at its limit loses in every trial."""
MIN_CEILING_FPS = 50_000.0
START_FPS = 500_000.0
"""Where the look for the tester's ceiling starts: up from there as long as trials pass, or down."""
MOST_FPS = 10e6
CEILING_PRECISION = 0.2
"""The demo needs a maximum for its router's search, not the last percent of what the tester keeps."""
DUT_RING_FRAMES = 256
"""Of a veth end: what a burst must fit into."""
OVERDUE_AFTER_US = 500.0
"""Five times the default: on a virtual machine a CPU is away for a few hundred microseconds now and then. A
burst after half a millisecond still fits into the DUT's ring at up to 500 kfps per direction; above that,
less is allowed."""
OVERDUE_TOLERANCE = 0.05
"""Five times the default, for the same reason: catching up after a stall is never easier for the DUT than an
even load."""


def demo_limits(highest_fps: float) -> Limits:
    """Limits of trials at up to this load: a frame may be late by what the DUT's ring holds, and by
    OVERDUE_AFTER_US."""
    overdue_after_us = max(USUAL_OVERDUE_AFTER_US, min(OVERDUE_AFTER_US, DUT_RING_FRAMES / highest_fps * 1e6))
    return Limits(
        loss_ratio=LOSS_RATIO, overdue_after_us=round(overdue_after_us), overdue_tolerance=OVERDUE_TOLERANCE
    )


@dataclass(frozen=True, slots=True)
class _CeilingMeasurer:
    """Each trial with the limits of its load."""

    measurer: EngineMeasurer

    def measure(self, duration_s: float, rate_fps: float) -> TrialResult:
        self.measurer.limits = demo_limits(rate_fps)
        return self.measurer.measure(duration_s, rate_fps)


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoPace:
    """How thorough the demo is."""

    goal: ThroughputGoal
    ceiling_s: float
    expected_search_s: float
    """For the estimate of the time left only."""


FULL = DemoPace(
    goal=ThroughputGoal(
        max_fps=1e6,
        precision=0.05,
        duration_s=1.5,
        final_duration_s=3.0,
        loss_ratio=LOSS_RATIO,
        loss_verifications=LOSS_VERIFICATIONS,
    ),
    ceiling_s=1.0,
    expected_search_s=30.0,
)
QUICK = DemoPace(
    goal=ThroughputGoal(
        max_fps=1e6,
        precision=0.1,
        duration_s=1.0,
        final_duration_s=1.0,
        loss_ratio=LOSS_RATIO,
        loss_verifications=LOSS_VERIFICATIONS,
    ),
    ceiling_s=1.0,
    expected_search_s=18.0,
)


def linux_demo(
    *, quick: bool, seed: int, run: Path | None, host_name: bool, engine: Path | None, json_output: bool
) -> bool:
    """Throughput of the kernel's router: one address pair, then all addresses, IPv4 and IPv6. Whether each
    has a number."""
    pace = QUICK if quick else FULL
    # Before the lab: without an engine there is nothing to set up.
    find_engine(engine)
    entries: list[SuiteEntry] = []
    facts: dict[str, Any] = {}
    with ExitStack() as stack:
        store = None if run is None else stack.enter_context(open_run(run, host_name=host_name))
        progress = stack.enter_context(ProgressDisplay(err()))
        progress.remedy = None
        progress.say(
            "Demo: the Linux kernel's router in a network namespace of this machine. No frame leaves the"
            " machine.",
            style="bold",
        )
        ceilings: dict[str, float] = {}
        for index, name in enumerate(PLANS):
            everything = make_plan(name)
            with linux_lab(everything, name=LAB_NAME) as lab:
                facts[name] = lab.facts()
                setup = make_lab_setup(lab, everything)
                progress.later_s = pace.expected_search_s * 2 * (len(PLANS) - index)
                # The ceiling of the plan before is near: one step up or down finds it.
                start_fps = max(ceilings.values(), default=START_FPS)
                ceilings[name] = find_ceiling(
                    setup,
                    everything,
                    start_fps=start_fps,
                    pace=pace,
                    seed=seed,
                    engine=engine,
                    store=store,
                    progress=progress,
                )
                one_pair = None
                for plan in (make_plan(name, 1), everything):
                    done = len(entries) + 1
                    progress.later_s = pace.expected_search_s * (2 * len(PLANS) - done)
                    progress.say(
                        f"{plan.title}, {_hosts(plan)}, {plan.smallest_frame_size} octet frames:",
                        style="bold",
                    )
                    entry = _measure(
                        setup,
                        plan,
                        lab,
                        seed=seed,
                        pace=pace,
                        ceiling_fps=ceilings[name],
                        engine=engine,
                        store=store,
                        progress=progress,
                        single_pair=one_pair,
                    )
                    one_pair = SinglePair.of(entry.result, entry.profile)
                    entries.append(entry)
    has_numbers = all(entry.result.throughput_fps is not None for entry in entries)
    if json_output:
        write_json(_document(entries, facts, ceilings, run, host_name=host_name))
        return has_numbers
    console = out()
    console.print(suite_table(entries))
    console.print()
    for line in closing_lines(entries, ceilings, facts):
        console.print(line, markup=False)
    if run is not None:
        console.print(f"Stored in {run}.", markup=False)
    return has_numbers


def find_ceiling(
    setup: Setup,
    plan: AddressPlan,
    *,
    start_fps: float,
    pace: DemoPace,
    seed: int,
    engine: Path | None,
    store: RunStore | None,
    progress: ProgressDisplay,
) -> float:
    """The highest load per direction that the tester itself keeps here (MLR-14). HostError if it keeps
    none."""
    progress.say(
        f"{plan.title}: looking for the load that the tester itself can keep on this machine", style="bold"
    )
    size = plan.smallest_frame_size
    with ExitStack() as stack:
        tester = stack.enter_context(
            open_tester(
                setup,
                plan,
                frame_size=size,
                seed=seed,
                directions=DIRECTIONS,
                engine=engine,
                waits=SHORT_WAITS,
            )
        )
        writer = None
        if store is not None:
            store.add_versions(tester.versions)
            goal = {
                "start_fps": start_fps,
                "max_fps": MOST_FPS,
                "min_fps": MIN_CEILING_FPS,
                "duration_s": pace.ceiling_s,
            }
            writer = stack.enter_context(
                store.search(
                    SearchHead(
                        label=f"{plan.name} tester ceiling",
                        kind="ceiling",
                        role=Role.CEILING,
                        plan=plan.to_contract(),
                        frame_size=size,
                        seed=seed,
                        setup=setup.to_document(),
                        goal=goal,
                    )
                )
            )
        count = 0

        def on_trial(result: TrialResult) -> None:
            nonlocal count
            count += 1
            if writer is not None:
                writer.add_result(result, number=count, purpose="ceiling")
            progress.on_event(Measured(what="tester", result=result))

        measurer = tester.measurer(progress.on_event)
        progress.on_event(
            Began(what="the tester's own ceiling", remaining_s=5 * (pace.ceiling_s + measurer.overhead_s))
        )
        ceiling = find_tester_ceiling(
            _CeilingMeasurer(measurer),
            start_fps=start_fps,
            max_fps=MOST_FPS,
            min_fps=MIN_CEILING_FPS,
            duration_s=pace.ceiling_s,
            attempts=3,
            precision=CEILING_PRECISION,
            ends_at_loss=True,
            on_trial=on_trial,
        )
        if writer is not None:
            writer.finish_with(
                "found" if ceiling.rate_fps else "tester_limit",
                {"ceiling_fps_per_direction": ceiling.rate_fps},
            )
    if ceiling.rate_fps is None:
        last = "; ".join(reason.text for reason in ceiling.trials[-1].reasons)
        raise HostError(
            f"the tester cannot keep any load on this machine: {last}",
            code="cli.no-load-kept",
            where="demo",
            next_step="Give the tester idle CPUs, and try again; `evenhand check` shows which CPUs are taken"
            " away, and by what.",
        )
    return ceiling.rate_fps


def _measure(
    setup: Setup,
    plan: AddressPlan,
    lab: LinuxLab,
    *,
    seed: int,
    pace: DemoPace,
    ceiling_fps: float,
    engine: Path | None,
    store: RunStore | None,
    progress: ProgressDisplay,
    single_pair: SinglePair | None,
) -> SuiteEntry:
    bed = OpenTestbed(setup=setup, engine=engine, recorder=store, on_event=progress.on_event)
    found = bed.throughput(
        goal=replace(pace.goal, max_fps=ceiling_fps),
        name=f"{plan.name} {_hosts(plan)}",
        plan=plan,
        frame_size=plan.smallest_frame_size,
        seed=seed,
        directions=DIRECTIONS,
        waits=SHORT_WAITS,
        limits=demo_limits(ceiling_fps),
        single_pair=single_pair,
    )
    assert isinstance(found.search, ThroughputResult)
    # Routers keep entries that they only tried; what counts is who answered.
    answered = [
        neighbor
        for neighbor in lab.neighbors()
        if neighbor.mac is not None and not neighbor.address.startswith("fe80:")
    ]
    return SuiteEntry(profile=found.profile, result=found.search, dut_neighbors=len(answered))


def _hosts(plan: AddressPlan) -> str:
    return "one address pair" if plan.pairs == 1 else Traffic(plan=plan, directions=DIRECTIONS).addresses


def closing_lines(entries: list[SuiteEntry], ceilings: dict[str, float], facts: dict[str, Any]) -> list[str]:
    """What stands below the table; first of all whether the router's limit was reached."""
    first = next(iter(facts.values()))
    host = read_host_facts()
    overdue = sorted({demo_limits(fps).overdue_after_us or 0 for fps in ceilings.values()})
    kept = ", ".join(f"{format_count(fps)} with {plan_title(name)}" for name, fps in ceilings.items())
    return [
        *limit_lines(entries),
        f"DUT: Linux {first['kernel']}, forwarding on CPU {first['dut_cpu']} of {host['cpu_model']}; tester"
        f" on CPU {first['tester_cpus']}"
        f"{' (a virtual machine: expect noise)' if host['is_virtual_machine'] else ''}.",
        "Protocol UDP, addresses and ports pseudorandom, both directions at once; the tester itself keeps at"
        " least"
        f" {kept} fps per direction.",
        f"A frame counts as overdue from {' and '.join(f'{limit:.0f}' for limit in overdue)} us"
        f" on (default {USUAL_OVERDUE_AFTER_US:.0f} us), and {format_ratio(OVERDUE_TOLERANCE)}"
        f" of overdue frames are allowed (default {format_ratio(Limits().overdue_tolerance)}),"
        " because a virtual machine loses its CPUs for short times.",
        *suite_lines(entries),
    ]


def limit_lines(entries: list[SuiteEntry]) -> list[str]:
    """A sentence if the tester was the limit, because the router passed the most that it keeps."""
    limited = [entry for entry in entries if entry.result.outcome is Outcome.AT_OR_ABOVE_MAXIMUM]
    if not limited:
        return []
    searches = (
        "every search" if len(limited) == len(entries) else f"{len(limited)} of {len(entries)} searches"
    )
    kept = "the highest load that the tester itself can keep here"
    return [
        f"In {searches} the tester is the limit, not the router: the router passed {kept},"
        " and may be able to forward more."
    ]


def _document(
    entries: list[SuiteEntry],
    facts: dict[str, Any],
    ceilings: dict[str, float],
    run: Path | None,
    *,
    host_name: bool,
) -> dict[str, Any]:
    return {
        "command": "demo",
        "dut": {"kind": "linux", "facts": facts},
        "host": read_host_facts(host_name=host_name),
        "versions": read_versions(),
        "run": None if run is None else str(run),
        "searches": [entry.to_document() for entry in entries],
        "deviations": [d.to_document() for d in suite_deviations(entries)],
        "tester_ceilings_fps_per_direction": ceilings,
        "summary": [*limit_lines(entries), *suite_lines(entries)],
    }
