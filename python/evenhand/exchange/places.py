# SPDX-License-Identifier: Apache-2.0
"""Exchange: the parts of another tester's file that a configuration was made of, so that what the reader of
configurations says is said of the file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from evenhand.exchange.foreign import shown
from evenhand.exchange.outcome import Became, ImportedKey

Places = dict[str, tuple[str, int]]
"""The part of the file, and its line, by the part of the configuration."""


def row_of(key: str, value: str, line: int, became: Became, text: str) -> ImportedKey:
    """A row of the file itself."""
    return ImportedKey(key=shown(key)[1:-1], value=shown(value)[1:-1], line=line, became=became, text=text)


def named(rows: Iterable[ImportedKey], places: Places) -> tuple[ImportedKey, ...]:
    """The rows with the parts of the file that they are about; those of ports are left out."""
    return tuple(_named(row, places) for row in rows if not row.key.startswith("ports["))


def _named(row: ImportedKey, places: Places) -> ImportedKey:
    key = (
        row.key
        if row.key in places
        else max((place for place in places if row.key.startswith(place)), key=len, default="")
    )
    if not key:
        return row
    name, line = places[key]
    return replace(row, key=name, line=line)
