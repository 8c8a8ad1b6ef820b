# SPDX-License-Identifier: Apache-2.0
"""Lists of CPUs as the kernel writes them: `0-3,7`."""

from __future__ import annotations

from collections.abc import Iterable


def parse_cpu_list(text: str | None) -> tuple[int, ...]:
    """No CPUs for an empty list, `(null)`, or a missing file."""
    cpus: list[int] = []
    for part in (text or "").split(","):
        first, _, last = part.strip().partition("-")
        if first.isdecimal() and (last or first).isdecimal():
            cpus += range(int(first), int(last or first) + 1)
    return tuple(cpus)


def format_cpu_list(cpus: Iterable[int]) -> str:
    """The same back, for people too."""
    parts: list[list[int]] = []
    for cpu in sorted(cpus):
        if parts and parts[-1][-1] == cpu - 1:
            parts[-1].append(cpu)
        else:
            parts.append([cpu])
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in parts)
