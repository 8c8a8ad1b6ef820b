# SPDX-License-Identifier: Apache-2.0
"""Host: reading files of /proc and /sys, where any of them may be missing."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


def read_text(path: Path) -> str | None:
    """Stripped; None if it is not there or not ours to read."""
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return None


def read_number(path: Path) -> int | None:
    """None if there is none."""
    text = read_text(path)
    return int(text) if text is not None and text.isdecimal() else None


def list_folder(path: Path) -> list[Path]:
    """Its entries in order; none if it is not there or not ours to read."""
    try:
        return sorted(path.iterdir())
    except OSError:
        return []


def parse_cpu_list(text: str | None) -> tuple[int, ...]:
    """`0-3,7` as the kernel writes it; none for an empty list, `(null)`, or a missing file."""
    cpus: list[int] = []
    for part in (text or "").split(","):
        first, _, last = part.strip().partition("-")
        if first.isdecimal() and (last or first).isdecimal():
            cpus += range(int(first), int(last or first) + 1)
    return tuple(cpus)


def format_cpu_list(cpus: Iterable[int]) -> str:
    """The same back: `0-3,7`."""
    parts: list[list[int]] = []
    for cpu in sorted(cpus):
        if parts and parts[-1][-1] == cpu - 1:
            parts[-1].append(cpu)
        else:
            parts.append([cpu])
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in parts)
