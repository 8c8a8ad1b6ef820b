# SPDX-License-Identifier: Apache-2.0
"""Host: reading files of /proc and /sys, where any of them may be missing."""

from __future__ import annotations

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
