# SPDX-License-Identifier: Apache-2.0
"""Procedure: what two ports do that a cable joins, without a DUT: whether frames and counters are conserved,
how queues are used, what the ports report of clock, stamps, PAUSE and link. What a port cannot do is said,
and is not a fault."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand.plan import SIDES, AddressPlan, Direction, SideName
from evenhand.procedure.cable_checks import (
    CableCheck,
    CableState,
    CableTest,
    ceiling_check,
    change_of,
    port_checks,
    trial_checks,
)
from evenhand.procedure.ceiling import DEFAULT_LIMITS, LOOPED_WAY, CeilingGoal, measure_ceiling
from evenhand.procedure.events import Began, Measured, Note, OnEvent, ignore
from evenhand.procedure.tester import OpenTester, open_tester
from evenhand.trial import CEILING_WAITS, Limits, TrialResult

if TYPE_CHECKING:
    from evenhand.rig import Setup

QUIET_FPS = 10_000.0
"""Few enough for any port and any host: what is lost then is lost by a fault."""
TRIAL_S = 1.0
ATTEMPTS = 3
"""A host takes a CPU away now and then."""
CABLE_MACS: Mapping[SideName, str] = {"left": "02:00:00:00:d0:01", "right": "02:00:00:00:d0:02"}
"""MAC that each side sends to. No port has them: a port that passes on only what is sent to itself shows."""
FRAME_SIZES = (None, 1518)
"""The smallest, and the largest that every port takes."""
PATIENT = Limits(overdue_after_us=10_000.0, offered_tolerance=0.01)
"""This tests ports, not the host: a CPU that is taken away for some milliseconds is not their fault."""


def measure_cable(
    setup: Setup,
    plans: Sequence[AddressPlan],
    goal: CeilingGoal,
    *,
    seed: int = 1,
    engine: Path | None = None,
    limits: Limits = DEFAULT_LIMITS,
    pull_s: float | None = None,
    on_event: OnEvent = ignore,
) -> CableTest:
    """Open the two ports once for each plan and frame size, and send from each to the other.

    Args:
        setup: Its ports are joined by a cable; of several engines it is that of one (`Setup.each_alone`).
            What it says of a DUT is not asked for.
        plans: One for each IP version.
        goal: The goal of the ceiling at the smallest frames of each plan; `limits` are those of its trials.
        pull_s: For so long the user may pull the cable and put it back; None: the cable is left alone.

    Raises:
        RequestError: A port does not take such frames.
        HostError: A port does not open, or has no link.
    """
    test = CableTest()
    joined = _without_dut(setup)
    opened_s: list[float] = []
    has_ports = False
    for plan in plans:
        for size in FRAME_SIZES:
            began = time.monotonic()
            with open_tester(
                joined,
                plan,
                frame_size=size or plan.smallest_frame_size,
                seed=seed,
                directions=("forward", "reverse"),
                engine=engine,
                waits=CEILING_WAITS,
                limits=PATIENT,
            ) as tester:
                opened_s.append(time.monotonic() - began)
                if not has_ports:
                    test.ports.update(_ports_of(tester))
                    test.checks.extend(port_checks(test.ports))
                    has_ports = True
                what = f"IPv{plan.ip_version}, {size or plan.smallest_frame_size} octets"
                result = _quiet_trial(tester, what, on_event)
                test.trials.append(_kept(result))
                test.checks.extend(trial_checks(what, result, test.ports))
                if size is None and not any(way.received_frames for way in result.directions.values()):
                    # Where no frame comes, a search for the ceiling takes minutes and finds none.
                    test.checks.append(ceiling_check(what, None))
                elif size is None:
                    entry = measure_ceiling(
                        tester,
                        joined.testbed.tester.cpus,
                        goal,
                        way=LOOPED_WAY,
                        on_event=on_event,
                        limits=limits,
                    )
                    test.ceilings.append(entry)
                    test.checks.append(ceiling_check(what, entry))
    test.checks.append(
        CableCheck(
            name="link",
            state=CableState.GOOD,
            found=f"came up each of the {len(opened_s)} times that the ports were opened, in"
            f" {min(opened_s):.1f} to {max(opened_s):.1f} s with the start of the engine",
        )
    )
    if pull_s is not None:
        test.checks.append(_pull(joined, plans[0], pull_s, seed, engine, on_event))
    return test


def expected_cable_s(goal: CeilingGoal, plans: int) -> float:
    """Time of the trials alone; for the display of progress."""
    trial_s = TRIAL_S + CEILING_WAITS.total_s
    return plans * (len(FRAME_SIZES) * (trial_s + 2.0) + 8 * (goal.duration_s + CEILING_WAITS.total_s))


def _without_dut(setup: Setup) -> Setup:
    testbed = setup.testbed
    ports: dict[str, Any] = {
        side: port.model_copy(update={"dut_mac": CABLE_MACS[side]}) for side, port in testbed.ports.items()
    }
    engines = tuple(engine.model_copy(update=ports) for engine in testbed.engine)
    without = {**ports, "engine": engines, "dut": type(testbed.dut)()}
    return replace(setup, testbed=testbed.model_copy(update=without))


def _ports_of(tester: OpenTester) -> dict[SideName, dict[str, Any]]:
    """What the engine reported of each, without what only this machine has: of a MAC, the vendor's half; of a
    device string, the device."""
    found: dict[SideName, dict[str, Any]] = {}
    for side in SIDES:
        opened = dict(tester.opened[side])
        found[side] = {
            **opened,
            "device": str(opened["device"]).partition(",")[0],
            "mac": str(opened["mac"])[:8],
        }
    return found


def _quiet_trial(tester: OpenTester, what: str, on_event: OnEvent) -> TrialResult:
    rate_fps = min(QUIET_FPS, tester.profile.theoretical_fps or QUIET_FPS)
    measurer = tester.measurer(on_event)
    on_event(Began(what=f"the cable, {what}", remaining_s=ATTEMPTS * (TRIAL_S + measurer.overhead_s)))
    for _ in range(ATTEMPTS):
        result = measurer.measure(TRIAL_S, rate_fps)
        on_event(Measured(what="cable", result=result))
        if result.is_valid:
            break
    return result


def _kept(result: TrialResult) -> dict[str, Any]:
    """The trial without the long lists, which say nothing of ports."""
    # What each of several engines reports is contained in the trial.
    document = {key: value for key, value in result.raw.items() if key != "engines"}
    document["directions"] = {
        name: {
            **{key: value for key, value in direction.items() if key not in ("delay_by_slice", "first_lost")},
            "latency": {key: value for key, value in direction["latency"].items() if key != "buckets"},
        }
        for name, direction in document["directions"].items()
    }
    return document


def _pull(
    setup: Setup, plan: AddressPlan, pull_s: float, seed: int, engine: Path | None, on_event: OnEvent
) -> CableCheck:
    directions: tuple[Direction, ...] = ("forward", "reverse")
    with open_tester(
        setup,
        plan,
        frame_size=plan.smallest_frame_size,
        seed=seed,
        directions=directions,
        engine=engine,
        waits=CEILING_WAITS,
        limits=PATIENT,
    ) as tester:
        on_event(Note(text=f"Pull the cable now, and plug it in again within {pull_s:.0f} s."))
        on_event(Began(what="the cable is pulled", remaining_s=pull_s))
        result = tester.measurer(on_event).measure(pull_s, 1_000.0)
    changes = {side: change_of(result.raw["ports"][side])["link_changes"] for side in SIDES}
    is_stated = any(reason.code == "link" for reason in result.reasons)
    lost = result.lost_frames
    found = (
        f"{lost} frames lost; link changes: left {changes['left']}, right {changes['right']}; the trial was"
        f" {result.verdict}{' for its link' if is_stated else ''}"
    )
    if not lost and not any(changes.values()):
        return CableCheck(name="pulled", state=CableState.ABSENT, found=f"the link stayed up: {found}")
    return CableCheck(name="pulled", state=CableState.GOOD if is_stated else CableState.BAD, found=found)
