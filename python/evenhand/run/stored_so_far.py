# SPDX-License-Identifier: Apache-2.0
"""Station 9: what is in a run file that is being written."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Container
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evenhand.base.errors import HostError
from evenhand.run.run_file import RunFile
from evenhand.search import Goal, Role, SearchResult, SearchTrial
from evenhand.spec.request import Point
from evenhand.trial import TrialResult

LINUX_LAB = "linux namespace"
"""`dut` of the facts of a lab that can have a firewall."""


@dataclass(slots=True, kw_only=True)
class MeasuredSearch:
    """What one search has measured so far, stored or not: no one should lose an hour of trials to a disk that
    is full."""

    name: str
    kind: str
    goal: Goal | None
    """None if it is not a throughput search."""
    trials: list[SearchTrial] = field(default_factory=list)
    """Trials of a throughput search."""
    results: list[TrialResult] = field(default_factory=list)
    """Trials of any other."""
    end: SearchResult | None = None


class StoredSoFar(RunFile):
    """Answers of the file to who writes it. Methods raise StorageError."""

    def __init__(self, path: Path, connection: sqlite3.Connection, *, is_campaign: bool) -> None:
        super().__init__(path, connection)
        self.is_campaign = is_campaign
        """It can be gone on with: what was stopped by hand counts neither as a trial nor as an end then, and
        is made anew."""
        self.measured: list[MeasuredSearch] = []
        """Searches measured so far; of a campaign, those of the present repetition, stored or not."""
        self._counted: int | None = None

    @property
    def stored_trials(self) -> int:
        """How many are in the file: a transaction that failed has left nothing there."""
        if self._counted is not None:
            return self._counted
        with suppress(HostError):
            return int(self.rows("SELECT count(*) AS trials FROM trials")[0]["trials"])
        return sum(len(search.trials) + len(search.results) for search in self.measured)

    def stop_counting(self) -> None:
        """The file is about to be closed."""
        self._counted = self.stored_trials

    def has_hooks(self) -> bool:
        """False also if it cannot be read any more."""
        with suppress(HostError):
            return bool(self.rows("SELECT id FROM hooks LIMIT 1"))
        return False

    def ended_points(self) -> frozenset[str]:
        """Keys of those that ended early."""
        return frozenset(row["key"] for row in self.rows("SELECT key FROM points WHERE reason IS NOT NULL"))

    def finished_repetitions(self) -> frozenset[tuple[str, int]]:
        """Those that have finished, by point and number, with a value or without."""
        found = self.rows(
            "SELECT key, number FROM repetitions JOIN points ON points.id = point_id WHERE finished_at IS"
            " NOT NULL"
        )
        return frozenset((row["key"], row["number"]) for row in found)

    def results_of(self, key: str, numbers: Container[int]) -> tuple[dict[str, Any], ...]:
        """Results of a point's finished repetitions with these numbers, in order."""
        found = self.rows(
            "SELECT number, result FROM repetitions JOIN points ON points.id = point_id"
            " WHERE key = ? AND finished_at IS NOT NULL AND result IS NOT NULL ORDER BY number",
            key,
        )
        return tuple(json.loads(row["result"]) for row in found if row["number"] in numbers)

    def first_search_of(
        self, key: str, numbers: Container[int]
    ) -> tuple[dict[str, Any], dict[str, Any], int] | None:
        """Result, set-up and seed of the last search in the first finished repetition with one of these
        numbers; None if there is none."""
        candidates = self.rows(
            "SELECT repetitions.number, searches.result, searches.setup, searches.seed FROM searches JOIN"
            " repetitions ON"
            " repetitions.id = repetition_id"
            " JOIN points ON points.id = point_id WHERE key = ? AND repetitions.finished_at IS NOT NULL AND"
            " searches.result IS NOT NULL"
            " AND searches.role = ? ORDER BY repetitions.number, searches.id DESC",
            key,
            str(Role.MEASUREMENT),
        )
        found = [row for row in candidates if row["number"] in numbers]
        return (
            (json.loads(found[0]["result"]), json.loads(found[0]["setup"]), int(found[0]["seed"]))
            if found
            else None
        )

    def rows(self, question: str, *values: Any) -> list[dict[str, Any]]:
        """The answer to a SELECT, by the names of its columns. StorageError if it cannot be read."""
        with self.writing() as connection:
            cursor = connection.execute(question, values)
            names = [column[0] for column in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def point_id(self, point: Point) -> int:
        """Id of its row."""
        return int(self.rows("SELECT id FROM points WHERE key = ?", point.key)[0]["id"])

    def first_known_fps(self) -> float | None:
        """The load, in frames a second per direction, at which the first search began that was given one;
        None if none was."""
        for row in self.rows("SELECT goal FROM searches WHERE role = ? ORDER BY id", str(Role.MEASUREMENT)):
            known_fps = json.loads(row["goal"]).get("known_fps")
            if isinstance(known_fps, int | float) and not isinstance(known_fps, bool) and known_fps > 0:
                return float(known_fps)
        return None

    def lab_rules(self) -> int | None:
        """How many rules the firewall of the lab has that results are of; None: there are none yet, or none
        of a lab that can have one."""
        for row in self.rows("SELECT document FROM testbeds ORDER BY id"):
            own = json.loads(row["document"]).get("own_dut")
            if isinstance(own, dict) and own.get("dut") == LINUX_LAB:
                rules = own.get("firewall_rules", 0)
                return rules if isinstance(rules, int) else 0
        return None
