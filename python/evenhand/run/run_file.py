# SPDX-License-Identifier: Apache-2.0
"""Station 9: a run is one SQLite file: how it is made, and how it is written, transaction by transaction."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evenhand.base.errors import HostError, RequestError
from evenhand.base.folders import without_folders
from evenhand.base.locks import Resource, holding
from evenhand.base.new_file import check_new, make_new
from evenhand.rig import read_host_facts, read_versions

APPLICATION_ID = 0x45564E48
"""`EVNH` in the SQLite header: `file` and other programs can distinguish a run from other databases."""
VERSION = 1
"""What is written, of single verbs and campaigns alike, and what is read."""
SUFFIX = ".evenhand"

# No write-ahead log: a run is one file that can be copied at any time between trials, and a trial takes
# seconds. A seed is text everywhere: it has 64 bits without a sign, SQLite's integers have 63.
SCHEMA = """
CREATE TABLE run (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    created_at TEXT NOT NULL,
    finished_at TEXT,
    command TEXT NOT NULL,
    versions TEXT NOT NULL,
    host TEXT NOT NULL,
    merged_from TEXT
);
CREATE TABLE campaign (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    name TEXT NOT NULL,
    source TEXT NOT NULL,
    seed TEXT NOT NULL,
    spec TEXT NOT NULL
);
CREATE TABLE sessions (
    id INTEGER PRIMARY KEY,
    started_at TEXT NOT NULL,
    finished_at TEXT,
    command TEXT NOT NULL,
    versions TEXT NOT NULL,
    host TEXT NOT NULL,
    notes TEXT NOT NULL
);
CREATE TABLE testbeds (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    document TEXT NOT NULL
);
CREATE TABLE points (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    suite TEXT NOT NULL,
    procedure TEXT NOT NULL,
    frame_size INTEGER NOT NULL,
    imix TEXT,
    repetitions INTEGER NOT NULL,
    document TEXT NOT NULL,
    reason TEXT
);
CREATE TABLE repetitions (
    id INTEGER PRIMARY KEY,
    point_id INTEGER NOT NULL REFERENCES points (id),
    session_id INTEGER NOT NULL REFERENCES sessions (id),
    number INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    seed TEXT NOT NULL,
    testbed TEXT NOT NULL,
    started_at TEXT NOT NULL,
    finished_at TEXT,
    outcome TEXT,
    reason TEXT,
    value REAL,
    result TEXT,
    measured_s REAL NOT NULL,
    UNIQUE (point_id, number, attempt)
);
CREATE TABLE searches (
    id INTEGER PRIMARY KEY,
    repetition_id INTEGER REFERENCES repetitions (id),
    role TEXT NOT NULL,
    number INTEGER NOT NULL,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    started_at TEXT NOT NULL,
    finished_at TEXT,
    plan TEXT NOT NULL,
    frame_size INTEGER NOT NULL,
    imix TEXT,
    seed TEXT NOT NULL,
    setup TEXT NOT NULL,
    goal TEXT NOT NULL,
    outcome TEXT,
    result TEXT
);
CREATE INDEX searches_of_repetition ON searches (repetition_id);
CREATE TABLE trials (
    id INTEGER PRIMARY KEY,
    search_id INTEGER NOT NULL REFERENCES searches (id),
    number INTEGER NOT NULL,
    purpose TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    is_full_length INTEGER NOT NULL,
    verdict TEXT NOT NULL,
    intended_fps REAL NOT NULL,
    intended_duration_s REAL NOT NULL,
    loss_ratio REAL NOT NULL,
    document TEXT NOT NULL,
    UNIQUE (search_id, number)
);
CREATE TABLE hooks (
    id INTEGER PRIMARY KEY,
    session_id INTEGER NOT NULL REFERENCES sessions (id),
    point_id INTEGER REFERENCES points (id),
    suite TEXT,
    moment TEXT NOT NULL,
    command TEXT NOT NULL,
    started_at TEXT NOT NULL,
    duration_s REAL NOT NULL,
    exit_code INTEGER,
    output TEXT NOT NULL
);
"""
"""A reader takes a file only if its tables are word for word these. From the first release on, a change of
them is another version, and files of every released version are read."""


def campaign_resource(path: Path) -> Resource:
    """What is locked: the file itself, by whatever name. RequestError if there is none."""
    try:
        facts = os.stat(path)
    except OSError as error:
        raise RequestError(
            "this file does not exist",
            code="run.no-such-file",
            where=str(path),
            next_step="Start it: evenhand run CAMPAIGN.toml",
        ) from error
    return Resource(key=f"campaign {facts.st_dev} {facts.st_ino}", label=f"the campaign {path.name}")


@contextmanager
def campaign_locked(path: Path) -> Iterator[None]:
    """No other process writes this file until the block ends. HostError names who does."""
    next_step = f"Wait until it ends, or stop it; to see its progress: evenhand status {path}"
    with holding([campaign_resource(path)], where=str(path), next_step=next_step):
        yield


LOCK_TIMEOUT_S = 60.0
"""Time for which a writer waits for a reader: whoever copies a large campaign while it goes on takes
seconds."""


class StorageError(HostError):
    """A run that was begun can be stored no further: its disk is full, or fails. What was stored before
    stays."""


class RunFile:
    """A run file that is open for writing."""

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
            remedy = "Free some space there" if is_full(error) else "Make sure that it can be written"
            raise StorageError(
                f"the run cannot be stored any further: {error}",
                code="run.not-storable",
                where=str(self.path),
                next_step=f"{remedy}, {self.after_failure}",
            ) from error

    def add_versions(self, versions: Mapping[str, str]) -> None:
        """Add what is known only later, such as the engine's. StorageError if it cannot be stored."""
        with self.writing() as connection:
            (old,) = connection.execute("SELECT versions FROM run").fetchone()
            connection.execute("UPDATE run SET versions = ?", (to_json({**json.loads(old), **versions}),))


def create_file(path: Path, *, command: list[str], host_name: bool = False) -> sqlite3.Connection:
    """A new file with empty tables, and what is known of this run, of its host and of what is installed.

    Raises:
        RequestError: It exists already; a run is never overwritten.
        HostError: It cannot be written.
    """
    connection = _create(path)
    try:
        connection.executescript(
            f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {VERSION};"
            f"PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; {SCHEMA}"
        )
        with connection:
            connection.execute(
                "INSERT INTO run (id, created_at, command, versions, host) VALUES (1, ?, ?, ?, ?)",
                (
                    now(),
                    to_json(without_folders(command)),
                    to_json(read_versions()),
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
    taken = "this file already exists; a run is never overwritten"
    if not path.name:
        raise RequestError(
            f"{str(path)!r} is not a file name",
            code="run.not-a-file-name",
            where="run",
            next_step="Name a new file, such as monday.evenhand.",
        )
    for leftover in ("-journal", "-wal", "-shm"):
        journal = path.with_name(path.name + leftover)
        check_new(journal, where=str(journal), what="this file would be mistaken for a part of the run")
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
            taken,
            code="run.file-exists",
            where=str(path),
            next_step="Name a file in a folder that only you can write to.",
        )
    return connection


def not_stored(path: Path, error: Exception, what: str = "the run") -> HostError:
    """What to say of a file that could not be begun."""
    cause = error.__cause__ if isinstance(error, StorageError) else error
    next_step = (
        "Free some space on its disk, or name a file on another disk."
        if is_full(cause)
        else "Name a file that can be written."
    )
    return HostError(
        f"{what} cannot be stored: {cause}", code="run.not-storable", where=str(path), next_step=next_step
    )


def is_full(error: BaseException | None) -> bool:
    """Whether SQLite found no room on the disk."""
    return getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL


def to_json(value: Any) -> str:
    """JSON as all documents in the file are written."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def now() -> str:
    """The time, as all times in the file are written: UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
