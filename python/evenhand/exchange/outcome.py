# SPDX-License-Identifier: Apache-2.0
"""Exchange: what became of each key of another tester's file. Nothing is dropped without a row."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Became(StrEnum):
    """What became of a key."""

    MAPPED = "mapped"
    """The same here."""
    DIFFERS = "differs"
    """Something near it; the row says what is different."""
    REFUSED = "refused"
    """It does not exist here; the row says why, and whether it will be."""
    MEANINGLESS = "meaningless"
    """Nothing here depends on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedKey:
    """A key, its value, and what became of it."""

    key: str
    value: str
    """Read and written anew, never the file's own text."""
    line: int | None = None
    """Line number in the file; None for what is on a command line, or is a default."""
    became: Became
    text: str

    def to_document(self) -> dict[str, Any]:
        return {
            "key": self.key,
            "value": self.value,
            "line": self.line,
            "became": str(self.became),
            "text": self.text,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedCommand:
    """A command here that does what one of the other tester did."""

    instead_of: str
    words: tuple[str, ...]

    def to_document(self) -> dict[str, Any]:
        return {"instead_of": self.instead_of, "words": list(self.words)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What was made of a file."""

    kind: str
    """Format of the file: "siitperf" or "otg"."""
    rows: tuple[ImportedKey, ...]
    testbed: str
    """The testbed file, as TOML."""
    commands: tuple[ImportedCommand, ...]
    """None if all the traffic is refused."""
    gaps: tuple[str, ...] = ()
    """What the testbed file still needs, by sentences."""
    notes: tuple[str, ...] = field(default=())
    """What a reader must know of the whole."""

    def is_any(self, became: Became) -> bool:
        return any(row.became is became for row in self.rows)
