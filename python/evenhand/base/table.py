# SPDX-License-Identifier: Apache-2.0
"""A table as data: terminal (`terminal_table.py`), page and summary render the same one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evenhand.base.units import OneUnit, one_unit, write_alone


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
    value: float | None = None
    """What the text says, of a cell that `measured` made."""
    kind: str = ""
    """The unit in which the value is kept."""
    bound: str = ""
    """What is written before it."""
    after: str = ""
    """What is written behind it."""


def measured(
    value: float | None,
    kind: str,
    *,
    bound: str = "",
    after: str = "",
    none: str = "-",
    style: str = "",
    spark: Any = "",
) -> Cell:
    """A cell with a measured value. In a table all values of a kind have one unit and one number of decimals;
    the unit is in the heading where a column has one kind only.

    Args:
        kind: The unit in which it is kept: fps, us, s, ratio, another kind of `one_unit.py`, or what is
            counted.
        bound: What is written before it, such as `>= `.
        after: What is written behind it, and behind its unit where it has one.
        none: The text where there is no value.
        spark: As in `Cell`.
    """
    if value is None:
        return Cell(none, style, spark)
    text = f"{bound}{write_alone(value, kind)}{after}"
    return Cell(text, style, spark, value=value, kind=kind, bound=bound, after=after)


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
    columns = columns_of(titles)
    cells = [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in rows]
    same = [
        n
        for n, column in enumerate(columns)
        if column.title in fold and cells and len({row[n].text for row in cells}) == 1
    ]
    said = "; ".join(f"{columns[n].title} {cells[0][n].text}" for n in same)
    kept = [n for n in range(len(columns)) if n not in same]
    caption = " ".join(part for part in (caption, f"All rows: {said}." if said else "") if part)
    shown, rows_shown = _with_units_above(
        [columns[n] for n in kept], [[row[n] for n in kept] for row in cells]
    )
    return Table(tuple(shown), rows_shown, caption, title)


def columns_of(titles: Iterable[str | Column]) -> list[Column]:
    """Columns of such titles, as `make_table` takes them."""
    return [
        each if isinstance(each, Column) else Column(each.removeprefix("#"), each.startswith("#"))
        for each in titles
    ]


def in_one_unit(rows: Iterable[Sequence[str | Cell]]) -> list[Row]:
    """The rows with one unit and one number of decimals for all values of a kind, which each cell has."""
    cells = [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in rows]
    units = _units(cells)
    return [[_rewritten(cell, units, with_unit=True) for cell in row] for row in cells]


def in_row(title: str, cells: Sequence[str | Cell]) -> Row:
    """A row of its own quantity, in a table that has a column for each thing: its unit is behind its title,
    and its values have one number of decimals."""
    row = [cell if isinstance(cell, Cell) else Cell(cell) for cell in cells]
    units = _units([row])
    shown = [replace(_rewritten(cell, units, with_unit=False), value=None) for cell in row]
    return [Cell(", ".join([title, *(unit.unit for unit in units.values())])), *shown]


def _units(rows: Iterable[Row]) -> dict[str, OneUnit]:
    found: dict[str, list[float]] = {}
    for row in rows:
        for cell in row:
            if cell.value is not None:
                found.setdefault(cell.kind, []).append(cell.value)
    return {kind: one_unit(values, kind) for kind, values in found.items()}


def _with_units_above(columns: list[Column], rows: list[list[Cell]]) -> tuple[list[Column], list[Row]]:
    """The unit of a column whose values are all of one kind is in its heading."""
    units = _units(rows)
    kinds = [{row[n].kind for row in rows if row[n].value is not None} for n in range(len(columns))]
    headings = [
        replace(column, title=f"{column.title}, {units[min(of_column)].unit}".removesuffix(", "))
        if len(of_column) == 1
        else column
        for column, of_column in zip(columns, kinds, strict=True)
    ]
    return headings, [
        [_rewritten(cell, units, with_unit=len(kinds[n]) > 1) for n, cell in enumerate(row)] for row in rows
    ]


def _rewritten(cell: Cell, units: Mapping[str, OneUnit], *, with_unit: bool) -> Cell:
    if cell.value is None:
        return cell
    unit = units[cell.kind]
    shown = f"{unit.write(cell.value)} {unit.unit}".rstrip() if with_unit else unit.write(cell.value)
    return replace(cell, text=f"{cell.bound}{shown}{cell.after}")
