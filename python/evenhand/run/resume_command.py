# SPDX-License-Identifier: Apache-2.0
"""Station 9: the command that goes on with a campaign, in its one spelling, and where the campaign file was.

What a campaign is stored in is made to be sent to others, and has no folder in it. The user's state folder
remembers that on this machine.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
from pathlib import Path

from evenhand.base.new_file import real_path
from evenhand.base.state_folder import read_state, replace_state, state_file
from evenhand.spec.presets import PRESET_PREFIX

VERSION = 1
MOST_KEPT = 100
"""Campaigns. The oldest are forgotten."""


def remember_source(path: Path, source: Path) -> None:
    """Keep where the campaign file is. Where nothing can be written, `find_source` finds less.

    Args:
        path: What the campaign is stored in.
    """
    if source.name.startswith(PRESET_PREFIX):
        return
    key = str(real_path(path))
    kept = {name: place for name, place in _remembered().items() if name != key}
    entries = {key: str(real_path(source)), **kept}
    with contextlib.suppress(OSError):
        replace_state(
            state_file("campaigns.json"),
            {"version": VERSION, "sources": dict(list(entries.items())[:MOST_KEPT])},
        )


def find_source(path: Path, name: str) -> Path | None:
    """The campaign file of this name: beside the campaign's file, in this folder, or where it was when the
    campaign began; None if it is in none of them. A preset is part of the program, and needs no file."""
    if name.startswith(PRESET_PREFIX):
        return Path(name)
    places = [path.parent / name, Path(name)]
    remembered = _remembered().get(str(real_path(path)))
    if remembered is not None and Path(remembered).name == name:
        places.append(Path(remembered))
    return next((place for place in places if place.is_file()), None)


def resume_command(path: Path, source: Path | None = None, *, on_page: bool = False) -> str:
    """`evenhand run --resume FILE`; the campaign file is named too where it would not be found by itself.

    Args:
        path: What the campaign is stored in.
        source: The campaign file, or its name alone; None: it is where `find_source` finds it, or it is
            not known.
        on_page: It is read elsewhere, and by others: no folder of this machine is named, and who measures as
            root may be read by users who are not.
    """
    if source is None or find_source(path, source.name) is not None:
        return f"{_sudo(path, on_page)}evenhand run --resume {_shown(path, on_page)}"
    named = shlex.quote(str(source)) if source.is_file() else f"FOLDER/{shlex.quote(source.name)}"
    return f"{_sudo(path, on_page)}evenhand run {named} --resume --run {_shown(path, on_page)}"


def again_command(path: Path, *, on_page: bool = False) -> str:
    """The command that measures once more what ended early or at the tester's limit; `on_page` as in
    `resume_command`."""
    return f"{_sudo(path, on_page)}evenhand run --resume {_shown(path, on_page)} --again"


def _shown(path: Path, on_page: bool) -> str:
    return shlex.quote(path.name if on_page else str(path))


def _sudo(path: Path, on_page: bool) -> str:
    """A campaign that root has begun is root's to go on with. A command for root's own terminal gets its sudo
    there, if it was typed before; on a page all others read it, but not where there is no sudo."""
    if not path.is_file():
        return ""
    if not os.access(path, os.W_OK):
        return "sudo "
    is_roots = on_page and os.geteuid() == 0 == path.stat().st_uid
    return "sudo " if is_roots and shutil.which("sudo") is not None else ""


def _remembered() -> dict[str, str]:
    sources = read_state(state_file("campaigns.json"), version=VERSION, key="sources")
    return (
        {name: place for name, place in sources.items() if isinstance(place, str)}
        if isinstance(sources, dict)
        else {}
    )
