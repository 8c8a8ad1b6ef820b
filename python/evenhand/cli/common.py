# SPDX-License-Identifier: Apache-2.0
"""What the verbs share: options, and how values from the command line are read."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.segment import Segment

from evenhand.base.errors import shortened
from evenhand.base.terminal_table import rendered
from evenhand.base.visible import visible_lines

if TYPE_CHECKING:
    from evenhand.plan import AddressPlan

PageOption = Annotated[
    Path | None,
    typer.Option(
        "--html", metavar="FILE", help="Also write a page. An older page with this name is replaced."
    ),
]
JsonOption = Annotated[
    bool, typer.Option("--json", help="Write one JSON document to stdout; progress goes to stderr.")
]
TestbedArgument = Annotated[
    str,
    typer.Argument(
        metavar="TESTBED", help="A testbed file (TOML), or lab:linux or lab:vm for a lab that is up."
    ),
]
EngineOption = Annotated[
    Path | None, typer.Option("--engine", help="The engine; default: EVENHAND_ENGINE, this checkout's, PATH.")
]


def quoted(path: Path | str) -> str:
    """The path as it has to be typed."""
    return shlex.quote(str(path))


def warn_about(plan: AddressPlan) -> None:
    """Say on stderr what of the plan may spoil a result (SEED-06)."""
    from evenhand.plan import plan_warnings  # a verb without a plan need not load it

    for warning in plan_warnings(plan):
        err().print(f"Warning: {warning}", markup=False, soft_wrap=True)


def out() -> Console:
    """stdout, for results. Without a terminal lines are not folded; tables then have the width of COLUMNS, or
    200."""
    return _console(stderr=False)


def err() -> Console:
    """stderr, for progress and notes; the same."""
    return _console(stderr=True)


_COMMAND = re.compile(r"(?<![\w/.-])(sudo )?evenhand (?=[a-z])")
_PATH_OF_SUDO = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Debian's secure_path: sudo does not find what is only in a user's own PATH."""


@cache
def program() -> str:
    """What has to be typed for `evenhand`: its path as it was started, where PATH does not have it, as in a
    clone."""
    typed = sys.argv[0]
    is_path = os.sep in typed and Path(typed).name == "evenhand"
    return shlex.quote(typed) if is_path and shutil.which("evenhand") is None else "evenhand"


@cache
def program_with_sudo() -> str:
    """The same behind `sudo`."""
    if shutil.which("evenhand", path=_PATH_OF_SUDO) is not None:
        return "sudo evenhand"
    known = shutil.which("evenhand") if program() == "evenhand" else None
    return f"sudo {program() if known is None else shlex.quote(known)}"


def as_commands_here(text: str) -> str:
    """The text, with the commands in it as they have to be typed here: who needed sudo needs it again."""
    is_by_sudo = os.geteuid() == 0 and "SUDO_USER" in os.environ

    def typed(found: re.Match[str]) -> str:
        return f"{program_with_sudo() if found[1] or is_by_sudo else program()} "

    return _COMMAND.sub(typed, text)


class _Output(Console):
    """Tables fit the terminal, and the commands that a note suggests can be copied as they are. What it
    prints may come from a file or a program of others: nothing of it is an order to the terminal."""

    def _render_buffer(self, buffer: Iterable[Segment]) -> str:
        # The one place through which all text goes. Rich adds its own colours behind it, and moves the cursor
        # by segments that are marked as control.
        return super()._render_buffer(
            segment if segment.control else segment._replace(text=visible_lines(segment.text))
            for segment in buffer
        )

    def print(self, *objects: Any, **options: Any) -> None:
        super().print(
            *(
                as_commands_here("\n".join(map(shortened, part.split("\n"))))
                if isinstance(part, str)
                else rendered(part)
                for part in objects
            ),
            **options,
        )


def _console(*, stderr: bool) -> Console:
    # No emoji: `:a:` in an IPv6 address or `:x:` in a file is what it is.
    console = _Output(stderr=stderr, highlight=False, emoji=False)
    if console.is_terminal:
        return console
    columns = os.environ.get("COLUMNS", "")
    width = (int(columns) if columns.isdecimal() else 0) or 200
    return _Output(stderr=stderr, highlight=False, emoji=False, width=width, soft_wrap=True)


def write_text(text: str) -> None:
    """Text for stdout as it is, for a program or a file; on a terminal so that nothing of it is an order."""
    sys.stdout.write(visible_lines(text) if sys.stdout.isatty() else text)
    sys.stdout.flush()


def write_json(document: Any) -> None:
    """The one document of `--json`."""
    sys.stdout.write(json.dumps(_with_error(document), indent=2, allow_nan=False) + "\n")
    sys.stdout.flush()


def write_json_line(document: Any) -> None:
    """One of several documents, of a verb that goes on: each is a line, so that a reader knows where it
    ends."""
    sys.stdout.write(json.dumps(_with_error(document), allow_nan=False) + "\n")
    sys.stdout.flush()


def _with_error(document: Any) -> Any:
    """A verb's document says in one place, its key `error`, whether it is a result (null) or not."""
    if not isinstance(document, dict) or "command" not in document or "error" in document:
        return document
    return {"command": document["command"], "error": None, **document}


def command_line() -> list[str]:
    """The command line as typed, for the run file."""
    return ["evenhand", *sys.argv[1:]]
