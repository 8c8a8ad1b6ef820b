# SPDX-License-Identifier: Apache-2.0
"""Host: the clock, and how often a CPU is away. The figures are the engine's (`evenhand.trial.watch`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from evenhand.base.cpu_list import format_cpu_list
from evenhand.base.errors import EvenhandError
from evenhand.base.units import format_duration, format_ratio
from evenhand.host.finding import Finding, State, read_text
from evenhand.host.programs import ProgramUse
from evenhand.trial import CpuAbsences, Limits, Watch

CLOCK_FOLDER = Path("sys/devices/system/clocksource/clocksource0")
MOSTLY = 0.5
"""A CPU that was away because of the hypervisor for more than this share of the time cannot be helped from
inside."""
_NOTHING_SEEN: Mapping[str, Any] = {"seconds": 0.0, "cpus": [], "programs": []}


def check_clock(root: Path, watched: Watch | EvenhandError | None) -> Finding:
    """The kernel's clock source, and the error of the engine's tick rate.

    Args:
        watched: None if it was not watched; an error if the engine could not.
    """
    source = read_text(root / CLOCK_FOLDER / "current_clocksource")
    available = (read_text(root / CLOCK_FOLDER / "available_clocksource") or "").split()
    facts = {
        "source": source,
        "available": available,
        "ticks": asdict(watched.clock) if isinstance(watched, Watch) else None,
    }
    found = f"the kernel's clock source is {source or 'unknown'}"
    limit_ppm = Limits().clock_ppm
    if isinstance(watched, Watch):
        clock = watched.clock
        found += (
            f"; the engine's ticks {clock.ticks_per_second / 1e6:,.2f} million times a second,"
            f" {_ppm(clock.error_ppm_raw)} off"
            f" CLOCK_MONOTONIC_RAW, {_ppm(clock.error_ppm_monotonic)} off CLOCK_MONOTONIC (NTP)"
        )
        if abs(clock.error_ppm_raw) > limit_ppm:
            return Finding(
                name="clock",
                found=found,
                state=State.WEAK,
                facts=facts,
                advice=f"Trials are INVALID beyond {limit_ppm:g} ppm. See what the kernel"
                " reports about the TSC; use another machine if the kernel does not"
                " trust it:",
                commands=("sudo dmesg | grep -i tsc",),
            )
    if source is not None and source != "tsc" and "tsc" in available:
        return Finding(
            name="clock",
            found=found,
            state=State.WEAK,
            facts=facts,
            advice="Reading any other clock takes longer than reading the TSC:",
            commands=(f"echo tsc | sudo tee /{CLOCK_FOLDER}/current_clocksource",),
        )
    return Finding(
        name="clock",
        found=found,
        state=State.GOOD if isinstance(watched, Watch) else State.UNKNOWN,
        facts=facts,
    )


def check_absences(watched: Watch | EvenhandError | None, programs: Sequence[ProgramUse] = ()) -> Finding:
    """How often and how long each CPU was away. Weak if trials at the default limits would be INVALID for
    it.

    Args:
        programs: What else used the CPUs meanwhile; the advice names them.
    """
    if watched is None:
        return Finding(name="absences", found="not measured", state=State.UNKNOWN, facts=_NOTHING_SEEN)
    if isinstance(watched, EvenhandError):
        return Finding(
            name="absences", found=f"not looked for: {watched.what}", state=State.UNKNOWN, facts=_NOTHING_SEEN
        )
    facts = {
        "seconds": watched.seconds,
        "cpus": [asdict(cpu) for cpu in watched.cpus],
        "programs": [asdict(use) for use in programs],
    }
    found = f"in {format_duration(round(watched.seconds, 2))}: " + "; ".join(map(_describe, watched.cpus))
    limits = Limits()
    bad = [
        cpu
        for cpu in watched.cpus
        if cpu.away_us > limits.overdue_tolerance * watched.seconds * 1e6
        or cpu.longest_us > limits.longest_overdue_us
    ]
    if not bad:
        return Finding(name="absences", found=found, facts=facts)
    away_us, stolen_us = sum(cpu.away_us for cpu in bad), sum(cpu.stolen_us for cpu in bad)
    advice = (
        f"CPU {format_cpu_list(cpu.cpu for cpu in bad)}: away for more than"
        f" {format_ratio(limits.overdue_tolerance)} of the time, or for"
        f" {format_duration(limits.longest_overdue_us / 1000000.0)} at once. Trials there end"
        " INVALID, or with loss that the router did not cause."
    )
    if stolen_us > MOSTLY * away_us:
        return Finding(
            name="absences",
            found=found,
            state=State.WEAK,
            facts=facts,
            advice=(f"{advice} The hypervisor took them: let it give this virtual machine CPUs of its own."),
        )
    return Finding(
        name="absences",
        found=found,
        state=State.WEAK,
        facts=facts,
        advice=f"{advice} {_what_else_runs(programs)}",
        commands=("top -b -w 160 -n 1 | head -20",),
    )


def _what_else_runs(programs: Sequence[ProgramUse]) -> str:
    if not programs:
        return "Find out what else runs, and stop it or move it to other CPUs:"
    ours = [use for use in programs if use.name.startswith(_OF_EVENHAND)]
    others = [use for use in programs if use not in ours]
    said = ""
    if ours:
        said = (
            f"A tester, router or lab of Evenhand is at work itself: {_uses(ours)}."
            " Check again when it has ended. "
        )
    if not others:
        return f"{said}Find out what else runs, and stop it or move it to other CPUs:"
    return (
        f"{said}Meanwhile these programs used CPU time (100 % is one CPU): {_uses(others)}."
        " Find out what they are for, and stop them or move them to other CPUs:"
    )


_OF_EVENHAND = ("evenhand", "napi/ehd")
"""Names of our programs, and of the kernel's threads that forward in a lab."""


def _uses(programs: Sequence[ProgramUse]) -> str:
    return ", ".join(
        f"{use.name} {format_ratio(round(use.busy_share, 2))}"
        f" ({'process' if len(use.pids) == 1 else 'processes'} {_few(use.pids)})"
        for use in programs
    )


def _few(pids: Sequence[int]) -> str:
    return ", ".join(map(str, pids[:3])) + (", ..." if len(pids) > 3 else "")


def _describe(cpu: CpuAbsences) -> str:
    if not cpu.absences:
        return f"CPU {cpu.cpu} never away"
    times = "once" if cpu.absences == 1 else f"{cpu.absences} times"
    return (
        f"CPU {cpu.cpu} away {times}, longest {format_duration(cpu.longest_us / 1000000.0)},"
        f" {format_duration(cpu.away_us / 1000000.0)} in total,"
        f" {format_duration(cpu.stolen_us / 1000000.0) if cpu.stolen_us else 'none'} stolen"
    )


def _ppm(error: float) -> str:
    return f"{round(error, 2) + 0.0:+.2f} ppm"  # no -0.00
