#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/reference/cli.md from the command line's own help texts; `make docs` runs it, tests/docs/
compares.

An option that several verbs have is written once, in a group; a verb has its own options, and names its
groups. Groups are the panels of `--help`, and names for what `--help` shows without one."""

from __future__ import annotations

import enum
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command

from evenhand.cli.main import app_of

PAGE = Path(__file__).with_name("cli.md")
HEAD = r"""# Command line

<!-- Written by docs/reference/generate_cli.py; `make docs` writes it again. -->

Every verb has `--help` with an example. Results go to stdout, progress and notes to stderr.

## Values

| value | forms |
|---|---|
| RATE | `500000`, `500kfps`, `1Mfps`, `14.88Mfps`: frames per second per direction |
| TIME | `60`, `60s`, `2.5ms`, `100us`, `2min` |
| RATIO | `0.5%`, `0.005`, `100ppm` |
| COUNT | `1000000`, `1e8`, `100M`, `1G`: frames |
| OCTETS | `64`, `84`, `1518B`: frame size with FCS |
| TESTBED | a [testbed file](testbed-file.md), or `lab:linux` for the lab that is up |

## Exit codes

| exit code | meaning |
|---|---|
| 0 | done; loss and INVALID trials are results |
| 1 | the answer is no (`plan prove` finds the draws suspicious, `compare --fail-below` finds a point below the limit), or there is none: a procedure, a frame size of its table, or a point of `run` ended without a number, for example because the DUT answers nothing any more, or `demo` has no verdict. A lower bound is a number, an infinite delay is none |
| 2 | bad request: a value, a key, a missing confirmation; nothing was sent |
| 3 | machine not ready: no permission, no device, no engine, no answer from the DUT, hosts that the DUT does not reach, a part that `--require` names |
| 4 | bug |
| 5 | the result cannot be written to stdout: a full disk, a closed descriptor; files have been written as usual |
| 141 | the reader of stdout has closed the pipe (`\| head`), as if SIGPIPE had ended the program; no message is written |
| 130, 143 | interrupted by Ctrl-C, by SIGTERM |

## Errors

An error is three lines on stderr: what is wrong, where, and what to do next. `--debug` adds the traceback. Documents of `--json` have `error`: null in a result, otherwise the three lines (`what`, `where`, `next`), the exit code (`code`), and an `id` for scripts, such as `plan.unknown-name`, which stays when the words change ([schema](../../contract/error.schema.json)).

## Shared options

Each verb below has its own arguments and options, and names the groups from which it takes others. A *measurement* takes [Traffic](#traffic), [Direct plans](#direct-plans),
[Plans with state](#plans-with-state), [Waits](#waits), [Validity](#validity) and [Run and output](#run-and-output).
"""  # noqa: E501  (Markdown)
GROUPS: dict[str, tuple[str, ...]] = {
    "Arguments": (),
    "Traffic": (
        "--plan",
        "--mix",
        "--frame-size",
        "--hosts",
        "--networks",
        "--host-mode",
        "--network-mode",
        "--routes",
        "--fixed-source",
        "--fixed-source-network",
        "--common-network",
        "--source-ports",
        "--destination-ports",
        "--direction",
        "--seed",
    ),
    "Direct plans": (),
    "Plans with state": (),
    "Search": (),
    "Waits": ("--waits",),
    "Validity": (),
    "Set-up of a DUT": (
        "--nat-ports",
        "--static-neighbors",
        "--nat-addresses",
        "--nat-table",
        "--translator",
    ),
    "Model of a device": ("--rate", "--hash", "--symmetric", "--key", "--table-size", "--table"),
    "Run and output": ("--run", "--no-run", "--host-name", "--engine", "--progress", "--json"),
}
"""Names for what `--help` shows without a panel. A shared option with a panel is in the group of that
name."""
MEASUREMENT = ("Traffic", "Direct plans", "Plans with state", "Waits", "Validity", "Run and output")
NEVER_SHARED = ("--first", "--vlan", "--largest-frame", "--force", "--html")
"""Two verbs have these, in which they are looked for."""
MODELS = ("predict", "router")
"""Verbs whose options of the same names mean a device, not a load."""
USUAL = {"Single waits": "Waits"}
"""Panels of `--help` whose options join others here."""


def render() -> str:
    """The page as it should be."""
    verbs = list(_verbs("evenhand", get_command(app_of())))
    users: dict[str, list[str]] = {}
    for name, command in verbs:
        for parameter in _parameters(command):
            if parameter.opts[0] not in NEVER_SHARED:
                users.setdefault(_row(parameter), []).append(name)
    groups: dict[str, dict[str, str]] = {name: {} for name in GROUPS}
    for name, command in verbs:
        for parameter in _parameters(command):
            if _is_shared(parameter, users):
                group = _group_of(name, parameter)
                groups.setdefault(group, {})[_row(parameter)] = _name(parameter)
    text = HEAD
    for group, rows in groups.items():
        text += f"\n### {group}\n\n" + "".join(_shared_rows(group, rows, users))
    # A verb that only has other verbs below it has no section: its help says what theirs say.
    shown = [(name, one) for name, one in verbs if name == "evenhand" or not hasattr(one, "commands")]
    return text + "\n## Verbs\n" + "".join(_section(name, one, users, groups) for name, one in shown)


def _verbs(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    """A command and those below it, each with the words that people type."""
    yield name, command
    for inner_name, inner in sorted((getattr(command, "commands", None) or {}).items()):
        yield from _verbs(f"{name} {inner_name}", inner)


def _parameters(command: Any) -> list[Any]:
    return [
        parameter
        for parameter in command.params
        if not parameter.name.endswith("completion") and not getattr(parameter, "hidden", False)
    ]


def _is_shared(parameter: Any, users: dict[str, list[str]]) -> bool:
    return len(users.get(_row(parameter), ())) > 1


def _name(parameter: Any) -> str:
    """An option as it is typed, an argument as it is shown."""
    option = str(parameter.opts[0])
    return option if option.startswith("-") else str(parameter.metavar or parameter.name.upper())


def _panel(parameter: Any) -> str:
    return str(getattr(parameter, "rich_help_panel", None) or "")


def _group_of(verb: str, parameter: Any) -> str:
    """Where a shared option is written."""
    option = parameter.opts[0]
    if panel := _panel(parameter):
        return USUAL.get(panel, panel.partition(" (")[0])
    if not option.startswith("-"):
        return "Arguments"
    if verb.removeprefix("evenhand ") in MODELS and option in GROUPS["Model of a device"]:
        return "Model of a device"
    names = [group for group, options in GROUPS.items() if option in options and group != "Model of a device"]
    if option == "--hash" and "dut" in verb:
        return "Set-up of a DUT"
    return names[0] if names else "Search"


def _shared_rows(group: str, rows: dict[str, str], users: dict[str, list[str]]) -> list[str]:
    """Those of a group in its order. One that differs from verb to verb says which have it."""
    order = GROUPS.get(group, ())
    variants = Counter(rows.values())
    shown = []
    for row in sorted(rows, key=lambda row: order.index(rows[row]) if rows[row] in order else len(order)):
        verbs = ", ".join(f"`{name.removeprefix('evenhand ')}`" for name in users[row])
        shown.append(
            re.sub(r"(`(?: \(.*?\))?): ", rf"\1 ({verbs}): ", row, count=1)
            if variants[rows[row]] > 1
            else row
        )
    return [f"- {row}\n" for row in shown]


def _section(name: str, command: Any, users: dict[str, list[str]], groups: dict[str, dict[str, str]]) -> str:
    text = f"\n### {name}\n\n{' '.join((command.help or '').split())}\n"
    if command.epilog and not hasattr(command, "commands"):
        # That of `evenhand` itself lists exit codes, which the page has above.
        text += f"\n```text\n{command.epilog.removeprefix('Example: ')}\n```\n"
    own: dict[str, list[str]] = {}
    shared: dict[str, list[str]] = {}
    for parameter in _parameters(command):
        if _is_shared(parameter, users):
            shared.setdefault(_group_of(name, parameter), []).append(_name(parameter))
        else:
            own.setdefault(_panel(parameter), []).append(f"- {_row(parameter)}\n")
    for panel, rows in own.items():
        text += f"\n{panel}:\n\n" if panel else "\n"
        text += "".join(rows)
    whole = {
        group
        for group in MEASUREMENT
        if group in shared and not set(groups[group].values()) - set(shared[group])
    }
    if whole == set(MEASUREMENT):
        shared = {group: options for group, options in shared.items() if group not in whole}
        shared["Traffic"] = []
    if shared:
        order = list(groups)
        taken = [_taken(group, shared[group], groups[group]) for group in sorted(shared, key=order.index)]
        text += f"\nShared: {'; '.join(taken)}.\n"
    return text


def _taken(group: str, options: list[str], rows: dict[str, str]) -> str:
    """A group as a verb takes it: whole, without some options, or only some options of it."""
    if not options:
        return "all of a [measurement](#shared-options)"
    if group == "Arguments":
        return ", ".join(f"`{option}`" for option in options)
    link = f"[{group}](#{group.lower().replace(' ', '-')})"
    wanting = [option for option in dict.fromkeys(rows.values()) if option not in options]
    if not wanting:
        return link
    if len(wanting) < len(options):
        return f"{link} without {', '.join(f'`{option}`' for option in wanting)}"
    return f"{', '.join(f'`{option}`' for option in options)} ({link})"


def _row(parameter: Any) -> str:
    """An option or argument with its value, default and help."""
    is_option = parameter.opts[0].startswith("-")
    names = ", ".join([*parameter.opts, *parameter.secondary_opts]) if is_option else _name(parameter)
    if is_option and parameter.metavar:
        names += f" {parameter.metavar}"
    default = default_of(parameter)
    told = "" if default in (None, "") or default is True else f" (default `{default}`)"
    if parameter.required and is_option:
        told = " (required)"
    return f"`{names}`{told}: {' '.join((parameter.help or '').split())}"


def default_of(parameter: Any) -> Any:
    """The default of an option as people type it; None if there is none to speak of."""
    default = parameter.default
    if parameter.required or default is None or default is False:
        return None
    return default.value if isinstance(default, enum.Enum) else default


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
