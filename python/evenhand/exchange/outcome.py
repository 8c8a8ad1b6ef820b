# SPDX-License-Identifier: Apache-2.0
"""Exchange: what became of each key of another tester's file. Nothing is dropped without a row."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


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
