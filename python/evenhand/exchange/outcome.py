# SPDX-License-Identifier: Apache-2.0
"""Exchange: what became of each key of another tester's file. Nothing is dropped without a row. What the
reader of configurations says is said of the parts of the file that a configuration was made of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from evenhand.exchange.foreign import shown


class Became(StrEnum):
    """What became of a key: the same here; something near it, and the row says what is different; it does not
    exist here, and the row says why; nothing here depends on it."""

    MAPPED = "mapped"
    DIFFERS = "differs"
    REFUSED = "refused"
    MEANINGLESS = "meaningless"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedKey:
    """A key, its value (read and written anew, never the file's own text), and what became of it. `line` is
    its number in the file; None for what is on a command line, or is a default."""

    key: str
    value: str
    line: int | None = None
    became: Became
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedCommand:
    """A command here that does what one of the other tester did."""

    instead_of: str
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What was made of a file of this kind, "siitperf" or "otg": a row for each key, the testbed file as
    TOML, and commands; none if all the traffic is refused. `gaps` are what the testbed file still needs, and
    `notes` what a reader must know of the whole, by sentences."""

    kind: str
    rows: tuple[ImportedKey, ...]
    testbed: str
    commands: tuple[ImportedCommand, ...]
    gaps: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def is_any(self, became: Became) -> bool:
        return any(row.became is became for row in self.rows)


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
