# SPDX-License-Identifier: Apache-2.0
"""Station 9: the rows of a run file, made of what was measured. All functions belong in a transaction of
`RunFile.writing`."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from evenhand.base.folders import sentence_without_folders, without_folders
from evenhand.plan import Imix, whole_octets
from evenhand.run.campaign_record import CUT_SHORT, ENDED_EARLY, TESTER_CEILING, HookRun, Repetition
from evenhand.run.point_document import check_point, configured, point_columns, point_of
from evenhand.run.reading import StoredSearch
from evenhand.run.run_file import now, to_json
from evenhand.search import SearchHead
from evenhand.trial import TrialResult


def insert(connection: sqlite3.Connection, table: str, columns: Mapping[str, Any]) -> int:
    """The id of the new row."""
    row_id = connection.execute(
        f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})",
        tuple(columns.values()),
    ).lastrowid
    assert row_id is not None
    return row_id


def search_columns(head: SearchHead) -> dict[str, Any]:
    """Columns of a search that begins now."""
    size = head.frame_size
    return {
        "name": head.name,
        "kind": head.kind,
        "started_at": now(),
        "plan": to_json(head.plan),
        "frame_size": whole_octets(size),
        "imix": size.short if isinstance(size, Imix) else None,
        "seed": str(head.seed),  # it has 64 bits without a sign, SQLite's integers have 63
        "setup": to_json(without_folders(head.setup)),
        "goal": to_json(head.goal_document),
        "role": str(head.role),
    }


def begun_search(head: SearchHead, columns: Mapping[str, Any]) -> StoredSearch:
    """What a reader of its row sees before it has a trial."""
    documents = {name: json.loads(columns[name]) for name in ("plan", "setup", "goal")}
    return StoredSearch(
        name=head.name,
        kind=head.kind,
        started_at=columns["started_at"],
        finished_at=None,
        **documents,
        frame_size=columns["frame_size"],
        imix=columns["imix"],
        seed=head.seed,
        outcome=None,
        result=None,
        trials=(),
        role=head.role,
    )


MOST_REOPENED = 1 / 3
"""Share of the repetitions beyond which those without a decision are not made once more."""
_UNDECIDED = (
    f"finished_at IS NOT NULL AND outcome = '{TESTER_CEILING}'"
    " AND (value IS NULL OR json_extract(result, '$.is_at_least'))"
)
"""What the tester could not decide (`PointRecord.undecided`)."""
_REOPEN = "UPDATE repetitions SET finished_at = NULL, outcome = ?, value = NULL WHERE"
_OF_LABEL = (
    "SELECT points.id, points.repetitions, kind, plan, searches.frame_size, searches.imix, goal, setup FROM"
    " points JOIN repetitions ON points.id = point_id JOIN searches ON repetitions.id = repetition_id"
    " WHERE key = ?1 OR substr(key, 1, length(?1) + 2) = ?1 || ' (' GROUP BY points.id"
)
"""A search of each point of this label."""


def without_trials(value: Any) -> Any:
    """A result as a repetition has it: its trials are stored for themselves."""
    if isinstance(value, dict):
        return {key: without_trials(item) for key, item in value.items() if key != "trials"}
    return [without_trials(item) for item in value] if isinstance(value, list | tuple) else value


def place_search(
    connection: sqlite3.Connection,
    head: SearchHead,
    columns: Mapping[str, Any],
    *,
    suite: str,
    session_id: int,
    host: Mapping[str, Any],
) -> int | None:
    """The repetition that a search is which no campaign has ordered, in a new row; None if it belongs to no
    point. What is measured under the same conditions is repetitions of one point.

    Args:
        columns: The row of the search.
        suite: What its point is of.
        host: What is known of it.
    """
    begun = begun_search(head, columns)
    testbed = begun.setup.get("name")
    if testbed is not None:
        connection.execute(
            "INSERT INTO testbeds (name, document) VALUES (?, ?)"
            " ON CONFLICT (name) DO UPDATE SET document = excluded.document",
            (testbed, to_json(_testbed_document(begun.setup, host))),
        )
    if not head.role.is_of_the_dut:
        return None
    base = f"{suite}/{head.label}"
    asked = _asked(*(columns[name] for name in ("kind", "plan", "frame_size", "imix", "goal", "setup")))
    of_label = connection.execute(_OF_LABEL, (base,)).fetchall()
    known = ((point_id, count) for point_id, count, *other in of_label if _asked(*other) == asked)
    point_id, before = next(known, (None, 0))
    if point_id is None:
        (points,) = connection.execute("SELECT count(*) FROM points").fetchone()
        key = base if not of_label else f"{base} ({len(of_label) + 1})"
        procedure = head.procedure or head.kind
        point = replace(point_of(begun), procedure=procedure, key=key, suite=suite, number=points)
        check_point(point)
        point_id = insert(connection, "points", point_columns(point))
    else:
        connection.execute("UPDATE points SET repetitions = ? WHERE id = ?", (before + 1, point_id))
    row = {
        "point_id": point_id,
        "session_id": session_id,
        "number": before + 1,
        "attempt": 1,
        "seed": columns["seed"],
        "testbed": testbed or "",
        "started_at": columns["started_at"],
        "measured_s": 0,
    }
    return insert(connection, "repetitions", row)


def _testbed_document(setup: Mapping[str, Any], host: Mapping[str, Any]) -> dict[str, Any]:
    """What is known of tester and DUT (the draft's Figure 6), of a set-up as a run file has it."""
    testbed = setup.get("testbed") or {}
    facts = (testbed.get("dut") or {}).get("facts")
    return {"tester": dict(host), "dut": setup.get("dut") or facts, "testbed": testbed}


def _asked(kind: str, plan: str, frame_size: int, imix: str | None, goal: str, setup: str) -> tuple[Any, ...]:
    """What repetitions of one point have in common, of the row of a search. One that was guided by an earlier
    one has its number in the goal; so has one whose maximum is what the tester keeps at that time."""
    wanted, under = json.loads(goal), json.loads(setup)
    guided = {"known_fps", *(("max_fps", "min_fps") if wanted.get("is_max_ceiling") else ())}
    wanted = {name: value for name, value in wanted.items() if name not in guided}
    return kind, plan, frame_size, imix, wanted, under.get("mix"), under.get("directions"), configured(under)


def withdraw_search(connection: sqlite3.Connection) -> None:
    """Take the last search out of its repetition, and what then is empty away."""
    select = (
        "SELECT repetitions.id, point_id FROM searches JOIN repetitions ON repetitions.id = repetition_id"
        " ORDER BY searches.id DESC LIMIT 1"
    )
    for repetition_id, point_id in connection.execute(select).fetchall():
        connection.execute(
            "UPDATE searches SET repetition_id = NULL WHERE repetition_id = ?", (repetition_id,)
        )
        connection.execute("DELETE FROM repetitions WHERE id = ?", (repetition_id,))
        connection.execute("UPDATE points SET repetitions = repetitions - 1 WHERE id = ?", (point_id,))
        connection.execute("DELETE FROM points WHERE id = ? AND repetitions = 0", (point_id,))


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
    """One trial that has ended."""
    insert(
        connection,
        "trials",
        {
            "search_id": search_id,
            "number": number,
            "purpose": purpose,
            "attempt": attempt,
            "is_full_length": is_full_length,
            "verdict": str(result.verdict),
            "intended_fps": result.intended_fps,
            "intended_duration_s": result.intended_duration_s,
            "loss_ratio": result.loss_ratio,
            "document": to_json(result.raw),
        },
    )


def insert_stored_search(
    connection: sqlite3.Connection, search: StoredSearch, repetition_id: int | None
) -> None:
    """One that was measured elsewhere, with its trials."""
    search_id = insert(
        connection,
        "searches",
        {
            "repetition_id": repetition_id,
            "name": search.name,
            "kind": search.kind,
            "started_at": search.started_at,
            "finished_at": search.finished_at,
            "plan": to_json(search.plan),
            "frame_size": search.frame_size,
            "imix": search.imix,
            "seed": str(search.seed),
            "setup": to_json(without_folders(search.setup)),
            "goal": to_json(search.goal),
            "outcome": search.outcome,
            "result": None if search.result is None else to_json(search.result),
            "role": str(search.role),
            "number": search.number,
        },
    )
    for trial in search.trials:
        insert_trial(
            connection,
            search_id,
            trial.result,
            trial.number,
            purpose=trial.purpose,
            attempt=trial.attempt,
            is_full_length=trial.is_full_length,
        )


def insert_repetition(
    connection: sqlite3.Connection, repetition: Repetition, *, point_id: int, session_id: int, attempt: int
) -> None:
    """One that was measured elsewhere, with its searches.

    Args:
        attempt: How often it was begun, this time included.
    """
    repetition_id = insert(
        connection,
        "repetitions",
        {
            "point_id": point_id,
            "session_id": session_id,
            "number": repetition.number,
            "attempt": attempt,
            "seed": str(repetition.seed),
            "testbed": repetition.testbed,
            "started_at": repetition.started_at,
            "finished_at": repetition.finished_at,
            "outcome": repetition.outcome,
            "reason": None if repetition.reason is None else sentence_without_folders(repetition.reason),
            "value": repetition.value,
            "result": None
            if repetition.result is None
            else to_json(without_folders(dict(repetition.result))),
            "measured_s": repetition.measured_s,
        },
    )
    for search in repetition.searches:
        insert_stored_search(connection, search, repetition_id)


def end_numbers(
    connection: sqlite3.Connection,
    *,
    point_id: int,
    session_id: int,
    numbers: Collection[int],
    testbed: str,
    reason: str,
) -> None:
    """Repetitions that have not finished end without a value. In a transaction of `RunFile.writing`."""
    select = "SELECT number, attempt, finished_at FROM repetitions WHERE point_id = ?"
    attempts: dict[int, int] = {}
    finished = set()
    for number, attempt, finished_at in connection.execute(select, (point_id,)).fetchall():
        attempts[number] = max(attempt, attempts.get(number, 0))
        if finished_at is not None:
            finished.add(number)
    for number in sorted(set(numbers) - finished):
        row = {
            "point_id": point_id,
            "session_id": session_id,
            "number": number,
            "attempt": attempts.get(number, 0) + 1,
            "seed": "0",
            "testbed": testbed,
            "started_at": now(),
            "finished_at": now(),
            "outcome": ENDED_EARLY,
            "reason": sentence_without_folders(reason),
            "measured_s": 0,
        }
        insert(connection, "repetitions", row)


def reopen_points(connection: sqlite3.Connection) -> int:
    """See `RunStore.reopen_points`."""
    points = connection.execute("UPDATE points SET reason = NULL WHERE reason IS NOT NULL").rowcount
    repetitions = connection.execute(
        f"{_REOPEN} (finished_at IS NOT NULL AND outcome = ?) OR ({_UNDECIDED})", (CUT_SHORT, ENDED_EARLY)
    ).rowcount
    if points + repetitions:
        connection.execute("UPDATE run SET finished_at = NULL")
    return points + repetitions


def reopen_undecided(connection: sqlite3.Connection) -> int:
    """See `RunStore.reopen_undecided`."""
    made, undecided = connection.execute(
        f"SELECT count(*), total({_UNDECIDED}) FROM repetitions WHERE outcome != ?", (CUT_SHORT,)
    ).fetchone()
    if undecided > MOST_REOPENED * made:
        return 0
    return connection.execute(f"{_REOPEN} attempt = 1 AND {_UNDECIDED}", (CUT_SHORT,)).rowcount


def insert_hook(
    connection: sqlite3.Connection, hook: HookRun, *, session_id: int, point_id: int | None, suite: str | None
) -> None:
    """One command that has ended."""
    insert(
        connection,
        "hooks",
        {
            "session_id": session_id,
            "point_id": point_id,
            "suite": suite,
            "moment": hook.when,
            "command": " ".join(without_folders(hook.command.split(" "))),
            "started_at": hook.ended_at or now(),
            "duration_s": hook.duration_s,
            "exit_code": hook.exit_code,
            "output": sentence_without_folders(hook.output),
        },
    )
