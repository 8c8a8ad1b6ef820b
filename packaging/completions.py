#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what tells bash, zsh and fish how to complete `evenhand`: Typer's own scripts, which ask the command
itself.

packaging/completions.py FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

from typer._completion_shared import get_completion_script

NAMES = {"bash": "evenhand", "zsh": "_evenhand", "fish": "evenhand.fish"}
"""As each shell looks for it."""


def script(shell: str) -> str:
    """The text of one shell's file."""
    text = get_completion_script(prog_name="evenhand", complete_var="_EVENHAND_COMPLETE", shell=shell)
    # zsh loads the file when the first completion is asked for, and that one must be answered too.
    return text + ('\n\n_evenhand_completion "$@"\n' if shell == "zsh" else "\n")


def main(folder: Path) -> None:
    """Write a file for each shell into a folder of its name."""
    for shell, name in NAMES.items():
        (folder / shell).mkdir(parents=True, exist_ok=True)
        (folder / shell / name).write_text(script(shell), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
