# SPDX-License-Identifier: Apache-2.0
"""Station 9: what the tables of a run file are, version by version. Both who writes and who reads take them from here."""

from __future__ import annotations

from collections.abc import Mapping

APPLICATION_ID = 0x45564E48
"""`EVNH` in the SQLite header: `file` and other programs can tell a run from other databases."""
SCHEMA_VERSION = 1
"""What this Evenhand writes; it reads all of `SCHEMAS`."""
SUFFIX = ".evenhand"

# No write-ahead log: a run is one file that can be copied at any time between trials, and a trial takes seconds.
_VERSION_1 = """
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

SCHEMAS: Mapping[int, str] = {1: _VERSION_1}
"""A reader takes a file only if its tables are word for word these. Never change one that was published; add one."""
