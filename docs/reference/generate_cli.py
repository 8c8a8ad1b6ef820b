#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/reference/cli.md from the command line's own help texts; `make docs` runs it, tests/docs/
compares."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Any

from typer.main import get_command

from evenhand.cli.main import app_of

PAGE = Path(__file__).with_name("cli.md")
HEAD = r"""# Command line

<!-- Written by docs/reference/generate_cli.py; `make docs` writes it again. -->

Every verb has `--help` with an example. Results go to stdout, progress and notes to stderr. Options that take a value accept these forms:

| value | forms |
|---|---|
| RATE | `500000`, `500kfps`, `1Mfps`, `14.88Mfps`: frames per second per direction |
| TIME | `60`, `60s`, `2.5ms`, `100us`, `2min` |
| RATIO | `0.5%`, `0.005`, `100ppm` |
| COUNT | `1000000`, `1e8`, `100M`, `1G`: frames |
| OCTETS | `64`, `84`, `1518B`: frame size with FCS |
| TESTBED | a [testbed file](testbed-file.md), or `lab:linux` for the lab that is up |

| exit code | meaning |
|---|---|
| 0 | done; loss and INVALID trials are results |
| 1 | the answer is no: `plan prove` finds the draws suspicious, or `compare --fail-below` finds a point below the limit; or there is no answer: a procedure, a frame size of its table, or a point of `run` has ended without a number (a lower bound is a number, an infinite delay is none), or `demo` has no verdict |
| 2 | bad request: a value, a key, a missing confirmation; nothing was sent |
| 3 | host not ready: no permission, no device, no engine, no answer from the DUT, hosts that the DUT does not reach, a part that `--require` names |
| 4 | bug |
| 5 | the result cannot be written to stdout: a full disk, a closed descriptor; files have been written as usual |
| 141 | the reader of stdout has closed the pipe (`\| head`), as if SIGPIPE had ended the program; no message is written |
| 130, 143 | interrupted by Ctrl-C, by SIGTERM |

An error is three lines on stderr: what is wrong, where, and what to do next. `--debug` adds the traceback.

Every document of `--json` has `error`: null in a result. After an error the three lines are there too, under `error` ([contract/error.schema.json](../../contract/error.schema.json)): `what`, `where` and `next`; `code`, the exit code; and `id`, which identifies the error in a script, such as `plan.unknown-name`. An `id` stays when the words of its message change.
"""  # noqa: E501  (Markdown)


def render() -> str:
    """The page as it should be."""
    return HEAD + "".join(_sections("evenhand", get_command(app_of())))


def _sections(name: str, command: Any) -> list[str]:
    inner = getattr(command, "commands", None)
    text = f"\n## {name}\n\n{' '.join((command.help or '').split())}\n"
    if command.epilog:
        # The epilogs of groups list exit codes, which the page has above.
        text += "" if inner else f"\n```text\n{command.epilog.removeprefix('Example: ')}\n```\n"
    rows = [_row(parameter) for parameter in command.params if not parameter.name.endswith("completion")]
    if rows:
        text += "\n| argument or option | default | what |\n|---|---|---|\n" + "".join(rows)
    sections = [text]
    for inner_name, inner_command in sorted((inner or {}).items()):
        sections += _sections(f"{name} {inner_name}", inner_command)
    return sections


def _row(parameter: Any) -> str:
    is_option = parameter.opts[0].startswith("-")
    shown = (
        ", ".join(f"`{name}`" for name in parameter.opts)
        if is_option
        else f"`{parameter.metavar or parameter.name.upper()}`"
    )
    if is_option and parameter.metavar:
        shown += f" {parameter.metavar}".replace("|", "\\|")
    default = (
        "required"
        if parameter.required
        else f"`{value}`"
        if (value := default_of(parameter)) is not None
        else ""
    )
    return f"| {shown} | {default} | {(parameter.help or '').replace('|', chr(92) + '|')} |\n"


def default_of(parameter: Any) -> Any:
    """The default of an option as people type it; None if there is none to speak of."""
    default = parameter.default
    if parameter.required or default is None or default is False:
        return None
    return default.value if isinstance(default, enum.Enum) else default


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
