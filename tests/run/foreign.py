# SPDX-License-Identifier: Apache-2.0
"""Run files with one value in their JSON that is another one, or gone: what the tests of files from elsewhere
share."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from evenhand.run import RunStore
from evenhand.run.campaign_record import CampaignRecord, PointRecord
from evenhand.run.rows import insert_repetition
from evenhand.run.run_file import to_json
from evenhand.run.store import CampaignHead
from tests.analysis.records import router_config
from tests.report.campaigns import appendix_a
from tests.report.clean_records import point_by_clean_time, stalls
from tests.report.inside_records import witnessed

Place = tuple[str | int, ...]
"""Keys and indexes that lead to a value."""
Target = tuple[str, str, Place]
"""Table, column, and a place in its JSON in which indexes are 0."""
GONE = object()
OTHERS: Sequence[Any] = (
    *(None, True, False, 5, 0, -1, 2.0, 0.5, 1e308, -1e-300, 10**19, "abc", ""),
    *([], [0.5, 1], ["a"], {}, {"a": 1}, [[]], [{}], [None], GONE),
)
PUBLISHED = {"name": "x", "plan": "direct-v4-net16", "rises-up-to": 16, "falls-above": 4096}
SERIES = 3
"""As few points as have a shape."""


def rich_record() -> CampaignRecord:
    """One point of each procedure and a short series, on a DUT whose configuration is known and that was
    looked into; the first throughput and the loss are judged by clean time."""
    whole = witnessed(appendix_a(4, 4))
    config = router_config(16, free_entries=4, growth=0.1)
    points: list[PointRecord] = []
    for found in whole.points:
        alike = [each for each in points if each.point.procedure == found.point.procedure]
        if len(alike) < (SERIES if found.point.procedure == "throughput" else 1):
            thin = _thin(found, config)
            is_clean = found.point.procedure in ("throughput", "loss") and not alike
            points.append(point_by_clean_time(thin, stalls(0.05)) if is_clean else thin)
    published = {**PUBLISHED, "dut": {"system": "S"}, "tester": {"cpu": "y"}}
    return replace(
        whole,
        points=tuple(points),
        spec={**whole.spec, "published": [published]},
        testbeds={name: {**bed, "dut": config} for name, bed in whole.testbeds.items()},
    )


def _thin(found: PointRecord, config: dict[str, Any]) -> PointRecord:
    """One repetition, one trial a search."""
    repetition = found.repetitions[0]
    searches = tuple(
        replace(search, trials=search.trials[:1], setup={**search.setup, "dut": config})
        for search in repetition.searches
    )
    return replace(
        found,
        point=replace(found.point, repetitions=1),
        repetitions=(replace(repetition, searches=searches),),
    )


def write_record(path: Path, record: CampaignRecord) -> Path:
    """The file that has it."""
    head = CampaignHead(name=record.name, source="a.toml", seed=1, spec=record.spec)
    points = [found.point for found in record.points]
    with RunStore.create(path, command=["evenhand", "run", "a.toml"], head=head, points=points) as store:
        with store.writing() as connection:
            for name, document in record.testbeds.items():
                connection.execute(
                    "INSERT INTO testbeds (name, document) VALUES (?, ?)", (name, to_json(document))
                )
            for found in record.points:
                for repetition in found.repetitions:
                    insert_repetition(
                        connection,
                        repetition,
                        point_id=store.point_id(found.point),
                        session_id=store.session_id,
                        attempt=1,
                    )
        store.finish()
    return path


def make_another_run(path: Path) -> Path:
    """The same measured at another time, with other seeds: comparable, and not the same run."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE run SET created_at = '2026-03-05T10:00:00.000Z'")
        for table in ("repetitions", "searches"):
            connection.execute(
                f"UPDATE {table} SET seed = CAST(id + 900 AS TEXT),"
                " started_at = '2026-03-05T10:00:00.' || (100 + id) || 'Z'"
            )
    return path


def targets_of(path: Path) -> list[Target]:
    """All values in all JSON of a file, each kind of place once."""
    found: dict[Target, None] = {}
    for table, column, _, value in _documents(path):
        for place in _places(value):
            found[table, column, tuple(0 if isinstance(key, int) else key for key in place)] = None
    return list(found)


def alter(path: Path, target: Target, other: Any) -> None:
    """In every row that has such a place, at the first of its kind; `GONE`: takes it away."""
    table, column, place = target
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        for of_table, of_column, row, value in _documents(path):
            if (of_table, of_column) == (table, column) and (place or other is not GONE):
                try:
                    text = json.dumps(_put(value, place, other))
                except (KeyError, IndexError, TypeError):  # this row has no such place
                    continue
                connection.execute(f"UPDATE {table} SET {column} = ? WHERE id = ?", (text, row))


def _put(value: Any, place: Place, other: Any) -> Any:
    if not place:
        return other
    within = value
    for key in place[:-1]:
        within = within[key]
    del within[place[-1]]  # there must be one
    if other is not GONE:
        if isinstance(within, list):
            within.insert(int(place[-1]), other)
        else:
            within[place[-1]] = other
    return value


def _places(value: Any, place: Place = ()) -> Iterator[Place]:
    yield place
    items = (
        value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    )
    for key, item in items:
        yield from _places(item, (*place, key))


def _documents(path: Path) -> list[tuple[str, str, int, Any]]:
    """Table, column, id and value of all that is JSON."""
    found = []
    with closing(sqlite3.connect(path)) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        for (table,) in tables:
            for _, column, kind, *_ in connection.execute(f"PRAGMA table_info({table})").fetchall():
                if kind != "TEXT":
                    continue
                select = f"SELECT id, {column} FROM {table} WHERE {column} GLOB '[[{{]*' ORDER BY id"
                found += [
                    (table, column, row, json.loads(text))
                    for row, text in connection.execute(select).fetchall()
                ]
    return found
