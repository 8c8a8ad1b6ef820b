# SPDX-License-Identifier: Apache-2.0
"""Station 9: the command that goes on with a campaign. Its one spelling, for whoever advises it."""

from __future__ import annotations

import shlex
from pathlib import Path


def source_beside(path: Path, name: str) -> Path | None:
    """The campaign file of this name, beside the campaign's file or in this folder; None if it is in neither."""
    return next((place for place in (path.parent / name, Path(name)) if place.is_file()), None)


def resume_command(path: Path, source: Path | None = None) -> str:
    """`evenhand run --resume FILE`; the campaign file is named too where it would not be found by itself.

    Args:
        path: What the campaign is stored in.
        source: The campaign file; None: it is where `source_beside` finds it, or nobody knows.
    """
    if source is None or source_beside(path, source.name) is not None:
        return f"evenhand run --resume {shlex.quote(str(path))}"
    return f"evenhand run {shlex.quote(str(source))} --resume --run {shlex.quote(str(path))}"
