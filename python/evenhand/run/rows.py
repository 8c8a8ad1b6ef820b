# SPDX-License-Identifier: Apache-2.0
"""Station 9: the rows of a run file, made of what was measured. All functions belong in a transaction of
`RunFile.writing`."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Mapping
from typing import Any

from evenhand.base.folders import sentence_without_folders, without_folders
from evenhand.plan import Imix, whole_octets
from evenhand.run.campaign_record import CUT_SHORT, ENDED_EARLY, TESTER_CEILING, HookRun, Repetition
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
        "UPDATE repetitions SET finished_at = NULL, outcome = ?, value = NULL WHERE finished_at IS NOT NULL"
        " AND (outcome = ? OR outcome = ? AND (value IS NULL OR json_extract(result, '$.is_at_least')))",
        (CUT_SHORT, ENDED_EARLY, TESTER_CEILING),
    ).rowcount
    if points + repetitions:
        connection.execute("UPDATE run SET finished_at = NULL")
    return points + repetitions


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
