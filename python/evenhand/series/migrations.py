# SPDX-License-Identifier: Apache-2.0
"""Station 9: the tables of a run file, and how a file of an older version is read as one of today's. The file itself is never rewritten."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager

SCHEMA_VERSION = 2
"""1: runs of a verb. 2: campaigns too."""
OLDEST_VERSION = 1

VERSION_1 = """
CREATE TABLE run (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    created_at TEXT NOT NULL,
    finished_at TEXT,
    command TEXT NOT NULL,
    versions TEXT NOT NULL,
    host TEXT NOT NULL
);
CREATE TABLE searches (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    started_at TEXT NOT NULL,
    finished_at TEXT,
    plan TEXT NOT NULL,
    frame_size INTEGER NOT NULL,
    seed TEXT NOT NULL,
    setup TEXT NOT NULL,
    goal TEXT NOT NULL,
    outcome TEXT,
    result TEXT
);
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
"""

# A seed is text everywhere: it has 64 bits without a sign, SQLite's integers have 63.
TO_VERSION_2 = """
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
    name TEXT PRIMARY KEY,
    document TEXT NOT NULL
);
CREATE TABLE points (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    suite TEXT NOT NULL,
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
ALTER TABLE searches ADD COLUMN repetition_id INTEGER REFERENCES repetitions (id);
CREATE INDEX searches_of_repetition ON searches (repetition_id);
"""
_STEPS = {1: TO_VERSION_2}
"""From this version to the next."""
SCHEMA = VERSION_1 + TO_VERSION_2
"""Of a new file."""


@contextmanager
def of_today(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """The same content in the tables of `SCHEMA_VERSION`: the connection itself, or to a copy in memory that goes away with the block."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version == SCHEMA_VERSION:
        yield connection
        return
    with closing(sqlite3.connect(":memory:")) as copy:
        connection.backup(copy)
        for old in range(version, SCHEMA_VERSION):
            copy.executescript(_STEPS[old])
        yield copy
