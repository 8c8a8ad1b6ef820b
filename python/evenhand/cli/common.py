# SPDX-License-Identifier: Apache-2.0
"""What the verbs share: options, and how values from the command line are read. A verb names a group of
options as a parameter, and Typer sees the options in it."""

from __future__ import annotations

import functools
import inspect
import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

import typer
from rich.console import Console
from rich.segment import Segment

from evenhand.base.errors import shortened
from evenhand.base.option import OptionField, option_field
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


Verb = Callable[..., int | None]


def with_options(verb: Verb) -> Verb:
    """Spread the groups among a verb's parameters: one that is a dataclass becomes its fields, as options;
    the verb gets it filled in. A group may hold others.

    The fields are annotated as parameters of Typer are. TypeError if two groups have a field of the same
    name.
    """
    hints = get_type_hints(verb, include_extras=True)
    groups: dict[str, type] = {}
    shown: list[inspect.Parameter] = []
    for parameter in inspect.signature(verb).parameters.values():
        annotation = hints[parameter.name]
        if _is_group(annotation):
            groups[parameter.name] = annotation
            shown += _options_of(annotation)
        else:
            annotation = _of_shell(parameter.name, annotation)
            shown.append(parameter.replace(annotation=annotation, kind=inspect.Parameter.KEYWORD_ONLY))

    @functools.wraps(verb)
    def call(**values: Any) -> int | None:
        for name, group in groups.items():
            values[name] = _filled_in(group, values)
        return verb(**values)

    names = [parameter.name for parameter in shown]
    if len(set(names)) < len(names):
        raise TypeError(
            f"{verb.__name__}: the same option in two groups:"
            f" {sorted({name for name in names if names.count(name) > 1})}"
        )
    # What Typer reads instead of the function itself.
    call.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    return call


def _filled_in(group: Any, values: dict[str, Any]) -> Any:
    """The group with its options, which are taken out of `values`."""
    hints = get_type_hints(group, include_extras=True)
    chosen = {
        field.name: _filled_in(hints[field.name], values)
        if _is_group(hints[field.name])
        else values.pop(field.name)
        for field in fields(group)
    }
    return group(**chosen)


def _is_group(annotation: Any) -> bool:
    return is_dataclass(annotation) and isinstance(annotation, type)


def _options_of(group: Any) -> Iterator[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    for field in fields(group):
        if _is_group(hints[field.name]):
            yield from _options_of(hints[field.name])
            continue
        default = inspect.Parameter.empty if field.default is MISSING else field.default
        annotation = _of_shell(field.name, hints[field.name])
        yield inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
        )


def _of_shell(name: str, annotation: Any) -> Any:
    """What Typer is shown of an option of ours (`base/option.py`); anything else as it is."""
    field = option_field(name, annotation)
    if field is None:
        return annotation
    option = field.option
    shell = typer.Option(
        option.declared or field.where,
        metavar=option.metavar or (None if option.grammar is None else option.grammar.metavar),
        help=option.help,
        min=option.least,
        max=option.most,
        rich_help_panel=option.panel,
    )
    return Annotated[_kind_of(field), shell]


def _kind_of(field: OptionField) -> Any:
    """The type that the shell reads: texts, but for numbers, flags, choices and names of files."""
    kinds = [kind for kind in (field.kind, *get_args(field.kind)) if kind is not type(None)]
    if field.choices:
        return field.kind
    if any(get_origin(kind) is list for kind in kinds):
        return list[str] | None
    found = next((kind for kind in (bool, int, Path) if kind in kinds), str)
    return found if field.kind is bool else found | None
