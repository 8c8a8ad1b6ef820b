# SPDX-License-Identifier: Apache-2.0
"""Station 9: a point that was measured on another machine: as it comes from there, and into a campaign's
file, whole or not at all."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evenhand.base.errors import EvenhandError
from evenhand.base.without_folders import without_folders
from evenhand.series.campaign import HookRun, Point
from evenhand.series.record import CUT_SHORT
from evenhand.series.store import insert_search, insert_trial, search_columns, to_json
from evenhand.trial import TrialResult

if TYPE_CHECKING:
    from evenhand.series.campaign_store import CampaignStore, Ended


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteTrial:
    """One trial."""

    number: int
    purpose: str
    attempt: int
    is_full_length: bool
    document: Mapping[str, Any]
    """As the engine told it (contract/reply.schema.json)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteSearch:
    """One search, or another procedure's trials, as documents."""

    name: str
    kind: str
    started_at: str
    plan: Mapping[str, Any]
    frame_size: int
    seed: int
    setup: Mapping[str, Any]
    goal: Mapping[str, Any]
    finished_at: str | None
    outcome: str | None
    result: Mapping[str, Any] | None
    trials: tuple[RemoteTrial, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteRepetition:
    """One repetition, ended or cut short by an error."""

    number: int
    seed: int
    started_at: str
    finished_at: str | None
    """None: it did not end."""
    measured_s: float
    ended: Ended | None
    searches: tuple[RemoteSearch, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RemotePoint:
    """What was left to be measured of a point, measured on one testbed."""

    point: Point
    testbed: str
    """Its name among all that measure this campaign."""
    facts: Mapping[str, Any] | None
    """What is known of it (`CampaignRecord.testbeds`); None: it came to nothing before that was read."""
    versions: Mapping[str, str]
    """Of what measured there."""
    hooks: tuple[tuple[str, HookRun], ...]
    """With the times at which they ended."""
    repetitions: tuple[RemoteRepetition, ...]
    reason: str | None
    """Why it gets no more repetitions; None: it has them all."""


def check_remote_point(remote: Any, point: Point, numbers: Collection[int]) -> RemotePoint:
    """What was ordered, if that is it: it comes from another machine, whose Evenhand may be damaged, or none.

    Args:
        numbers: Of the repetitions that were ordered.

    Raises:
        ValueError: It is of another point or repetition, has one twice, or holds what no tester writes.
    """
    if not isinstance(remote, RemotePoint) or remote.point != point:
        raise ValueError("it is of another point")
    done = [repetition.number for repetition in remote.repetitions]
    if len(set(done)) != len(done) or not set(done) <= set(numbers):
        raise ValueError(
            f"it has repetitions {', '.join(map(str, done)) or 'none'}, and {', '.join(map(str, numbers))}"
            " were ordered"
        )
    try:
        to_json([remote.facts, dict(remote.versions), [hook.output for _, hook in remote.hooks]])
        for repetition in remote.repetitions:
            if repetition.ended is not None:
                _check_number(repetition.ended.value)
                to_json(dict(repetition.ended.result))
            _check_number(repetition.measured_s)
            for search in repetition.searches:
                to_json([search.plan, search.setup, search.goal, search.result])
                for trial in search.trials:
                    TrialResult.from_contract(dict(trial.document))
    except EvenhandError as error:
        raise ValueError(error.what) from error
    except (TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"it is not made as results are: {error}") from error
    return remote


def _check_number(value: object) -> None:
    if value is not None and (
        isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value)
    ):
        raise ValueError(f"{value!r} is no finite number")


def store_remote_point(store: CampaignStore, remote: RemotePoint) -> None:
    """All of it in one transaction. What has a result already is left as it is, so that nothing is there
    twice. StorageError."""
    testbed = remote.testbed if remote.facts is None else store.add_testbed(remote.testbed, remote.facts)
    _note_versions(store, testbed, remote.versions)
    with store.writing() as connection:
        (point_id,) = connection.execute(
            "SELECT id FROM points WHERE key = ?", (remote.point.key,)
        ).fetchone()
        for ended_at, hook in remote.hooks:
            connection.execute(
                "INSERT INTO hooks (session_id, point_id, moment, command, started_at, duration_s,"
                " exit_code, output)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    store.session_id,
                    point_id,
                    hook.when,
                    " ".join(without_folders(hook.command.split(" "))),
                    ended_at,
                    hook.duration_s,
                    hook.exit_code,
                    hook.output,
                ),
            )
        for repetition in remote.repetitions:
            _insert_repetition(connection, store.session_id, point_id, testbed, repetition)
        if remote.reason is not None:
            connection.execute("UPDATE points SET reason = ? WHERE id = ?", (remote.reason, point_id))


def _note_versions(store: CampaignStore, testbed: str, versions: Mapping[str, str]) -> None:
    """The file has those of the first testbed; what another one has besides stands in a note."""
    (row,) = store.rows("SELECT versions FROM run")
    known: dict[str, str] = json.loads(row["versions"])
    new = {name: version for name, version in versions.items() if name not in known}
    if new:
        with store.writing() as connection:
            connection.execute("UPDATE run SET versions = ?", (to_json({**known, **new}),))
    for name, version in versions.items():
        if known.get(name, version) != version:
            store.add_note(f"{testbed} has {name} {version}, where {known[name]} is told of the campaign")


def _insert_repetition(
    connection: sqlite3.Connection, session_id: int, point_id: int, testbed: str, repetition: RemoteRepetition
) -> None:
    attempts = connection.execute(
        "SELECT id, attempt, finished_at FROM repetitions WHERE point_id = ? AND number = ?",
        (point_id, repetition.number),
    ).fetchall()
    if any(finished_at is not None for _, _, finished_at in attempts):
        return
    # What was begun before, here or on a worker that was lost, has other trials.
    connection.executemany(
        "UPDATE repetitions SET outcome = ? WHERE id = ?",
        [(CUT_SHORT, begun_id) for begun_id, _, _ in attempts],
    )
    ended = repetition.ended
    repetition_id = connection.execute(
        "INSERT INTO repetitions (point_id, session_id, number, attempt, seed, testbed, started_at,"
        " finished_at, outcome, reason, value,"
        " result, measured_s) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            point_id,
            session_id,
            repetition.number,
            1 + max((attempt for _, attempt, _ in attempts), default=0),
            str(repetition.seed),
            testbed,
            repetition.started_at,
            repetition.finished_at,
            CUT_SHORT if ended is None else ended.outcome,
            None if ended is None else ended.reason,
            None if ended is None else ended.value,
            None if ended is None else to_json(without_folders(dict(ended.result))),
            repetition.measured_s,
        ),
    ).lastrowid
    for search in repetition.searches:
        columns = search_columns(
            search.name,
            kind=search.kind,
            plan=search.plan,
            frame_size=search.frame_size,
            seed=search.seed,
            setup=search.setup,
            goal=search.goal,
        )
        result = None if search.result is None else to_json(search.result)
        ended_as = {"finished_at": search.finished_at, "outcome": search.outcome, "result": result}
        search_id = insert_search(
            connection,
            {"repetition_id": repetition_id, **columns, "started_at": search.started_at, **ended_as},
        )
        for trial in search.trials:
            insert_trial(
                connection,
                search_id,
                TrialResult.from_contract(dict(trial.document)),
                trial.number,
                purpose=trial.purpose,
                attempt=trial.attempt,
                is_full_length=trial.is_full_length,
            )
