# SPDX-License-Identifier: Apache-2.0
"""How verbs are registered: their help cuts no option and breaks no line early, whatever the terminal's
width; and values that need no conversion are taken as they are: Typer makes a validator of pydantic for each,
and to load that takes longer than many a verb runs."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import typer
from rich.table import Table
from rich.text import Text
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

_MOST_TYPE_COLUMNS = 20
"""Most columns of an option's values, such as `OCTETS|imix:LETTERS`; longer ones are folded, so that the text
beside them has room."""
_TYPES, _HELP = -2, -1


class Verbs(typer.Typer):
    """A `typer.Typer` whose verbs are `Verb`s, in a `Group`."""

    def __init__(self, **others: Any) -> None:
        super().__init__(cls=Group, **others)

    @cached_property
    def built(self) -> Any:
        """The command that is made of all verbs. That takes longer than to run a short one, and a process may
        run many."""
        return get_command(self)

    def command(
        self, name: str | None = None, *, cls: type[TyperCommand] | None = None, **others: Any
    ) -> Callable[[Any], Any]:
        def register(verb: Any) -> Any:
            text = others.get("help") or inspect.getdoc(verb) or ""
            return make(name, cls=cls or Verb, **{**others, "help": _unfolded(text)})(verb)

        make = super().command
        return register


def _unfolded(text: str) -> str:
    """Paragraphs of one line each: Rich keeps the line breaks of a docstring, which has another width."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in inspect.cleandoc(text).split("\n\n"))


class _WithPlainValues:
    """Values of its options are taken plainly (`PlainValue`)."""

    def get_params(self, ctx: Any) -> list[Any]:
        found: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        take_plainly(found)
        return found


class Group(_WithPlainValues, TyperGroup):
    """Verbs below one name."""


class Verb(_WithPlainValues, TyperCommand):
    """Rich makes the columns of a help equally narrow, and cuts what does not fit then: names of options
    among it."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        with _whole_options():
            super().format_help(ctx, formatter)


class _OptionTable(Table):
    """An option's names are placed below each other and stay whole; values and texts beside them are
    folded."""

    def add_row(self, *cells: Any, **others: Any) -> None:
        *required, long, short, opposite, short_opposite, values, text = cells
        lines = ((long, short), (opposite, short_opposite))
        names = Text("\n").join(Text(", ").join(name for name in line if name.plain) for line in lines)
        names.rstrip()
        super().add_row(*required, names, values, text, **others)
        for column in self.columns[:_TYPES]:
            column.no_wrap = True
        self.columns[_TYPES].max_width = _MOST_TYPE_COLUMNS
        self.columns[_HELP].overflow = "fold"


@contextmanager
def _whole_options() -> Iterator[None]:
    # Typer has no setting for this; tests/cli/test_help.py sees every verb's help at 80 columns.
    from typer import rich_utils  # takes a tenth of a second, for a help alone

    table, rich_utils.Table = rich_utils.Table, _OptionTable  # type: ignore[attr-defined]
    try:
        yield
    finally:
        rich_utils.Table = table  # type: ignore[attr-defined]


_ANY: Final = ""
"""Matches a verb whatever options it has."""


def _called(*options: str) -> tuple[tuple[str, str], ...]:
    return tuple((option.partition(" ")[0], f"Did you mean {option}?") for option in options)


def _exported(form: str) -> tuple[tuple[str, str], ...]:
    return ((_ANY, (f"To write a run to such a file: evenhand export FILE --format {form} --output FILE")),)


_OUTPUT = (
    *_called("--run", "--html", "--output", "--picture"),
    (_ANY, "Results go to stdout: add `> FILE` at the end of the command."),
)
_SIZE, _REPEATED, _DIRECTION = (
    _called("--frame-size"),
    _called("--repetitions", "--count", "--rounds"),
    _called("--direction"),
)
_MAXIMUM = (
    ("--after", "Name a run with the throughput (--after RUN): this verb has no highest load of its own."),
    *_called("--rate", "--throughput"),
)
_NO_RUN = (
    (
        _ANY,
        ("Learning is not a measurement and is not stored. With --json its document is written to stdout."),
    ),
)
_IPV6 = (
    ("--plan", "Name an IPv6 plan: --plan gateway-v6."),
    ("PLAN", "Name an IPv6 plan, such as gateway-v6."),
)
_IPV4 = (
    ("--plan", "Name an IPv4 plan: --plan gateway-v4."),
    ("PLAN", "Name an IPv4 plan, such as gateway-v4."),
)
OTHER_NAMES: Mapping[str, tuple[tuple[str, str], ...]] = {
    "export --csv": _called("--format csv"),
    "export --parquet": _called("--format parquet"),
    "export --uti": _called("--format uti"),
    "plan frames --csv": _called("--format csv"),
    "plan frames --pcap": _called("--format pcap"),
    "import --testbed": _called("--output"),
    "report --page": _called("--output"),
    "report --report": _called("--output"),
    "plan prove --count": _called("--frames"),
    "learn --waits": (
        ("--wait", "There are no trials here, so there is only one wait: --wait TIME, after each round."),
    ),
    "learn --run": _NO_RUN,
    "learn --no-run": _NO_RUN,
    "--testbed": _called("--dut"),
    "--run": (("FILE", "Write FILE without an option, after the name of the command."),),
    "--csv": _exported("csv"),
    "--parquet": _exported("parquet"),
    "--uti": _exported("uti"),
    "--format": (*_called("--json"), *_exported("csv")),
    "--output": _OUTPUT,
    "--out": _OUTPUT,
    "-o": _OUTPUT,
    "--save": _OUTPUT,
    "--report": _called("--html"),
    "--page": _called("--html"),
    "--rate": _called("--throughput", "--maximum-rate"),
    "--load": _called("--rate", "--throughput", "--maximum-rate"),
    "--max-rate": _called("--maximum-rate", "--rate", "--throughput"),
    "--maximum-rate": _MAXIMUM,
    "--size": _SIZE,
    "--packet-size": _SIZE,
    "--mtu": _called("--largest-frame"),
    "--time": _called("--duration"),
    "--length": _called("--duration"),
    "--loss": _called("--loss-ratio"),
    "--resolution": _called("--precision"),
    "--repeat": _REPEATED,
    "--iterations": _REPEATED,
    "--runs": _REPEATED,
    "--one-way": _DIRECTION,
    "--bidirectional": _DIRECTION,
    "--unidirectional": _DIRECTION,
    "--queues": _called("--elements", "--channels"),
    "--cores": _called("--elements"),
    "--rss": _called("--hash"),
    "--ports": _called("--source-ports"),
    "--ipv6": _IPV6,
    "-6": _IPV6,
    "--ipv4": _IPV4,
    "-4": _IPV4,
    "--version": ((_ANY, "Run `evenhand --version`."),),
}
"""By name, or by verb and name: what is said after an option or an argument that the verb must have.
The first that fits is."""


def called_here(verb: str, name: str, known: Collection[str], arguments: Collection[str]) -> str | None:
    """What to do where a verb has no option of this name; None if nothing is known of it.

    Args:
        verb: Such as `plan frames`.
        known: The verb's options.
        arguments: Its arguments, as they are written in its usage.
    """
    bare = name.lstrip("-").replace("-", "_").upper()
    if bare in arguments:
        return f"Write {bare} without an option, after the name of the command."
    there = (*OTHER_NAMES.get(f"{verb} {name}", ()), *OTHER_NAMES.get(name, ()))
    return next((text for needed, text in there if needed in (_ANY, *known, *arguments)), None)


PLACE = "_runtime_param"
"""Where Typer keeps what converts a parameter's value; older versions have none, and need no pydantic."""


def take_plainly(parameters: Iterable[Any]) -> None:
    """Have each of these parameters of Typer take texts, names of files, its default, and no value at all as
    they are."""
    for parameter in parameters:
        if getattr(parameter, PLACE, parameter) is None:
            setattr(parameter, PLACE, PlainValue())


class PlainValue:
    """In place of Typer's conversion, which is made when a value needs it."""

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value that the verb gets. Errors are Typer's."""
        kind, info = param.type_descriptor.annotation, param.type_descriptor.parameter_info
        is_list = param.multiple or param.nargs == -1
        if value is None:
            return () if is_list else None
        if not is_list and info.parser is None:
            if kind is Path and isinstance(value, str | Path) and _is_any_path(info, value):
                return Path(value)
            if type(value) is kind and kind is not Path:
                return value  # a text, or a default of another type
        setattr(param, PLACE, None)
        return param.get_runtime_param().coerce(value, param=param, ctx=ctx)


def _is_any_path(info: Any, path: str | Path) -> bool:
    """Whether Typer has nothing to say of it: it need not be there, and what is there can be read."""
    is_asked = info.exists or info.writable or info.resolve_path or info.allow_dash or info.path_type
    is_either = info.file_okay and info.dir_okay
    return is_either and not is_asked and (not os.path.exists(path) or os.access(path, os.R_OK))
