# SPDX-License-Identifier: Apache-2.0
"""Host: which programs used the CPUs between two looks at /proc, so that what disturbs a tester has a name.

A program that started and ended between both looks is not seen.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from evenhand.rig.host.reading import list_folder, read_text

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
