# SPDX-License-Identifier: Apache-2.0
"""Station 9: what the tables of a run file are, version by version. Both who writes and who reads take them
from here."""

from __future__ import annotations

from collections.abc import Mapping

APPLICATION_ID = 0x45564E48
"""`EVNH` in the SQLite header: `file` and other programs can distinguish a run from other databases."""
VERSION = 3
"""What is written, of single verbs and campaigns alike. All of `SCHEMAS` are read."""
SUFFIX = ".evenhand"

# No write-ahead log: a run is one file that can be copied at any time between trials, and a trial takes
# seconds.
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

# A seed is text everywhere: it has 64 bits without a sign, SQLite's integers have 63.
_OF_CAMPAIGNS = """
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

TO_VERSION_3 = (
    "ALTER TABLE run ADD COLUMN merged_from TEXT",
    "ALTER TABLE searches ADD COLUMN role TEXT NOT NULL DEFAULT 'measurement'",
    "ALTER TABLE searches ADD COLUMN number INTEGER NOT NULL DEFAULT 1",
    "ALTER TABLE searches ADD COLUMN imix TEXT",
    "ALTER TABLE points ADD COLUMN procedure TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE points ADD COLUMN frame_size INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE points ADD COLUMN imix TEXT",
    "ALTER TABLE points ADD COLUMN repetitions INTEGER NOT NULL DEFAULT 0",
)
"""One statement each: with them a campaign of version 2 is brought up to date when it is resumed.
`points.document` has the rest of a point since then."""

SCHEMAS: Mapping[int, str] = {
    1: _VERSION_1,
    2: _VERSION_1 + _OF_CAMPAIGNS,
    3: _VERSION_1 + _OF_CAMPAIGNS + ";\n".join((*TO_VERSION_3, "")),
}
"""A reader takes a file only if its tables are word for word these. Never change one that was published; add
one."""
