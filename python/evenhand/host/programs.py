# SPDX-License-Identifier: Apache-2.0
"""Host: which programs used the CPUs between two looks at /proc, so that what disturbs a tester has a name.

A program that started and ended between both looks is not seen.
"""

from __future__ import annotations

import os
import re
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from evenhand.base.programs import in_checkout
from evenhand.host.finding import Finding, Part, State, list_folder, read_text
from evenhand.testbed import LEAST_MEMORY_MB

LEAST_SHARE = 0.05
"""Share of one CPU. Programs that use less are not named."""
MOST_NAMED = 5
_PARENT, _USER, _SYSTEM, _START = 1, 11, 12, 19
"""Fields of /proc/PID/stat behind the name, which may itself contain spaces and brackets; see proc(5)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramUse:
    """The CPU time of all processes of one name."""

    name: str
    busy_share: float
    """Share of one CPU: 2.0 is two whole CPUs."""
    pids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Process:
    name: str
    parent: int
    start: int
    ticks: int


@dataclass(frozen=True, slots=True)
class ProcessTimes:
    """The CPU time of each process at one moment."""

    at_s: float
    processes: Mapping[int, _Process]


def read_process_times(root: Path = Path("/")) -> ProcessTimes:
    """Take one look. Costs about 20 us for each process."""
    found = {}
    for folder in list_folder(root / "proc"):
        if folder.name.isdecimal():
            process = _parse(read_text(folder / "stat"))
            if process is not None:
                found[int(folder.name)] = process
    return ProcessTimes(at_s=time.monotonic(), processes=found)


def busiest_programs(
    before: ProcessTimes, after: ProcessTimes, *, own_pid: int | None = None
) -> tuple[ProgramUse, ...]:
    """The programs that used at least LEAST_SHARE of a CPU in between, the busiest first, at most MOST_NAMED.

    Args:
        own_pid: This process and its children are left out. Default: the calling process.
    """
    own_pid = os.getpid() if own_pid is None else own_pid
    seconds = max(after.at_s - before.at_s, 1e-3)
    ticks: dict[str, int] = defaultdict(int)
    pids: dict[str, list[int]] = defaultdict(list)
    for pid, process in after.processes.items():
        if own_pid in _ancestry(pid, after.processes):
            continue
        earlier = before.processes.get(pid)
        used = process.ticks - (earlier.ticks if earlier and earlier.start == process.start else 0)
        if used > 0:
            ticks[process.name] += used
            pids[process.name].append(pid)
    per_second = os.sysconf("SC_CLK_TCK")
    uses = [
        ProgramUse(name=name, busy_share=count / per_second / seconds, pids=tuple(pids[name]))
        for name, count in ticks.items()
    ]
    named = sorted((use for use in uses if use.busy_share >= LEAST_SHARE), key=lambda use: -use.busy_share)
    return tuple(named[:MOST_NAMED])


def _ancestry(pid: int, processes: Mapping[int, _Process]) -> set[int]:
    chain: set[int] = set()
    while pid in processes and pid not in chain:
        chain.add(pid)
        pid = processes[pid].parent
    return chain


def _parse(stat: str | None) -> _Process | None:
    """None for a process that has gone."""
    if stat is None or ")" not in stat:
        return None
    head, _, tail = stat.rpartition(")")
    fields = tail.split()
    if len(fields) <= _START:
        return None
    return _Process(
        name=head.partition("(")[2],
        parent=int(fields[_PARENT]),
        start=int(fields[_START]),
        ticks=int(fields[_USER]) + int(fields[_SYSTEM]),
    )


CAPABILITIES = {
    "CAP_NET_ADMIN": 12,
    "CAP_NET_RAW": 13,
    "CAP_IPC_LOCK": 14,
    "CAP_SYS_ADMIN": 21,
    "CAP_SYS_NICE": 23,
}
"""Name to bit (capability.h)."""
LAB_TOOLS = ("nsenter", "unshare", "mount")
"""Programs that start the engine inside the lab."""


def check_privileges(root: Path) -> Finding:
    """Root, capabilities, limits, and whether a group of vfio is this user's."""
    status, limits = read_text(root / "proc/self/status") or "", read_text(root / "proc/self/limits") or ""
    effective = int(_found(r"^CapEff:\s*([0-9a-f]+)", status) or "0", 16)
    held = {name for name, bit in CAPABILITIES.items() if effective >> bit & 1}
    is_root = (_found(r"^Uid:\s*\d+\s+(\d+)", status) or "") == "0"
    memlock = _found(r"^Max locked memory\s+(\S+)", limits) or "unknown"
    rtprio = _found(r"^Max realtime priority\s+(\S+)", limits) or "unknown"
    facts = {"is_root": is_root, "capabilities": sorted(held), "memlock": memlock, "rtprio": rtprio}
    names = "all of" if held == set(CAPABILITIES) else "none of" if not held else "of"
    shown = CAPABILITIES if held in (set(), set(CAPABILITIES)) else held
    found = (
        f"{'root' if is_root else 'not root'}; {names}"
        f" {', '.join(name.removeprefix('CAP_') for name in sorted(shown))};"
        f" memlock {_octets(memlock)}, rtprio {rtprio}"
    )
    missing = []
    if not is_root or not {"CAP_NET_ADMIN", "CAP_SYS_ADMIN"} <= held:
        missing.append(Part.LAB)
    if "CAP_NET_RAW" not in held:
        missing.append(Part.INTERFACES)
    groups = [device for device in list_folder(root / "dev/vfio") if device.name != "vfio"]
    may_open = any(os.access(device, os.R_OK | os.W_OK) for device in groups)
    may_lock = (
        "CAP_IPC_LOCK" in held
        or memlock == "unlimited"
        or (memlock.isdecimal() and int(memlock) >= LEAST_MEMORY_MB << 20)
    )
    if not is_root and not (may_open and may_lock):
        missing.append(Part.NICS)
    if missing:
        advice = (
            "This is root without its capabilities: run where they are available (in a privileged"
            " container, or on the host itself)."
            if is_root
            else "Use sudo for commands that work with these. The demo on the reference router runs for any"
            " user, but without SYS_NICE its threads have no priority over other programs. To try the Linux"
            " lab:"
        )
        commands = (
            () if is_root else (in_checkout("make demo-linux", installed="sudo evenhand demo --dut linux"),)
        )
        return Finding(
            name="privileges",
            found=found,
            state=State.MISSING,
            missing_for=tuple(missing),
            advice=advice,
            commands=commands,
            facts=facts,
        )
    return Finding(name="privileges", found=found, facts=facts)


def check_namespaces(root: Path, has_program: Callable[[str], bool]) -> Finding:
    """What the Linux lab is made of: network namespaces, a file system for BPF, and the programs that enter
    it."""
    lacking = []
    if not (root / "proc/self/ns/net").exists():
        lacking.append("network namespaces")
    if not (root / "sys/fs/bpf").is_dir():
        lacking.append("BPF (/sys/fs/bpf)")
    programs = [name for name in LAB_TOOLS if not has_program(name)]
    lacking += programs
    facts = {"lacking": lacking}
    if not lacking:
        return Finding(
            name="namespaces", found=f"network namespaces, BPF, {', '.join(LAB_TOOLS)}", facts=facts
        )
    return Finding(
        name="namespaces",
        found=f"lacking: {', '.join(lacking)}",
        state=State.MISSING,
        missing_for=(Part.LAB,),
        facts=facts,
        advice="The Linux lab needs them."
        if programs
        else "The Linux lab needs a kernel that supports them.",
        commands=("sudo apt-get install util-linux mount",) if programs else (),
    )


def _found(pattern: str, text: str) -> str | None:
    match = re.search(pattern, text, re.MULTILINE)
    return match[1] if match else None


def _octets(limit: str) -> str:
    return f"{int(limit) >> 20} MB" if limit.isdecimal() else limit
