# SPDX-License-Identifier: Apache-2.0
"""Station 9: the points of a single verb's run: what is measured under the same conditions is repetitions of
one point."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from evenhand.run.point_document import check_point, conditions_of, configured, point_columns
from evenhand.run.reading import StoredSearch
from evenhand.run.rows import begun_search, insert
from evenhand.run.run_file import to_json
from evenhand.search import SearchHead
from evenhand.spec.request import Point


@dataclass(slots=True)
class RunPoints:
    """Gives each search its point, in the order in which searches begin."""

    suite: str
    _keys: dict[str, str] = field(default_factory=dict)
    """Keys of points, by their conditions."""
    _labels: dict[str, int] = field(default_factory=dict)
    """How many points have each."""

    def find(self, label: str, procedure: str, search: StoredSearch) -> tuple[str, Point | None]:
        """The point's key, and the point itself if the search is the first of it. It has one repetition then.

        ValueError if the search is made of what cannot be a point.

        Args:
            label: What is measured, for people, without the number of the repetition.
        """
        conditions = _conditions(label, search)
        known = self._keys.get(conditions)
        if known is not None:
            return known, None
        self._labels[label] = self._labels.get(label, 0) + 1
        of_label = self._labels[label]
        key = f"{self.suite}/{label}" if of_label == 1 else f"{self.suite}/{label} ({of_label})"
        number = len(self._keys)
        self._keys[conditions] = key
        under = conditions_of(search)
        point = Point(
            key=key,
            suite=self.suite,
            number=number,
            procedure=procedure,
            goal=search.goal,
            repetitions=1,
            **{field.name: getattr(under, field.name) for field in fields(under)},
        )
        check_point(point)
        return key, point

    def place(
        self,
        connection: sqlite3.Connection,
        head: SearchHead,
        columns: Mapping[str, Any],
        *,
        session_id: int,
        host: Mapping[str, Any],
    ) -> tuple[int | None, str | None]:
        """The repetition that a search is, in a new row, and its procedure; None if it belongs to none. In a
        transaction of `RunFile.writing`.

        Args:
            columns: Its row.
            host: What is known of it.
        """
        begun = begun_search(head, columns)
        testbed = begun.setup.get("name")
        if testbed is not None:
            connection.execute(
                "INSERT INTO testbeds (name, document) VALUES (?, ?)"
                " ON CONFLICT (name) DO UPDATE SET document = excluded.document",
                (testbed, to_json(testbed_document(begun.setup, host))),
            )
        if not head.role.is_of_the_dut:
            return None, None
        procedure = head.procedure or head.kind
        key, point = self.find(head.label, procedure, begun)
        number = 1
        if point is not None:
            point_id = insert(connection, "points", point_columns(point))
        else:
            select = "SELECT id, repetitions + 1 FROM points WHERE key = ?"
            point_id, number = connection.execute(select, (key,)).fetchone()
            connection.execute("UPDATE points SET repetitions = ? WHERE id = ?", (number, point_id))
        row = {
            "point_id": point_id,
            "session_id": session_id,
            "number": number,
            "attempt": 1,
            "seed": columns["seed"],
            "testbed": testbed or "",
            "started_at": columns["started_at"],
            "measured_s": 0,
        }
        return insert(connection, "repetitions", row), procedure

    def withdraw(self, connection: sqlite3.Connection) -> None:
        """Take the last search out of its repetition, and what then is empty away. In a transaction of
        `RunFile.writing`."""
        select = (
            "SELECT repetitions.id, points.id, key FROM searches JOIN repetitions ON repetitions.id ="
            " repetition_id JOIN points ON points.id = point_id ORDER BY searches.id DESC LIMIT 1"
        )
        for repetition_id, point_id, key in connection.execute(select).fetchall():
            connection.execute(
                "UPDATE searches SET repetition_id = NULL WHERE repetition_id = ?", (repetition_id,)
            )
            connection.execute("DELETE FROM repetitions WHERE id = ?", (repetition_id,))
            connection.execute("UPDATE points SET repetitions = repetitions - 1 WHERE id = ?", (point_id,))
            if connection.execute(
                "DELETE FROM points WHERE id = ? AND repetitions = 0", (point_id,)
            ).rowcount:
                self._keys = {under: other for under, other in self._keys.items() if other != key}
                label = key.removeprefix(f"{self.suite}/").partition(" (")[0]
                self._labels[label] = max(0, self._labels.get(label, 0) - 1)


def testbed_document(setup: Mapping[str, Any], host: Mapping[str, Any]) -> dict[str, Any]:
    """What is known of tester and DUT (the draft's Figure 6), of a set-up as a run file has it."""
    testbed = setup.get("testbed") or {}
    facts = (testbed.get("dut") or {}).get("facts")
    return {"tester": dict(host), "dut": setup.get("dut") or facts, "testbed": testbed}


def suite_of(command: Sequence[str]) -> str:
    """What the points of a verb's run are a suite of: the verb; empty if the command does not state it. Then
    they are one of their file, see `in_suite`."""
    return next((word for word in command[1:] if not word.startswith("-")), "")


def in_suite(point: Point, suite: str) -> Point:
    """The same in a suite of this name, if it has none."""
    return point if point.suite else replace(point, suite=suite, key=f"{suite}{point.key}")


def out_of_suite(point: Point, suite: str) -> Point:
    """`in_suite` undone."""
    return replace(point, suite="", key=point.key.removeprefix(suite)) if point.suite == suite else point


def _conditions(label: str, search: StoredSearch) -> str:
    setup = search.setup
    # A search that was guided by an earlier one has its number in the goal, and the same conditions.
    goal = {key: value for key, value in search.goal.items() if key != "known_fps"}
    if goal.get("is_max_ceiling"):  # so has one whose maximum is what the tester keeps at that time
        goal = {key: value for key, value in goal.items() if key not in ("max_fps", "min_fps")}
    same = [
        label,
        search.kind,
        search.plan,
        search.frame_size,
        setup.get("mix"),
        setup.get("directions"),
        configured(setup),
        goal,
    ]
    return json.dumps(same, sort_keys=True)
