# SPDX-License-Identifier: Apache-2.0
"""Tables that fit the terminal without losing anything: text wraps, then headings do, then rows are stacked.
Numbers are never cut."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from textwrap import wrap
from typing import Any, Literal

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Column, Table
from rich.text import Text

from evenhand.base import table as data
from evenhand.base.errors import shortened

LEAST_TEXT = 24
"""Columns that a text needs to be read; a narrower one has its rows stacked."""
_GAP = 2
BAR_CELLS = 40
LEAST_BAR_CELLS = 10
STYLES: Mapping[str, str] = {
    "PASS": "green",
    "FAIL": "red",
    "INVALID": "yellow",
    "good": "green",
    "bad": "red",
    "flag": "yellow",
    "open": "cyan",
    "small": "dim",
    "total": "bold",
}
"""How a terminal shows the classes of cells (`Cell.style`); others are plain."""
Printable = RenderableType | data.Table
"""What a command prints."""


def rendered(part: Printable) -> RenderableType:
    """What Rich can print: a table with its caption below it, anything else as it is."""
    if not isinstance(part, data.Table):
        return part
    table = FittedTable.of(part)
    return Group(table, Text(part.caption)) if part.caption else table


class FittedTable(Table):
    """A table as all of ours look. A column that is justified to the right holds numbers, and one with
    `no_wrap` names: neither is broken.

    Rich cuts what does not fit, and drops whole columns, which may be the reason of a verdict.
    """

    def __init__(self, title: str | None = None) -> None:
        super().__init__(
            title=title or None,
            title_justify="left",
            title_style="bold",
            header_style="bold",
            box=None,
            pad_edge=False,
        )

    @classmethod
    def of(cls, table: data.Table) -> FittedTable:
        """The table, without its caption."""
        made = cls(table.title)
        for place, column in enumerate(table.columns):
            has_bars = any(row[place].bar is not None for row in table.rows)
            made.add_column(
                column.title,
                justify="right" if column.is_number else "left",
                no_wrap=column.is_name,
                min_width=LEAST_BAR_CELLS if has_bars else None,
            )
        for row in table.rows:
            made.add_row(*map(_of_cell, row))
        return made

    def add_column(  # type: ignore[override]
        self,
        header: str = "",
        *,
        justify: Literal["left", "right"] = "left",
        no_wrap: bool = False,
        **others: Any,
    ) -> None:
        super().add_column(
            header, justify=justify, no_wrap=no_wrap or justify == "right", **{"overflow": "fold", **others}
        )

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        most = max((len(str(column.header).split()) for column in self.columns), default=1)
        for table in (self, *(self._with_folded_headings(lines) for lines in range(2, most + 1))):
            if table._least_width(console, options) <= options.max_width:
                yield from Table.__rich_console__(table, console, options)
                return
        yield from self._stacked()

    def _least_width(self, console: Console, options: ConsoleOptions) -> int:
        # Measured without a limit: a measurement is cut to what there is.
        endless = options.update(max_width=10_000)
        return sum(_least_of(column, console, endless) for column in self.columns) + _GAP * (
            len(self.columns) - 1
        )

    def _with_folded_headings(self, lines: int) -> FittedTable:
        folded = copy(self)
        folded.columns = [replace(column, header=_fold(str(column.header), lines)) for column in self.columns]
        return folded

    def _stacked(self) -> RenderResult:
        """A paragraph for each row: its first cell, and below it a line for each other."""
        if self.title:
            yield Text(str(self.title), style="bold")
        first, *others = self.columns
        cells = [list(column.cells) for column in self.columns]
        for number in range(self.row_count):
            head = Table.grid(padding=(0, 1))
            head.add_row(Text(_label(first), style="bold"), cells[0][number])
            yield head
            lines = Table.grid(padding=(0, 2))
            lines.add_column(no_wrap=True)
            lines.add_column(overflow="fold")
            for column, of_column in zip(others, cells[1:], strict=True):
                if str(of_column[number]).strip() != "":
                    lines.add_row(f"  {_label(column)}", of_column[number])
            yield lines


class _Bar:
    """A bar that is as long as there is room, so that a series stays a table at 80 columns."""

    def __init__(self, share: float, text: str) -> None:
        self._share, self._text = share, text

    def __str__(self) -> str:
        return self._text

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(1, min(BAR_CELLS, options.max_width))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        filled = self._share * min(BAR_CELLS, options.max_width)
        yield "█" * int(filled) + ("▌" if filled % 1 >= 0.5 else "")


def _of_cell(cell: data.Cell) -> RenderableType:
    if cell.bar is not None:
        return _Bar(cell.bar, cell.text)
    return Text(shortened(cell.text), style=STYLES.get(cell.style, ""))


def _least_of(column: Column, console: Console, options: ConsoleOptions) -> int:
    cells = [Measurement.get(console, options, cell).maximum for cell in column.cells]
    heading = max((len(line) for line in str(column.header).splitlines()), default=0)
    widest = max(cells, default=0)
    return max(heading, widest if column.no_wrap else min(widest, column.min_width or LEAST_TEXT))


def _fold(heading: str, lines: int) -> str:
    """Fold the heading between words, as narrow as so many lines allow."""
    words = heading.split()
    for width in range(max(map(len, words), default=1), len(heading) + 1):
        folded = wrap(heading, width, break_long_words=False, break_on_hyphens=False)
        if len(folded) <= lines:
            return "\n".join(folded)
    return heading


def _label(column: Column) -> str:
    return " ".join(str(column.header).split())
