# SPDX-License-Identifier: Apache-2.0
"""Station 9: the record of what is measured now: keeps its trials, and, of a repetition that was cut short,
gives those again that it had before."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from evenhand.run.rows import insert, insert_trial, search_columns
from evenhand.run.run_file import now, to_json
from evenhand.run.stored_so_far import MeasuredSearch, StoredSoFar
from evenhand.search import DUT_GONE, Role, SearchHead, SearchResult, SearchTrial
from evenhand.trial import Load, TrialResult, was_offered

STOPPED = "stopped"
_CONDITIONS = ("waits", "host_macs", "directions", "mix", "rates")
"""Keys of a set-up that must be the same for a search to go on; also the testbed and the DUT."""


class CannotContinueError(Exception):
    """The repetition that was cut short was measured under other conditions, or asks for other trials now. It
    must begin anew."""


@dataclass(slots=True, kw_only=True)
class _Begun:
    """A search that was cut short, or that ended before its repetition was."""

    search_id: int
    conditions: dict[str, Any]
    trials: list[dict[str, Any]] = field(default_factory=list)
    """Trials as documents, in order."""


class RunRecorder:
    """`procedure.Recorder` and `trial.Replay` in one, of one repetition; made by `RunStore`.

    What a repetition that goes on has stored before is kept, and is not stored twice.
    """

    def __init__(self, store: StoredSoFar, repetition_id: int | None, *, is_resumed: bool = False) -> None:
        """
        Args:
            repetition_id: None: what is measured belongs to no point.
        """
        self.repetition_id = repetition_id
        self.is_resumed = is_resumed
        self._store = store
        self._lap = time.monotonic()
        self._begun = self._read_begun() if is_resumed else {}
        self._versions = self._read_versions() if is_resumed else {}
        self._searches: Counter[Role] = Counter()
        self._replayed: Iterator[dict[str, Any]] = iter(())

    @property
    def stored_trials(self) -> int:
        """Number of trials that it had when it was cut short."""
        return sum(len(begun.trials) for begun in self._begun.values())

    def lap_s(self) -> float:
        """Seconds since the last trial was stored, or since the repetition went on."""
        before, self._lap = self._lap, time.monotonic()
        return self._lap - before

    def add_versions(self, versions: Mapping[str, str]) -> None:
        """See `Recorder`. CannotContinueError if trials of another engine are there."""
        self._store.add_versions(versions)
        changed = any(
            self._versions[name] != version for name, version in versions.items() if name in self._versions
        )
        if changed and self.stored_trials:
            raise CannotContinueError

    def keep(self, result: Mapping[str, Any]) -> None:
        """See `Recorder`: a repetition ends with its result, see `RunStore.end`."""

    def take(self, load: Load) -> TrialResult | None:
        """See `Replay`. CannotContinueError if the search wants another trial than it wanted then."""
        document = next(self._replayed, None)
        if document is None:
            return None
        if not was_offered(load, document):
            raise CannotContinueError
        self._lap = time.monotonic()
        return TrialResult.from_contract(document)

    @contextmanager
    def search(self, head: SearchHead) -> Iterator[SearchWriter]:
        """See `Recorder`. CannotContinueError if the search that goes on was made under other conditions."""
        measured = MeasuredSearch(name=head.name, kind=head.kind, goal=head.throughput_goal)
        self._store.measured.append(measured)
        yield self._begin(head, search_columns(head), measured)
        if next(self._replayed, None) is not None:
            raise CannotContinueError  # it has ended with fewer trials than it had

    def _begin(self, head: SearchHead, columns: Mapping[str, Any], measured: MeasuredSearch) -> SearchWriter:
        self._searches[head.role] += 1
        number = self._searches[head.role]
        begun = self._begun.get((head.role, number))
        if begun is None:
            with self._store.writing() as connection:
                row = {**columns, "repetition_id": self.repetition_id, "number": number}
                search_id = insert(connection, "searches", row)
            begun = _Begun(search_id=search_id, conditions=_conditions_of(columns))
        elif begun.conditions != _conditions_of(columns):
            raise CannotContinueError
        self._replayed = iter(begun.trials)
        return SearchWriter(self._store, self, begun.search_id, measured, stored=len(begun.trials))

    def _read_versions(self) -> dict[str, str]:
        """Versions with which it was begun."""
        (row,) = self._store.rows(
            "SELECT versions FROM sessions JOIN repetitions ON sessions.id = session_id WHERE repetitions.id"
            " = ?",
            self.repetition_id,
        )
        versions: dict[str, str] = json.loads(row["versions"])
        return versions

    def _read_begun(self) -> dict[tuple[Role, int], _Begun]:
        """What was begun, by role and number."""
        found = {}
        for row in self._store.rows(
            "SELECT * FROM searches WHERE repetition_id = ? ORDER BY id", self.repetition_id
        ):
            trials = self._store.rows(
                "SELECT document FROM trials WHERE search_id = ? ORDER BY number", row["id"]
            )
            found[Role(row["role"]), row["number"]] = _Begun(
                search_id=row["id"],
                conditions=_conditions_of(row),
                trials=[json.loads(trial["document"]) for trial in trials],
            )
        return found


class SearchWriter:
    """Writes the trials of one search, but those that it has already; made by `RunRecorder.search`. Its
    methods raise StorageError."""

    def __init__(
        self,
        store: StoredSoFar,
        recorder: RunRecorder,
        search_id: int,
        measured: MeasuredSearch,
        *,
        stored: int,
    ) -> None:
        """
        Args:
            stored: Trials that it has.
        """
        self.outcome: str | None = None
        """How it has ended; None: it goes on."""
        self.result: Mapping[str, Any] | None = None
        self._store = store
        self._recorder = recorder
        self._search_id = search_id
        self._measured = measured
        self._stored = stored

    @property
    def trials(self) -> list[TrialResult]:
        """Those that it has made."""
        return [*self._measured.results, *(trial.result for trial in self._measured.trials)]

    def add_trial(self, trial: SearchTrial) -> None:
        """Store one trial. It is on disk when this returns."""
        self._measured.trials.append(trial)
        self._insert(
            trial.result,
            number=trial.number,
            purpose=str(trial.purpose),
            attempt=trial.attempt,
            is_full_length=trial.is_full_length,
        )

    def add_result(
        self,
        result: TrialResult,
        *,
        number: int,
        purpose: str,
        attempt: int = 1,
        is_full_length: bool = False,
    ) -> None:
        """Store one trial that belongs to no throughput search, such as a single one."""
        self._measured.results.append(result)
        self._insert(result, number=number, purpose=purpose, attempt=attempt, is_full_length=is_full_length)

    def _insert(
        self, result: TrialResult, *, number: int, purpose: str, attempt: int, is_full_length: bool
    ) -> None:
        if number <= self._stored or (self._store.is_campaign and result.was_stopped):
            return
        with self._store.writing() as connection:
            insert_trial(
                connection,
                self._search_id,
                result,
                number=number,
                purpose=purpose,
                attempt=attempt,
                is_full_length=is_full_length,
            )
            connection.execute(
                "UPDATE repetitions SET measured_s = measured_s + ? WHERE id = ?",
                (self._recorder.lap_s(), self._recorder.repetition_id),
            )

    def finish(self, result: SearchResult) -> None:
        """Store how the search ended."""
        self._measured.end = result
        self.finish_with(str(result.outcome), result.to_document())

    def finish_with(self, outcome: str, result: Mapping[str, Any] | None = None) -> None:
        """Store an outcome of another kind, such as `stopped`."""
        if self._store.is_campaign and outcome in (STOPPED, DUT_GONE):
            return
        document = None if result is None else to_json(result)
        with self._store.writing() as connection:
            connection.execute(
                "UPDATE searches SET finished_at = ?, outcome = ?, result = ? WHERE id = ? AND finished_at IS"
                " NULL",
                (now(), outcome, document, self._search_id),
            )
        self.outcome, self.result = outcome, result


def _conditions_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """What must be the same. A router that was started anew has other threads and sockets."""
    setup: dict[str, Any] = json.loads(row["setup"])
    testbed = dict(setup.get("testbed") or {})
    testbed["dut"] = {key: value for key, value in (testbed.get("dut") or {}).items() if key != "threads"}
    dut = setup.get("dut") or {}
    is_ours = dut.get("kind") == "reference"  # and has other MACs each time; it is known by its configuration
    configured = {key: value for key, value in (dut.get("config") or {}).items() if key != "ports"}
    return {
        **{key: row[key] for key in ("kind", "frame_size", "seed")},
        **{key: json.loads(row[key]) for key in ("plan", "goal")},
        **{key: setup.get(key) for key in _CONDITIONS},
        "traffic": {key: value for key, value in (setup.get("traffic") or {}).items() if key != "macs"},
        "resolved": None if is_ours else setup.get("resolved"),
        "testbed": testbed,
        "dut": [dut.get("kind"), configured],
    }
