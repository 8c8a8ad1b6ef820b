# SPDX-License-Identifier: Apache-2.0
"""Station 9: the record of one repetition: keeps its trials, and gives those again that it had before it was
cut short."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from evenhand.search import Goal
from evenhand.series.store import (
    MeasuredSearch,
    SearchWriter,
    insert_search,
    insert_trial,
    now,
    search_columns,
    to_json,
)
from evenhand.trial import Load, TrialResult, was_offered

if TYPE_CHECKING:
    from evenhand.series.campaign_store import CampaignStore

STOPPED = "stopped"
_CONDITIONS = ("waits", "host_macs", "directions", "mix")
"""Of a set-up, what must be the same for a search to go on; the testbed and the DUT besides."""


class CannotContinueError(Exception):
    """The repetition that was cut short was measured under other conditions, or asks for other trials now. It
    must begin anew."""


@dataclass(slots=True, kw_only=True)
class _Begun:
    """A search that was cut short, or that ended before its repetition was."""

    search_id: int
    conditions: dict[str, Any]
    trials: list[dict[str, Any]] = field(default_factory=list)
    """As documents, in order."""


class RepetitionRecorder:
    """`procedure.Recorder` and `trial.Replay` in one; made by `CampaignStore.begin`.

    Of a repetition that goes on, what it stored before stands, and is not stored twice.
    """

    def __init__(self, store: CampaignStore, repetition_id: int, *, is_resumed: bool) -> None:
        self.repetition_id = repetition_id
        self.is_resumed = is_resumed
        self._store = store
        self._lap = time.monotonic()
        self._begun = self._read_begun() if is_resumed else {}
        self._versions = self._read_versions()
        self._replayed: Iterator[dict[str, Any]] = iter(())

    @property
    def stored_trials(self) -> int:
        """That it had when it was cut short."""
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
    def search(
        self,
        name: str,
        *,
        kind: str,
        plan: Mapping[str, Any],
        frame_size: int,
        seed: int,
        setup: Mapping[str, Any],
        goal: Goal | Mapping[str, Any],
    ) -> Iterator[CampaignSearchWriter]:
        """See `Recorder`. CannotContinueError if the search that goes on was made under other conditions."""
        measured = MeasuredSearch.begun(name, kind, goal)
        self._store.measured.append(measured)
        columns = search_columns(
            name, kind=kind, plan=plan, frame_size=frame_size, seed=seed, setup=setup, goal=goal
        )
        begun = self._begun.get(name)
        if begun is None:
            with self._store.writing() as connection:
                search_id = insert_search(connection, {"repetition_id": self.repetition_id, **columns})
            begun = _Begun(search_id=search_id, conditions=_conditions_of(columns))
        elif begun.conditions != _conditions_of(columns):
            raise CannotContinueError
        self._replayed = iter(begun.trials)
        yield CampaignSearchWriter(self._store, self, begun.search_id, measured, stored=len(begun.trials))
        if next(self._replayed, None) is not None:
            raise CannotContinueError  # it has ended with fewer trials than it had

    def _read_versions(self) -> dict[str, str]:
        """With which it was begun."""
        (row,) = self._store.rows(
            "SELECT versions FROM sessions JOIN repetitions ON sessions.id = session_id WHERE repetitions.id"
            " = ?",
            self.repetition_id,
        )
        versions: dict[str, str] = json.loads(row["versions"])
        return versions

    def _read_begun(self) -> dict[str, _Begun]:
        found = {}
        for row in self._store.rows(
            "SELECT * FROM searches WHERE repetition_id = ? ORDER BY id", self.repetition_id
        ):
            trials = self._store.rows(
                "SELECT document FROM trials WHERE search_id = ? ORDER BY number", row["id"]
            )
            found[row["name"]] = _Begun(
                search_id=row["id"],
                conditions=_conditions_of(row),
                trials=[json.loads(trial["document"]) for trial in trials],
            )
        return found


class CampaignSearchWriter(SearchWriter):
    """Writes the trials of one search of a repetition, but those that it has already. Its methods raise
    StorageError."""

    def __init__(
        self,
        store: CampaignStore,
        recorder: RepetitionRecorder,
        search_id: int,
        measured: MeasuredSearch,
        *,
        stored: int,
    ) -> None:
        super().__init__(store, search_id, measured)
        self._recorder = recorder
        self._stored = stored

    def _insert(
        self, result: TrialResult, *, number: int, purpose: str, attempt: int, is_full_length: bool
    ) -> None:
        # What was stopped by hand is no trial: it is made anew when the campaign goes on.
        if number <= self._stored or result.was_stopped:
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

    def finish_with(self, outcome: str, result: Mapping[str, Any] | None = None) -> None:
        """The same of another procedure."""
        if outcome == STOPPED:
            return
        with self._store.writing() as connection:
            connection.execute(
                "UPDATE searches SET finished_at = ?, outcome = ?, result = ? WHERE id = ? AND finished_at"
                " IS NULL",
                (now(), outcome, None if result is None else to_json(result), self._search_id),
            )


def _conditions_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """What must be the same. A router that was started anew has other threads and sockets."""
    setup: dict[str, Any] = json.loads(row["setup"])
    testbed = dict(setup.get("testbed") or {})
    testbed["dut"] = {key: value for key, value in (testbed.get("dut") or {}).items() if key != "threads"}
    dut = setup.get("dut") or {}
    is_ours = dut.get("kind") == "reference"  # and has other MACs each time; it is known by its configuration
    configured = {key: value for key, value in (dut.get("config") or {}).items() if key != "ports"}
    return {
        **{key: row[key] for key in ("name", "kind", "frame_size", "seed")},
        **{key: json.loads(row[key]) for key in ("plan", "goal")},
        **{key: setup.get(key) for key in _CONDITIONS},
        "traffic": {key: value for key, value in (setup.get("traffic") or {}).items() if key != "macs"},
        "resolved": None if is_ours else setup.get("resolved"),
        "testbed": testbed,
        "dut": [dut.get("kind"), configured],
    }
