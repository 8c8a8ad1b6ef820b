# SPDX-License-Identifier: Apache-2.0
"""Station 9: reading run files, which may come from anybody (docs/how-to/keep-a-run.md says what of them is
checked)."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from functools import cache, lru_cache
from operator import itemgetter
from pathlib import Path
from types import MappingProxyType
from typing import Any

from evenhand.base.errors import EngineError, RequestError
from evenhand.base.validation.hostile_json import LEAST, MAX_TEXT, MOST, read_json
from evenhand.run.run_file import APPLICATION_ID, SCHEMA, SUFFIX, VERSION
from evenhand.run.snapshot import not_a_run, open_as_it_is
from evenhand.run.stored_shapes import SHAPES
from evenhand.run.unread_results import TrialDocuments, unread_result
from evenhand.search import Role
from evenhand.trial import LARGEST_SEED, TrialResult

_STEPS_PER_CALL = 1000
_STEPS_PER_OCTET = 4
"""Steps of SQLite's machine per octet, for a whole file: far more than a sound one takes."""
_LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: MAX_TEXT,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 100_000,
    sqlite3.SQLITE_LIMIT_COLUMN: 100,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 20,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 3,
    sqlite3.SQLITE_LIMIT_FUNCTION_ARG: 8,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER: 1,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 1,
}
_PRAGMAS = frozenset(
    {"application_id", "user_version", "page_count", "page_size", "quick_check", "table_info"}
)
_KNOWN_OF_TRIALS = (
    "id",
    "search_id",
    "number",
    "purpose",
    "attempt",
    "is_full_length",
    "verdict",
    "intended_fps",
    "intended_duration_s",
)
"""What a table of verdicts needs, without the documents."""
_MOST_ALIKE = 1000
"""Documents that are remembered while searches are read."""
_TYPES = {"TEXT": (str,), "INTEGER": (int,), "REAL": (float, int)}
StoredRow = dict[str, Any]


class RunTables:
    """The tables of a run file that was found sound: a copy, which only reads. Made by `open_to_read`."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path
        self.are_documents_kept = False

    @property
    def is_large(self) -> bool:
        """Whether it is the file itself, and no copy: its trials should not all be read at once."""
        return self._connection.in_transaction

    def keep_documents(self) -> TrialDocuments:
        """The documents of its trials, which can be read for as long as they are asked for."""
        self.are_documents_kept = True
        return TrialDocuments(self._connection, self._path, lambda text: as_mapping(text, "trials.document"))

    def rows(self, table: str, *wanted: str, last: int | None = None) -> list[StoredRow]:
        """All rows in the order of their ids, each value of its column's type; None only where the schema
        allows it.

        Args:
            wanted: Columns of the table, in its order; default all. A trial's document is large: who counts
                trials does without it.
            last: Only so many, the last ones. Default: all.

        Raises:
            ValueError: A value is of another type. `open_to_read` makes a RequestError of it.
        """
        names, rows = self.tuples(table, *wanted, last=last)
        return [dict(zip(names, row, strict=True)) for row in rows]

    def tuples(
        self, table: str, *wanted: str, last: int | None = None
    ) -> tuple[list[str], list[tuple[Any, ...]]]:
        """The same as names of columns, and the values of each row."""
        if not any((kind, name) == ("table", table) for kind, name, _ in _objects_of(SCHEMA)):
            raise ValueError(f"the table {table} is missing")
        described = self._connection.execute(f"PRAGMA table_info({table})").fetchall()
        columns = [column for column in described if not wanted or column[1] in wanted]
        names = [name for _, name, *_ in columns]
        end = "" if last is None else f" DESC LIMIT {last}"
        select = f"SELECT {', '.join(names)} FROM {table} ORDER BY id{end}"
        rows = self._connection.execute(select).fetchall()[:: 1 if last is None else -1]
        for values, (_, name, kind, is_not_null, *_) in zip(zip(*rows, strict=True), columns, strict=False):
            _check_column(values, kind, f"{table}.{name}", may_be_null=not is_not_null)
        return names, rows


@contextmanager
def open_to_read(path: Path) -> Iterator[RunTables]:
    """A run file, as it was last committed; it may be written meanwhile. Nothing on disk is changed.

    What goes wrong in the block with a value that was read becomes a RequestError: JSON that is none, a
    missing key, a wrong type.

    Raises:
        RequestError: There is no such file, it is not a run, it is damaged, or it has another format
            version.
        HostError: It cannot be read.
    """
    connection = open_as_it_is(path)
    tables = RunTables(connection, path)
    with ExitStack() as stack:
        stack.callback(connection.close)
        try:
            _restrain(connection)
            _check(connection, path)
            yield tables
            if tables.are_documents_kept:
                stack.pop_all()
                connection.rollback()  # writers need not wait any more
        except (
            sqlite3.Error,
            sqlite3.Warning,
            EngineError,
            ValueError,
            TypeError,
            LookupError,
            AttributeError,
            ArithmeticError,
        ) as error:
            raise not_a_run(
                path, f"it lacks {error}" if isinstance(error, KeyError) else _word(error)
            ) from error
        except (RecursionError, MemoryError) as error:
            raise not_a_run(path, "it contains more than can be read") from error


def as_mapping(text: str, what: str) -> dict[str, Any]:
    """A JSON object of the shape that `SHAPES` has for `what`. ValueError names it, and what in it is
    wrong."""
    value = _read(text, what)
    if not isinstance(value, dict):
        raise ValueError(f"{what} is not a JSON object")
    if what in SHAPES:
        SHAPES[what](value, what)
    return value


def as_texts(text: str, what: str) -> list[str]:
    """A JSON array of strings. ValueError names `what`."""
    value = _read(text, what)
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError(f"{what} is not a JSON array of texts")
    return value


def _read(text: str, what: str) -> Any:
    try:
        return read_json(text)
    except ValueError as error:
        raise ValueError(f"{what} is not valid JSON: {error}") from error


def as_seed(text: str) -> int:
    """ValueError unless it is a whole number of 64 bits without a sign."""
    is_number = text.isascii() and text.isdecimal() and len(text) <= len(str(LARGEST_SEED))
    if not is_number or int(text) > LARGEST_SEED:
        raise ValueError(f"{text[:30]!r} is not a seed")
    return int(text)


def _restrain(connection: sqlite3.Connection) -> None:
    """Before anything of the file is looked at."""
    for limit, value in _LIMITS.items():
        connection.setlimit(limit, value)
    for setting in ("trusted_schema = OFF", "cell_size_check = ON", "query_only = ON", "temp_store = MEMORY"):
        connection.execute(f"PRAGMA {setting}")
    (octets,) = connection.execute(
        "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
    ).fetchone()
    left: int = (1_000_000 + octets * _STEPS_PER_OCTET) // _STEPS_PER_CALL

    def count() -> bool:
        nonlocal left
        left -= 1
        return left < 0

    connection.set_progress_handler(count, _STEPS_PER_CALL)
    connection.set_authorizer(_authorize)


def _authorize(
    action: int, first: str | None, second: str | None, database: str | None, trigger: str | None
) -> int:
    """Allows reading tables and to end that, and nothing else that a schema could bring in: no function, no
    virtual table, no writing, no other file."""
    if trigger is not None:
        return sqlite3.SQLITE_DENY
    if action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ):
        return sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_PRAGMA:
        return sqlite3.SQLITE_OK if first in _PRAGMAS else sqlite3.SQLITE_DENY
    if action == sqlite3.SQLITE_TRANSACTION:
        return sqlite3.SQLITE_OK if first == "ROLLBACK" else sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_DENY


def _check(connection: sqlite3.Connection, path: Path) -> None:
    """The file has exactly the tables of `SCHEMA`, so a SELECT is nothing more than that; and they are
    sound."""
    (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    if application_id != APPLICATION_ID:
        raise RequestError(
            "this database is not a run of Evenhand",
            code="run.not-a-run",
            where=str(path),
            next_step=f"Name a run file (*{SUFFIX}).",
        )
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version != VERSION:
        raise RequestError(
            f"this run file has format version {version}, but this Evenhand reads version {VERSION}",
            code="run.other-format-version",
            where=str(path),
            next_step="Read it with the Evenhand that wrote it, or measure again. Formats are kept from the"
            " first release on.",
        )
    wanted, found = _objects_of(SCHEMA), _objects(connection)
    # A table says more than the index that went with it.
    for kind, name, _ in sorted(wanted ^ found, key=lambda other: (other[0] == "index", other)):
        raise not_a_run(path, f"the {_word(kind)} {_word(name)} is not one that Evenhand creates")
    # No page is in two places, and keys ascend: reading the tables ends. A file that is only slow to check is
    # stopped by the step limit.
    (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if verdict != "ok":
        raise not_a_run(path, f"it is damaged: {_word(verdict)}")


def _word(text: object) -> str:
    return " ".join(str(text).split())[:200]


def _objects(connection: sqlite3.Connection) -> frozenset[tuple[str, str, str]]:
    """Tables, indexes, views and triggers, with what makes them."""
    # SQLite's own statistics, which tools may have added, decide nothing where there is one way to read.
    rows = connection.execute("SELECT type, name, sql FROM sqlite_master").fetchall()
    return frozenset(
        (str(kind), str(name), " ".join(str(sql).split()))
        for kind, name, sql in rows
        if name not in ("sqlite_stat1", "sqlite_stat4")
    )


@cache
def _objects_of(schema: str) -> frozenset[tuple[str, str, str]]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(schema)
        return _objects(connection)


def _check_column(values: Sequence[Any], kind: str, what: str, *, may_be_null: bool) -> None:
    """ValueError with what is wrong of the first value that is not right."""
    found = set(map(type, values))
    is_sound = found <= {*_TYPES[kind], *([type(None)] if may_be_null else [])}
    if is_sound and float in found:
        sizes = [abs(value) for value in values if value]
        is_sound = not sizes or LEAST <= min(sizes) <= max(sizes) <= MOST
    if not is_sound:
        for value in values:
            _check_value(value, kind, what, may_be_null=may_be_null)


def _check_value(value: Any, kind: str, what: str, *, may_be_null: bool) -> None:
    if value is None and may_be_null:
        return
    if isinstance(value, float) and value != 0 and not LEAST <= abs(value) <= MOST:
        raise ValueError(f"{what} contains {value!r}, which no one has measured")
    if not isinstance(value, _TYPES[kind]):
        raise ValueError(f"{what} contains a value that is not {kind}")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTrial:
    """One trial as stored."""

    number: int
    purpose: str
    attempt: int
    is_full_length: bool
    result: TrialResult
    row: int = field(default=0, compare=False)
    """Its id in the file that it was read from, which it keeps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSearch:
    """One search and its trials, in order. `outcome` is None if the run was cut short."""

    name: str
    kind: str
    started_at: str
    finished_at: str | None
    plan: dict[str, Any]
    frame_size: int
    """Octets with the FCS; of a sequence the mean, rounded."""
    imix: str | None = None
    """The sequence of frame sizes, such as `imix:aaafg`; None: all frames have the same."""
    seed: int
    setup: dict[str, Any]
    goal: dict[str, Any]
    outcome: str | None
    result: dict[str, Any] | None
    trials: tuple[StoredTrial, ...]
    role: Role = Role.MEASUREMENT
    number: int = 1
    """Among those of its role within the repetition."""

    @property
    def is_measurement(self) -> bool:
        """Whether it is what its point was asked for."""
        return self.role in (Role.MEASUREMENT, Role.ONE_PAIR)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """A whole run: what was asked, on what host, and what came out."""

    path: Path
    created_at: str
    finished_at: str | None
    command: list[str]
    versions: dict[str, str]
    host: dict[str, Any]
    searches: tuple[StoredSearch, ...]


def run_row(tables: RunTables, path: Path) -> StoredRow:
    """What a file has of its run. RequestError if that was interrupted before it began."""
    runs = tables.rows("run")
    if not runs:
        raise RequestError(
            "this run was interrupted before it began",
            code="run.interrupted-before-it-began",
            where=str(path),
            next_step="Measure again.",
        )
    return runs[0]


def read_run(path: Path | str) -> StoredRun:
    """Read a run, whole or cut short. Errors as in `open_to_read`."""
    path = Path(path)
    with open_to_read(path) as tables:
        run = run_row(tables, path)
        return StoredRun(
            path=path,
            created_at=run["created_at"],
            finished_at=run["finished_at"],
            command=as_texts(run["command"], "run.command"),
            versions=as_versions(run["versions"]),
            host=as_mapping(run["host"], "run.host"),
            searches=tuple(read_searches(tables).values()),
        )


def as_versions(text: str) -> dict[str, str]:
    """Versions of programs, by name. ValueError if they are not texts."""
    versions = as_mapping(text, "versions")
    if not all(isinstance(version, str) for version in versions.values()):
        raise ValueError("versions are not texts")
    return versions


def read_searches(tables: RunTables, *, with_trials: bool = True) -> Mapping[int, StoredSearch]:
    """Searches by their ids, in order, each with its trials if they are wanted. ValueError if one is not a
    search."""
    trials: dict[int, list[StoredTrial]] = {}
    for search_id, trial in _trials(tables) if with_trials else ():
        trials.setdefault(search_id, []).append(trial)
    # Repetitions have the same set-up, plan and goal, word for word.
    read: Callable[[str, str], dict[str, Any]] = lru_cache(maxsize=_MOST_ALIKE)(as_mapping)
    return MappingProxyType(
        {row["id"]: _search(row, trials.get(row["id"], []), read) for row in tables.rows("searches")}
    )


def _search(
    row: StoredRow, trials: list[StoredTrial], read: Callable[[str, str], dict[str, Any]]
) -> StoredSearch:
    """
    Args:
        read: `as_mapping`, which may know the text.
    """
    setup = read(row["setup"], "searches.setup")
    if not isinstance(setup.get("name", ""), str):
        raise ValueError("the testbed's name in searches.setup is not text")
    return StoredSearch(
        name=row["name"],
        kind=row["kind"],
        started_at=row["started_at"],
        finished_at=row["finished_at"],
        plan=read(row["plan"], "searches.plan"),
        frame_size=row["frame_size"],
        imix=row["imix"],
        seed=as_seed(row["seed"]),
        setup=setup,
        goal=read(row["goal"], "searches.goal"),
        outcome=row["outcome"],
        result=None if row["result"] is None else as_mapping(row["result"], "searches.result"),
        trials=tuple(sorted(trials, key=lambda trial: trial.number)),
        role=Role(row["role"]),
        number=row["number"],
    )


def _trials(tables: RunTables) -> Iterator[tuple[int, StoredTrial]]:
    """All trials, each with the id of its search. Documents of a large file are read when they are needed."""
    if not tables.is_large:
        for row in tables.rows("trials"):
            document = as_mapping(row["document"], "trials.document")
            yield (
                row["search_id"],
                StoredTrial(
                    number=row["number"],
                    purpose=row["purpose"],
                    attempt=row["attempt"],
                    is_full_length=bool(row["is_full_length"]),
                    result=TrialResult.from_contract(document),
                    row=row["id"],
                ),
            )
        return
    documents = tables.keep_documents()
    names, rows = tables.tuples("trials", *_KNOWN_OF_TRIALS)
    in_order = itemgetter(*(names.index(name) for name in _KNOWN_OF_TRIALS))
    for row_id, search_id, number, purpose, attempt, is_full_length, verdict, fps, duration_s in map(
        in_order, rows
    ):
        yield (
            search_id,
            StoredTrial(
                number=number,
                purpose=purpose,
                attempt=attempt,
                is_full_length=bool(is_full_length),
                result=unread_result(
                    documents, row_id, verdict=verdict, intended_fps=fps, intended_duration_s=duration_s
                ),
                row=row_id,
            ),
        )
