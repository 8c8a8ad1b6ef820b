# SPDX-License-Identifier: Apache-2.0
"""How verbs are registered: their help cuts no option and breaks no line early, whatever the terminal's
width."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import typer
from rich.table import Table
from rich.text import Text
from typer.core import TyperCommand
from typer.main import get_command

_MOST_TYPE_COLUMNS = 20
"""Most columns of an option's values, such as `OCTETS|imix:LETTERS`; longer ones are folded, so that the text
beside them has room."""
_TYPES, _HELP = -2, -1


class Verbs(typer.Typer):
    """A `typer.Typer` whose verbs are `Verb`s."""

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


class Verb(TyperCommand):
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
