# SPDX-License-Identifier: Apache-2.0
"""Station 9: a run is one SQLite file; each trial is on disk before the next begins."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from evenhand.base.errors import HostError, RequestError
from evenhand.base.new_file import check_new, make_new
from evenhand.base.without_folders import without_folders
from evenhand.rig.host.facts import read_host_facts, read_versions
from evenhand.search import Goal, MlrGoals, SearchResult, SearchTrial, ThroughputGoal
from evenhand.series.schema import APPLICATION_ID, RUN_VERSION, SCHEMAS
from evenhand.trial import TrialResult

LOCK_TIMEOUT_S = 60.0
"""So long a writer waits for a reader: whoever copies a large campaign while it goes on takes seconds."""


class StorageError(HostError):
    """A run that was begun can be stored no further: its disk is full, or fails. What was stored before
    stays."""


@dataclass(slots=True, kw_only=True)
class MeasuredSearch:
    """What one search has measured so far, stored or not: nobody should lose an hour of trials to a disk that
    is full."""

    name: str
    kind: str
    goal: Goal | None
    """None if it is no throughput search."""
    trials: list[SearchTrial] = field(default_factory=list)
    """Of a throughput search."""
    results: list[TrialResult] = field(default_factory=list)
    """Of any other."""
    end: SearchResult | None = None

    @classmethod
    def begun(cls, name: str, kind: str, goal: Goal | Mapping[str, Any]) -> MeasuredSearch:
        """A search that has no trial yet; `goal` is a document if it is no throughput search."""
        return cls(name=name, kind=kind, goal=goal if isinstance(goal, ThroughputGoal | MlrGoals) else None)


class WritableFile:
    """A run's or a campaign's file that is open for writing."""

    after_failure = "or name a file elsewhere with --run, and start again."
    """What to do if it can be written no longer, after the cause is removed."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction. StorageError if it cannot be committed; then nothing of it is in the file."""
        try:
            with self._connection:
                yield self._connection
        except sqlite3.Error as error:
            remedy = "Make room there" if is_full(error) else "See that it can be written"
            raise StorageError(
                f"the run cannot be stored any further: {error}",
                where=str(self.path),
                next_step=f"{remedy}, {self.after_failure}",
            ) from error

    def add_versions(self, versions: Mapping[str, str]) -> None:
        """Add what is known only later, such as the engine's. StorageError if it cannot be stored."""
        with self.writing() as connection:
            (old,) = connection.execute("SELECT versions FROM run").fetchone()
            connection.execute("UPDATE run SET versions = ?", (to_json({**json.loads(old), **versions}),))


def search_columns(
    name: str,
    *,
    kind: str,
    plan: Mapping[str, Any],
    frame_size: int,
    seed: int,
    setup: Mapping[str, Any],
    goal: Goal | Mapping[str, Any],
) -> dict[str, Any]:
    """What the row of a search that begins says of it."""
    return {
        "name": name,
        "kind": kind,
        "plan": to_json(plan),
        "frame_size": frame_size,
        "seed": str(seed),  # it has 64 bits without a sign, SQLite's integers have 63
        "setup": to_json(without_folders(setup)),
        "goal": to_json(goal if isinstance(goal, Mapping) else goal.to_document()),
    }


def insert_search(connection: sqlite3.Connection, columns: Mapping[str, Any]) -> int:
    """Its id. It begins now, unless the columns say when. In a transaction of `WritableFile.writing`."""
    row = {"started_at": now(), **columns}
    search_id = connection.execute(
        f"INSERT INTO searches ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", tuple(row.values())
    ).lastrowid
    assert search_id is not None
    return search_id


def insert_trial(
    connection: sqlite3.Connection,
    search_id: int,
    result: TrialResult,
    number: int,
    *,
    purpose: str,
    attempt: int,
    is_full_length: bool,
) -> None:
    """In a transaction of `WritableFile.writing`."""
    connection.execute(
        "INSERT INTO trials (search_id, number, purpose, attempt, is_full_length, verdict, intended_fps,"
        " intended_duration_s, loss_ratio, document) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            search_id,
            number,
            purpose,
            attempt,
            is_full_length,
            str(result.verdict),
            result.intended_fps,
            result.intended_duration_s,
            result.loss_ratio,
            to_json(result.raw),
        ),
    )


class SearchWriter:
    """Writes the trials of one search; made by `RunStore.search`. Its methods raise StorageError."""

    def __init__(self, store: WritableFile, search_id: int, measured: MeasuredSearch) -> None:
        self._store = store
        self._search_id = search_id
        self._measured = measured

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

    def finish(self, result: SearchResult) -> None:
        """Store how the search ended."""
        self._measured.end = result
        self.finish_with(str(result.outcome), result.to_document())

    def finish_with(self, outcome: str, result: Mapping[str, Any] | None = None) -> None:
        """Store an outcome of another kind, such as `stopped`."""
        with self._store.writing() as connection:
            connection.execute(
                "UPDATE searches SET finished_at = ?, outcome = ?, result = ? WHERE id = ?",
                (now(), outcome, None if result is None else to_json(result), self._search_id),
            )


class RunStore(WritableFile):
    """Writes one run. A context manager; a run that is not left in order keeps `finished_at` empty.

    A run that ended before its first trial did leaves no file. Files are stored by their names, without
    folders.
    """

    def __init__(
        self,
        path: Path,
        *,
        command: list[str],
        versions: Mapping[str, str] | None = None,
        host_name: bool = False,
    ) -> None:
        """Create the file.

        Args:
            host_name: Store the host's name too.

        Raises:
            RequestError: It exists already; a run is never overwritten.
            HostError: It cannot be written.
        """
        super().__init__(path, create_file(path, command=command, versions=versions, host_name=host_name))
        self.measured: list[MeasuredSearch] = []
        self.stored_trials = 0
        """How many are in the file."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                with self.writing() as connection:
                    connection.execute("UPDATE run SET finished_at = ? WHERE id = 1", (now(),))
        finally:
            self.stored_trials = self._count_trials()
            self._connection.close()
            if kind is not None and self.stored_trials == 0:
                self.path.unlink(missing_ok=True)

    def _count_trials(self) -> int:
        """From the file: a transaction that failed has left nothing there."""
        with suppress(sqlite3.Error):
            return int(self._connection.execute("SELECT count(*) FROM trials").fetchone()[0])
        return sum(len(search.trials) + len(search.results) for search in self.measured)

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
    ) -> Iterator[SearchWriter]:
        """Begin a search. Ctrl-C or SIGTERM inside is stored as outcome `stopped`; its trials are kept.

        Raises:
            StorageError: It cannot be stored.
        """
        measured = MeasuredSearch.begun(name, kind, goal)
        self.measured.append(measured)
        search_id: int | None = None
        try:
            columns = search_columns(
                name, kind=kind, plan=plan, frame_size=frame_size, seed=seed, setup=setup, goal=goal
            )
            with self.writing() as connection:
                search_id = insert_search(connection, columns)
            yield SearchWriter(self, search_id, measured)
        except (KeyboardInterrupt, SystemExit):
            if search_id is not None:  # it may have come before the first line of whoever has the writer
                SearchWriter(self, search_id, measured).finish_with("stopped")
            raise


def create_file(
    path: Path,
    *,
    command: list[str],
    versions: Mapping[str, str] | None = None,
    host_name: bool = False,
    schema_version: int = RUN_VERSION,
) -> sqlite3.Connection:
    """A new file with empty tables, and what is known of this run, of its host and of what is installed.

    Raises:
        RequestError: It exists already; a run is never overwritten.
        HostError: It cannot be written.
    """
    connection = _create(path)
    try:
        connection.executescript(
            f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {schema_version};"
            f"PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; {SCHEMAS[schema_version]}"
        )
        with connection:
            connection.execute(
                "INSERT INTO run (id, created_at, command, versions, host) VALUES (1, ?, ?, ?, ?)",
                (
                    now(),
                    to_json(without_folders(command)),
                    to_json({**read_versions(), **(versions or {})}),
                    to_json(read_host_facts(host_name=host_name)),
                ),
            )
    except sqlite3.Error as error:
        connection.close()
        path.unlink(missing_ok=True)  # it was not there before
        raise not_stored(path, error) from error
    return connection


def _create(path: Path) -> sqlite3.Connection:
    """SQLite would follow a link, and take what it finds: a database, and a journal to roll back into it. So
    the file is made first."""
    taken = "this file exists already; a run is never overwritten"
    for leftover in ("-journal", "-wal", "-shm"):
        journal = path.with_name(path.name + leftover)
        check_new(journal, where=str(journal), what="this file would be taken for a part of the run")
    descriptor = make_new(path, where=str(path), what=taken)
    made = os.fstat(descriptor)
    # SQLite's locks would go with any other descriptor of the file that is closed later.
    os.close(descriptor)
    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=LOCK_TIMEOUT_S)
    except sqlite3.Error as error:
        path.unlink(missing_ok=True)
        raise not_stored(path, error) from error
    if not os.path.samestat(made, path.lstat()):
        connection.close()
        raise RequestError(
            taken, where=str(path), next_step="Name a file in a folder that nobody else may write."
        )
    return connection


def not_stored(path: Path, error: Exception, what: str = "the run") -> HostError:
    """What to say of a file that could not be begun."""
    next_step = (
        "Make room on its disk, or name a file on another."
        if is_full(error)
        else "Name a file that can be written."
    )
    return HostError(f"{what} cannot be stored: {error}", where=str(path), next_step=next_step)


def is_full(error: BaseException) -> bool:
    """Whether SQLite found no room on the disk."""
    return getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL


def to_json(value: Any) -> str:
    """As all documents in the file are written."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def now() -> str:
    """As all times in the file are written: UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
