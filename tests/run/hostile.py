# SPDX-License-Identifier: Apache-2.0
"""What the tests of run files that come by mail share."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from evenhand.plan import make_plan
from evenhand.run import RunStore
from evenhand.search import SearchEvent, SearchHead, ThroughputGoal, TrialFinished, find_throughput
from evenhand.trial import SimulatedMeasurer

GOAL = ThroughputGoal(max_fps=1e6, duration_s=1, final_duration_s=2)
SETUP = {
    "name": "bench",
    "cpus": [1],
    "directions": ["forward", "reverse"],
    "testbed": {"dut": {"facts": {"os": "Linux 6.1"}}},
}


def write_run(path: Path) -> Path:
    """A sound one, with a search that was finished, and one INVALID trial."""

    def keep(event: SearchEvent) -> None:
        if isinstance(event, TrialFinished):
            writer.add_trial(event.trial)

    with RunStore.create(path, command=["evenhand", "throughput", "bench.toml"]) as store:
        store.add_versions({"dpdk": "22.11.11"})
        plan = make_plan("gateway_v4").to_contract()
        with store.search(
            SearchHead(label="a", kind="throughput", plan=plan, frame_size=64, seed=7, setup=SETUP, goal=GOAL)
        ) as writer:
            writer.finish(
                find_throughput(
                    SimulatedMeasurer(limit_fps=640_000, invalid_trials={2}), GOAL, on_progress=keep
                )
            )
    return path


def change(path: Path, *statements: str, values: tuple[object, ...] = ()) -> Path:
    """Whatever SQL can do to it, the schema too."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        for statement in statements:
            connection.execute(statement, values if "?" in statement else ())
    return path


def change_json(path: Path, column: str, edit: Callable[[Any], object], *, where: str = "1") -> Path:
    """`trials.document`, say; `edit` changes the value, or gives another, which may be no JSON of
    Python's."""
    table, name = column.split(".")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for row, text in connection.execute(f"SELECT id, {name} FROM {table} WHERE {where}").fetchall():
            value = json.loads(text)
            new = edit(value)
            connection.execute(
                f"UPDATE {table} SET {name} = ? WHERE id = ?",
                (json.dumps(value if new is None else new), row),
            )
    return path


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    """All that is there, to see whether anything was changed."""
    return {
        file.name: (file.read_bytes(), file.lstat().st_mtime_ns)
        for file in folder.iterdir()
        if file.is_file()
    }
