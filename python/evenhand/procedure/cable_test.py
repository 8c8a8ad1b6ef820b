# SPDX-License-Identifier: Apache-2.0
"""Procedure: what two ports do that a cable joins, without a DUT: whether frames and counters are conserved,
how queues are used, what the ports report of clock, stamps, PAUSE and link. What a port cannot do is said,
and is not a fault."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand.base.cpu_list import format_cpu_list
from evenhand.plan import SIDES, AddressPlan, Direction, SideName
from evenhand.procedure.events import Began, Measured, Note, OnEvent, ignore
from evenhand.procedure.maximum import (
    DEFAULT_LIMITS,
    OWN_LOOP_WAY,
    CeilingEntry,
    CeilingGoal,
    measure_ceiling,
)
from evenhand.procedure.tester import OpenTester, open_tester
from evenhand.trial import CEILING_WAITS, DirectionResult, Limits, TrialResult

if TYPE_CHECKING:
    from evenhand.rig import Setup


MOST_PPM = 100.0
"""The same as a trial's limit."""
UNEVEN = 2.0
"""Largest ratio of the frames of two queues: a hash over 2^32 pairs makes them equal except for its table."""


class CableState(StrEnum):
    """State of one check."""

    GOOD = "good"
    BAD = "bad"
    ABSENT = "absent"
    """The port cannot, or does not report it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CableCheck:
    """One thing that was looked at."""

    name: str
    state: CableState
    found: str
    """The finding in words."""

    def to_document(self) -> dict[str, str]:
        """For `--json`, and for the file."""
        return {"name": self.name, "state": str(self.state), "found": self.found}


@dataclass(slots=True, kw_only=True)
class CableTest:
    """What was found; grows while it is made."""

    checks: list[CableCheck] = field(default_factory=list)
    ports: dict[SideName, dict[str, Any]] = field(default_factory=dict)
    trials: list[dict[str, Any]] = field(default_factory=list)
    ceilings: list[CeilingEntry] = field(default_factory=list)

    @property
    def bad(self) -> list[CableCheck]:
        """What the user has to look at."""
        return [check for check in self.checks if check.state is CableState.BAD]

    def to_document(self) -> dict[str, Any]:
        """For `--json`, and for the file (contract/check.schema.json)."""
        return {
            "checks": [check.to_document() for check in self.checks],
            "ports": self.ports,
            "trials": self.trials,
            "ceilings": [
                {
                    "ip_version": entry.profile.plan.ip_version,
                    "frame_size": entry.profile.frame_size,
                    "cpus": len(entry.cpus),
                    "kept_fps": entry.ceiling.rate_fps,
                    "maximum_offered_load_fps": entry.ceiling.maximum_offered_load_fps,
                    "reasons_above": [reason.text for reason in entry.ceiling.reasons_above],
                }
                for entry in self.ceilings
            ],
        }


def port_checks(ports: Mapping[SideName, Mapping[str, Any]]) -> Iterator[CableCheck]:
    for side, port in ports.items():
        rate = port["line_rate_bps"]
        line = "line rate not known" if rate is None else f"{rate / 1e9:g} Gbit/s"
        yield CableCheck(
            name=f"{side}: port",
            state=CableState.GOOD if port["link_up"] else CableState.BAD,
            found=f"{port['driver']}, link {'up' if port['link_up'] else 'down'}, {line}, receive ring of"
            f" {port['receive_ring_frames']} frames ({port['receive_ring_source']}), transmit ring of"
            f" {port['transmit_ring_frames']}; answers leave by"
            f" {'a queue of their own' if port.get('control_queue') == 'own' else 'the first queue'}"
            f"{', buffers are freed at once' if port.get('fast_free') else ''}"
            f"{_node_of(port)}",
        )
        flow = port["flow_control"]
        yield CableCheck(
            name=f"{side}: PAUSE",
            state={"off": CableState.GOOD, "on": CableState.BAD}.get(flow, CableState.ABSENT),
            found={
                "off": "switched off",
                "on": "it cannot be switched off, so a full ring may stop the other side",
                "none": "a software port has none",
            }.get(flow, "the driver does not say"),
        )
        yield CableCheck(
            name=f"{side}: stamps",
            state=CableState.ABSENT if port["hardware_stamps"] == "none" else CableState.GOOD,
            found="the port does not stamp frames"
            if port["hardware_stamps"] == "none"
            else "the port could stamp frames; all stamps are taken by software",
        )


def _node_of(port: Mapping[str, Any]) -> str:
    """Empty where the node is not known, as on a host with one node."""
    if port.get("numa_node") is None:
        return ""
    far = format_cpu_list(port.get("far_cpus", ()))
    return f"; on NUMA node {port['numa_node']}{far and f', and CPU {far} on another'}"


def trial_checks(
    what: str, result: TrialResult, ports: Mapping[SideName, Mapping[str, Any]]
) -> Iterator[CableCheck]:
    yield _verdict_check(what, result)
    for direction, found in result.directions.items():
        yield _frames_check(f"{what}, {direction}", found)
        yield _queues_check(f"{what}, {direction}", result.raw["directions"][direction]["receiver"])
        delay = found.latency
        yield CableCheck(
            name=f"{what}, {direction}: delay",
            state=CableState.ABSENT if delay.p50_ns is None else CableState.GOOD,
            found="no frame came"
            if delay.p50_ns is None or delay.min_ns is None or delay.p999_ns is None
            else f"at least {delay.min_ns / 1e3:.1f} us, median {delay.p50_ns / 1e3:.1f}, 99.9 %"
            f" {delay.p999_ns / 1e3:.1f}",
        )
    yield from _counter_checks(what, result, ports)
    offset = max(result.clock_offsets, key=lambda each: abs(each.offset_us), default=None)
    yield CableCheck(
        name=f"{what}: clock",
        state=CableState.GOOD if abs(result.clock_error_ppm) < MOST_PPM else CableState.BAD,
        found=f"{result.clock_error_ppm:+.2f} ppm off CLOCK_MONOTONIC_RAW"
        + (
            ""
            if offset is None
            else f"; the counters of its CPUs differ by {offset.offset_us:+.2f} us at most, +/-"
            f" {offset.uncertainty_us:.2f}"
        ),
    )


def _verdict_check(what: str, result: TrialResult) -> CableCheck:
    return CableCheck(
        name=f"{what}: trial",
        state=CableState.GOOD if result.is_pass else CableState.BAD,
        found=f"{result.verdict}" + "".join(f"; {reason.text}" for reason in result.reasons),
    )


def _frames_check(what: str, found: DirectionResult) -> CableCheck:
    damage = {
        "duplicated": found.duplicated_frames,
        "out of order": found.reordered_frames,
        "damaged": found.corrupted_frames,
        "foreign": found.foreign_frames,
    }
    is_good = found.received_frames == found.offered_frames and not any(
        count for kind, count in damage.items() if kind != "foreign"
    )
    others = ", ".join(f"{count} {kind}" for kind, count in damage.items() if count) or "none damaged"
    return CableCheck(
        name=f"{what}: frames",
        state=CableState.GOOD if is_good else CableState.BAD,
        found=f"{found.received_frames} of {found.offered_frames} came; {others}",
    )


def _queues_check(what: str, receiver: Mapping[str, Any]) -> CableCheck:
    counts = receiver.get("by_queue", [])
    if len(counts) < 2:
        return CableCheck(name=f"{what}: queues", state=CableState.ABSENT, found="one receive queue")
    is_even = min(counts) * UNEVEN >= max(counts)
    return CableCheck(
        name=f"{what}: queues",
        state=CableState.GOOD if is_even else CableState.BAD,
        found="frames of each receive queue: " + ", ".join(map(str, counts)),
    )


def _counter_checks(
    what: str, result: TrialResult, ports: Mapping[SideName, Mapping[str, Any]]
) -> Iterator[CableCheck]:
    change = {side: change_of(result.raw["ports"][side]) for side in SIDES}
    for side in SIDES:
        after = result.raw["ports"][side]["after"]
        name = f"{what}, {side}: counters"
        if not after["is_read"]:
            yield CableCheck(name=name, state=CableState.ABSENT, found="the driver does not report them")
            continue
        lost = {
            key: change[side][key]
            for key in ("missed_frames", "receive_errors", "transmit_errors", "no_buffer_frames")
            if change[side][key]
        }
        exact = ports[side].get("receive_count") == "exact" and after["seen_frames"] is not None
        seen = change[side].get("seen_frames", 0)
        is_short = exact and seen != change[side]["received_frames"]
        yield CableCheck(
            name=name,
            state=CableState.BAD if lost or is_short else CableState.GOOD,
            found=f"sent {change[side]['transmitted_frames']}, received {change[side]['received_frames']}"
            + (f", taken by the receivers {seen}" if exact else ", which is not held against the receivers")
            + "".join(f", {key} {count}" for key, count in lost.items())
            + (
                f", PAUSE frames {change[side]['pause_frames']}"
                if after.get("counts_pause")
                else "; PAUSE frames are not counted"
            )
            + f", link changes {change[side]['link_changes']}",
        )
    if all(result.raw["ports"][side]["after"]["is_read"] for side in SIDES):
        sent, came = change["left"]["transmitted_frames"], change["right"]["received_frames"]
        back, returned = change["right"]["transmitted_frames"], change["left"]["received_frames"]
        yield CableCheck(
            name=f"{what}: conserved",
            state=CableState.GOOD if (sent, back) == (came, returned) else CableState.BAD,
            found=f"left to right {sent} sent and {came} received, right to left {back} and {returned}",
        )


def change_of(port: Mapping[str, Mapping[str, Any]]) -> dict[str, int]:
    """Changes of the counters of a port during a trial."""
    return {
        key: after - port["before"][key]
        for key, after in port["after"].items()
        if isinstance(after, int) and not isinstance(after, bool) and port["before"].get(key) is not None
    }


def ceiling_check(what: str, entry: CeilingEntry | None) -> CableCheck:
    """`entry`: None where it was not measured, as no frame came."""
    name = f"{what}: ceiling"
    if entry is None:
        return CableCheck(name=name, state=CableState.ABSENT, found="not measured, as no frame came")
    ceiling = entry.ceiling
    kept = ceiling.rate_fps
    return CableCheck(
        name=name,
        state=CableState.ABSENT if kept is None else CableState.GOOD,
        found="this machine kept its schedule at no load that was tried"
        if kept is None
        else f"{kept:,.0f} fps in each direction were kept"
        + (", the most that was asked for" if ceiling.is_at_maximum else ""),
    )


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
                        way=OWN_LOOP_WAY,
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
