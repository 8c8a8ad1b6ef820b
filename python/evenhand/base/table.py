# SPDX-License-Identifier: Apache-2.0
"""A table as data: terminal (`terminal_table.py`), page and summary render the same one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table; its title is shown before each value where the page or terminal is narrow."""

    title: str
    is_number: bool = False
    """Justified to the right, and never broken."""
    is_name: bool = False
    """A short text that is never broken."""


@dataclass(frozen=True, slots=True)
class Cell:
    """Text, with a class of the page's style sheet, and perhaps a small picture: behind it on a page, instead
    of it on a terminal."""

    text: str
    style: str = ""
    spark: Any = ""
    """Markup that is safe, for a page."""
    bar: float | None = None
    """A share of 1: on a terminal a bar, as long as there is room. Without room for a table the text."""


Row = Sequence[Cell]
"""A cell for each column."""


@dataclass(frozen=True, slots=True)
class Table:
    """Columns, and rows with a cell for each of them."""

    columns: tuple[Column, ...]
    rows: list[Row]
    caption: str = ""
    """Sentences that explain the table: above it on a page, below it on a terminal."""
    title: str = ""
    """Headline on a terminal; a page has headlines of its own."""


def make_table(
    titles: Sequence[str | Column],
    rows: Iterable[Sequence[str | Cell]],
    *,
    caption: str = "",
    title: str = "",
    fold: Sequence[str] = (),
) -> Table:
    """A title that begins with `#` is that of a column of numbers.

    Args:
        fold: Columns that leave the table for its caption where all rows have the same in them.
    """
    columns = [
        each if isinstance(each, Column) else Column(each.removeprefix("#"), each.startswith("#"))
        for each in titles
    ]
    cells = [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in rows]
    same = [
        n
        for n, column in enumerate(columns)
        if column.title in fold and cells and len({row[n].text for row in cells}) == 1
    ]
    said = "; ".join(f"{columns[n].title} {cells[0][n].text}" for n in same)
    kept = [n for n in range(len(columns)) if n not in same]
    caption = " ".join(part for part in (caption, f"All rows: {said}." if said else "") if part)
    return Table(tuple(columns[n] for n in kept), [[row[n] for n in kept] for row in cells], caption, title)
