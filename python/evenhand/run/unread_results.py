# SPDX-License-Identifier: Apache-2.0
"""Station 9: trials of a large run file, whose documents are read when something of them is needed: a table
of verdicts needs none, and those of 100,000 trials have hundreds of megabytes."""

from __future__ import annotations

import re
import sqlite3
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evenhand.base.errors import EngineError, HostError
from evenhand.run.snapshot import not_a_run
from evenhand.trial import TrialResult, Verdict

MOST_KEPT = 64
"""Results that are kept, those used last: what looks at one trial asks it for several things."""
_SOUGHT: list[re.Pattern[str]] = []
_VERDICTS = {verdict.value: verdict for verdict in Verdict}


def sought(pattern: str) -> re.Pattern[str]:
    """A text that is looked for in documents (`may_have`). All of them are looked for at once: a large file
    takes long to read."""
    made = re.compile(pattern)
    _SOUGHT.append(made)
    return made


class TrialDocuments:
    """The documents of the trials of one file. Every document is checked before it is used, as in a small
    file; it may be used by several threads."""

    def __init__(
        self, connection: sqlite3.Connection, path: Path, parse: Callable[[str], Mapping[str, Any]]
    ) -> None:
        """
        Args:
            connection: It is closed with this object.
            parse: Reads a document. ValueError if it is none.
        """
        self._connection = connection
        self._path = path
        self._parse = parse
        self._lock = threading.Lock()
        self._kept: OrderedDict[int, TrialResult] = OrderedDict()
        self._with_text: dict[re.Pattern[str], frozenset[int]] = {}
        weakref.finalize(self, connection.close)

    def with_text(self, pattern: re.Pattern[str]) -> frozenset[int]:
        """Ids of the trials whose documents have it anywhere, as text. Errors as in `read`."""
        if pattern not in self._with_text:
            new = [each for each in {*_SOUGHT, pattern} if each not in self._with_text]
            found: list[tuple[set[int], Callable[[str], object]]] = [(set(), each.search) for each in new]
            with self._reading() as connection:
                for row_id, text in connection.execute("SELECT id, document FROM trials"):
                    for ids, search in found if isinstance(text, str) else ():
                        if search(text):
                            ids.add(row_id)
            self._with_text |= {each: frozenset(ids) for each, (ids, _) in zip(new, found, strict=True)}
        return self._with_text[pattern]

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        try:
            with self._lock:
                yield self._connection
        except sqlite3.OperationalError as error:
            raise HostError(
                f"this file cannot be read any further: {error}",
                code="run.file-not-readable",
                where=str(self._path),
                next_step="If it is being written, try again; otherwise check its permissions.",
            ) from error
        except sqlite3.Error as error:
            raise not_a_run(self._path, str(error)) from error

    def _text(self, row_id: int) -> str:
        with self._reading() as connection:
            row = connection.execute("SELECT document FROM trials WHERE id = ?", (row_id,)).fetchone()
        if row is None or not isinstance(row[0], str):
            raise not_a_run(self._path, f"the trial with id {row_id} has no document")
        return row[0]

    def read(self, row_id: int, verdict: Verdict, intended_fps: float) -> TrialResult:
        """The whole trial.

        Raises:
            RequestError: Its document is gone, is none, or contradicts the rest of its row.
            HostError: It cannot be read.
        """
        with self._lock:
            kept = self._kept.get(row_id)
            if kept is not None:
                self._kept.move_to_end(row_id)
                return kept
        try:
            result = TrialResult.from_contract(self._parse(self._text(row_id)))
        except (EngineError, ValueError) as error:
            raise not_a_run(self._path, str(error)[:200]) from error
        if (result.verdict, result.intended_fps) != (verdict, intended_fps):
            raise not_a_run(self._path, f"the document of the trial with id {row_id} contradicts its row")
        with self._lock:
            self._kept[row_id] = result
            if len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        return result


class UnreadResult(TrialResult):
    """A trial of which verdict and load are known. All else is read when it is asked for, each time anew
    unless it was lately."""

    __slots__ = ("_documents", "_row_id")

    def __getattr__(self, name: str) -> Any:
        # Python asks this for a slot that was never set.
        if name not in TrialResult.__dataclass_fields__:
            raise AttributeError(name)
        return getattr(self._documents.read(self._row_id, self.verdict, self.intended_fps), name)

    def has_text(self, pattern: re.Pattern[str]) -> bool:
        """Whether the document has it anywhere, as text."""
        return self._row_id in self._documents.with_text(pattern)


def unread_result(
    documents: TrialDocuments, row_id: int, *, verdict: str, intended_fps: float, intended_duration_s: float
) -> UnreadResult:
    """What a row has of its trial. ValueError if the verdict is none."""
    made, put = object.__new__(UnreadResult), object.__setattr__
    put(made, "_documents", documents)
    put(made, "_row_id", row_id)
    put(made, "verdict", _VERDICTS.get(verdict) or Verdict(verdict))
    put(made, "intended_fps", intended_fps)
    put(made, "intended_duration_s", intended_duration_s)
    return made


def may_have(result: TrialResult, pattern: re.Pattern[str]) -> bool:
    """Whether it is worth reading for what such a text in its document says. True of what was read
    already."""
    return not isinstance(result, UnreadResult) or result.has_text(pattern)
