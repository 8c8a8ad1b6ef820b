# SPDX-License-Identifier: Apache-2.0
"""`evenhand demo --dut linux`: the main job on the kernel's own router in a network namespace of this
machine. What it measures is the preset `demo-linux`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

from evenhand.base.errors import HostError
from evenhand.base.time_span import TimeSpan
from evenhand.cli.common import out, write_json
from evenhand.cli.conditions import written_beside
from evenhand.cli.demo_parts import addresses_in_words, demo_document, opened_demo, read_demo
from evenhand.lab import LinuxLab, linux_lab
from evenhand.procedure import Began, Conditions, Measured, OnePair, OpenTestbed
from evenhand.procedure.maximum import record_ceiling
from evenhand.report.suite import (
    SuiteEntry,
    closing_lines,
    limit_lines,
    suite_deviations,
    suite_lines,
    suite_table,
)
from evenhand.rig import make_lab_setup
from evenhand.search import LOSSES_THAT_END_THE_WAY_UP, TesterCeiling, ThroughputResult, find_tester_ceiling
from evenhand.spec.request import Point, plan_of, read_point
from evenhand.trial import USUAL_OVERDUE_AFTER_US, EngineMeasurer, Limits, TrialResult, find_engine

PRESET = "demo-linux"
"""Each plan with one address pair first, then with all addresses (SEED-02, SEED-05)."""
QUICK = {"precision": "10%", "duration": "1s", "final-duration": "1s"}
EXPECTED_SEARCH_S, EXPECTED_QUICK_SEARCH_S = 30.0, 18.0
"""Expected times of the searches, for the estimate of the time left only."""
LAB_NAME = "demo"
MIN_CEILING_FPS = 50_000.0
START_FPS = 500_000.0
"""Where the look for the tester's ceiling starts: up from there as long as trials pass, or down."""
MOST_FPS = 10e6
CEILING_S = 1.0
CEILING_PRECISION = 0.2
"""The demo needs a maximum for its router's search, not the last percent of what the tester keeps."""
DUT_RING_FRAMES = 256
"""Ring of a veth end: what a burst must fit into."""
OVERDUE_AFTER_US = 500.0
"""Five times the default: on a virtual machine a CPU is away for a few hundred microseconds now and then. A
burst after half a millisecond still fits into the DUT's ring at up to 500 kfps per direction; above that,
less is allowed. A campaign cannot know the load before: its preset has what fits at 1.28 Mfps."""


def demo_limits(of_preset: Limits, highest_fps: float) -> Limits:
    """Limits of trials at up to this load: a frame may be late by what the DUT's ring holds, and by
    OVERDUE_AFTER_US."""
    overdue_after_us = max(USUAL_OVERDUE_AFTER_US, min(OVERDUE_AFTER_US, DUT_RING_FRAMES / highest_fps * 1e6))
    return replace(of_preset, overdue_after_us=round(overdue_after_us))


def linux_demo(
    *, quick: bool, seed: int, run: Path | None, host_name: bool, engine: Path | None, json_output: bool
) -> bool:
    """Throughput of the kernel's router: one address pair, then all addresses, IPv4 and IPv6. Whether each
    has a number."""
    # Before the lab: without an engine there is nothing to set up.
    find_engine(engine)
    points = read_demo(PRESET, QUICK if quick else None).points
    expected_s = EXPECTED_QUICK_SEARCH_S if quick else EXPECTED_SEARCH_S
    entries: list[SuiteEntry] = []
    facts: dict[str, Any] = {}
    ceilings: dict[str, float] = {}
    greeting = (
        "Demo: the Linux kernel's router in a network namespace of this machine. No frame leaves the machine."
    )
    with opened_demo(run, host_name=host_name, greeting=greeting) as (store, progress):
        for _, of_plan in groupby(points, key=lambda point: point.plan):
            pair, everything = of_plan
            plan = plan_of(everything)
            with (
                linux_lab(plan, name=LAB_NAME) as lab,
                written_beside(store, plan.title, progress.on_event) as on_event,
            ):
                facts[plan.name] = lab.facts()
                bed = OpenTestbed(
                    setup=make_lab_setup(lab, plan), engine=engine, recorder=store, on_event=on_event
                )
                progress.later = TimeSpan.of(expected_s * (len(points) - len(entries)))
                progress.say(
                    f"{plan.title}: looking for the load that the tester itself can keep on this machine",
                    style="bold",
                )
                # The ceiling of the plan before is near: one step up or down finds it.
                start_fps = max(ceilings.values(), default=START_FPS)
                ceilings[plan.name] = ceiling_fps = _find_ceiling(bed, everything, start_fps, seed=seed)
                one_pair = None
                for point in (pair, everything):
                    progress.later = TimeSpan.of(expected_s * (len(points) - len(entries) - 1))
                    sent = plan_of(point)
                    progress.say(
                        f"{sent.title}, {addresses_in_words(sent)}, {point.frame_size} octet frames:",
                        style="bold",
                    )
                    entry = _measure(bed, point, lab, ceiling_fps, seed=seed, one_pair=one_pair)
                    one_pair = OnePair.of(entry.result, entry.profile)
                    entries.append(entry)
    has_numbers = all(entry.result.throughput_fps is not None for entry in entries)
    if json_output:
        write_json(
            {
                **demo_document({"kind": "linux", "facts": facts}, run, host_name=host_name),
                "searches": [entry.to_document() for entry in entries],
                "deviations": [d.to_document() for d in suite_deviations(entries)],
                "tester_ceilings_fps_per_direction": ceilings,
                "summary": [*limit_lines(entries), *suite_lines(entries)],
            }
        )
        return has_numbers
    console = out()
    console.print(suite_table(entries))
    console.print()
    of_preset = read_point(points[0]).conditions["limits"]
    limits = [demo_limits(of_preset, fps) for fps in ceilings.values()]
    for line in closing_lines(entries, ceilings, limits, next(iter(facts.values()))):
        console.print(line, markup=False)
    if run is not None:
        console.print(f"Stored in {run}.", markup=False)
    return has_numbers


@dataclass(frozen=True, slots=True)
class _CeilingMeasurer:
    """Each trial with the limits of its load."""

    measurer: EngineMeasurer
    limits: Limits

    def measure(self, duration_s: float, rate_fps: float) -> TrialResult:
        self.measurer.limits = demo_limits(self.limits, rate_fps)
        return self.measurer.measure(duration_s, rate_fps)


def _find_ceiling(bed: OpenTestbed, point: Point, start_fps: float, *, seed: int) -> float:
    """The highest load per direction that the tester itself keeps here (MLR-14). HostError if it keeps
    none."""
    conditions: Conditions = {**read_point(point, bed.setup.testbed.limits).conditions, "seed": seed}
    goal = {"start_fps": start_fps, "max_fps": MOST_FPS, "min_fps": MIN_CEILING_FPS, "duration_s": CEILING_S}
    with bed.tester(**conditions) as tester:
        measurer = tester.measurer(bed.on_event)
        bed.on_event(
            Began(what="the tester's own ceiling", remaining_s=5 * (CEILING_S + measurer.overhead_s))
        )

        def find(keep: Callable[[TrialResult], None]) -> TesterCeiling:
            def on_trial(result: TrialResult) -> None:
                keep(result)
                bed.on_event(Measured(what="tester", result=result))

            return find_tester_ceiling(
                _CeilingMeasurer(measurer, conditions["limits"]),
                start_fps=start_fps,
                max_fps=MOST_FPS,
                min_fps=MIN_CEILING_FPS,
                duration_s=CEILING_S,
                attempts=3,
                precision=CEILING_PRECISION,
                ending_losses=LOSSES_THAT_END_THE_WAY_UP,
                on_trial=on_trial,
            )

        label = f"{plan_of(point).name} tester ceiling"
        ceiling = record_ceiling(bed.recorder, tester, label, goal=goal, find=find)
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
    bed: OpenTestbed, point: Point, lab: LinuxLab, ceiling_fps: float, *, seed: int, one_pair: OnePair | None
) -> SuiteEntry:
    request = read_point(point, bed.setup.testbed.limits)
    plan = plan_of(point)
    conditions: Conditions = {
        **request.conditions,
        "seed": seed,
        "limits": demo_limits(request.conditions["limits"], ceiling_fps),
        "one_pair": one_pair,
    }
    found = bed.throughput(
        goal=replace(request.goal, max_fps=ceiling_fps),
        name=f"{plan.name} {addresses_in_words(plan)}",
        **conditions,
    )
    assert isinstance(found.search, ThroughputResult)
    # Routers keep entries that they only tried; what counts is who answered.
    answered = [
        neighbor
        for neighbor in lab.neighbors()
        if neighbor.mac is not None and not neighbor.address.startswith("fe80:")
    ]
    return SuiteEntry(profile=found.profile, result=found.search, dut_neighbors=len(answered))
