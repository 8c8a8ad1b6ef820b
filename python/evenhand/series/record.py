# SPDX-License-Identifier: Apache-2.0
"""Station 9: reading a campaign's file, or the run file of a single verb as a campaign of one suite."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evenhand.errors import RequestError
from evenhand.series.campaign import CampaignRecord, HookRun, PointRecord, PointState, Repetition
from evenhand.series.point_document import read_point
from evenhand.series.run_points import points_of_run
from evenhand.series.store import StoredSearch, read_searches, reading

CUT_SHORT = "cut_short"
"""Outcome of a repetition that was begun anew: what it measured stays, and is in no statistic."""


def read_record(path: Path) -> CampaignRecord:
    """All of a campaign, finished or not, also while it is being measured; of any schema version.

    Raises:
        RequestError, HostError: As `read_run`.
    """
    with reading(path) as connection:
        run = connection.execute("SELECT * FROM run").fetchone()
        if run is None:
            raise RequestError("this run was cut short before it began", where=str(path))
        campaign = connection.execute("SELECT * FROM campaign").fetchone()
        searches = list(read_searches(connection))
        if campaign is None:
            return _record_of_run(path, run, [search for _, search in searches])
        return _record_of_campaign(path, run, campaign, connection, searches)


def _record_of_run(path: Path, run: sqlite3.Row, searches: list[StoredSearch]) -> CampaignRecord:
    command = json.loads(run["command"])
    suite = next((word for word in command[1:] if not word.startswith("-")), path.stem)
    host = json.loads(run["host"])
    return CampaignRecord(
        path=path, name=path.stem, is_campaign=False, created_at=run["created_at"], finished_at=run["finished_at"],
        commands=(tuple(command),), versions=json.loads(run["versions"]), host=host, spec={},
        testbeds={search.setup["name"]: testbed_document(search.setup, host) for search in searches if "name" in search.setup},
        points=points_of_run(suite, searches),
    )  # fmt: skip


def testbed_document(setup: Mapping[str, Any], host: Mapping[str, Any]) -> dict[str, Any]:
    """What is known of tester and DUT (the draft's Figure 6), of a set-up as a run file has it."""
    testbed = setup.get("testbed") or {}
    facts = (testbed.get("dut") or {}).get("facts")
    return {"tester": dict(host), "dut": setup.get("dut") or facts, "testbed": testbed}


def _record_of_campaign(
    path: Path,
    run: sqlite3.Row,
    campaign: sqlite3.Row,
    connection: sqlite3.Connection,
    searches: list[tuple[int | None, StoredSearch]],
) -> CampaignRecord:
    of_repetition: dict[int | None, list[StoredSearch]] = {}
    for repetition_id, search in searches:
        of_repetition.setdefault(repetition_id, []).append(search)
    sessions = connection.execute("SELECT * FROM sessions ORDER BY id").fetchall()
    hooks = list(_read_hooks(connection))
    points = []
    for row in connection.execute("SELECT * FROM points ORDER BY id").fetchall():
        repetitions = tuple(
            Repetition(
                number=r["number"], seed=int(r["seed"]), testbed=r["testbed"], started_at=r["started_at"], finished_at=r["finished_at"],
                outcome=r["outcome"], value=r["value"], result=None if r["result"] is None else json.loads(r["result"]),
                searches=tuple(of_repetition.get(r["id"], ())), reason=r["reason"],
            )
            for r in connection.execute("SELECT * FROM repetitions WHERE point_id = ? ORDER BY number, attempt", (row["id"],)).fetchall()
        )  # fmt: skip
        points.append(_point_record(row, repetitions, tuple(hook for point_id, hook in hooks if point_id == row["id"])))
    return CampaignRecord(
        path=path, name=campaign["name"], is_campaign=True, created_at=run["created_at"], finished_at=run["finished_at"],
        commands=tuple(tuple(json.loads(session["command"])) for session in sessions), versions=json.loads(run["versions"]),
        host=json.loads(run["host"]), spec=json.loads(campaign["spec"]),
        testbeds={row["name"]: json.loads(row["document"]) for row in connection.execute("SELECT * FROM testbeds ORDER BY rowid")},
        points=tuple(points), hooks=tuple(hook for point_id, hook in hooks if point_id is None),
        notes=tuple(note for session in sessions for note in json.loads(session["notes"])),
    )  # fmt: skip


def _point_record(row: sqlite3.Row, repetitions: tuple[Repetition, ...], hooks: tuple[HookRun, ...]) -> PointRecord:
    point = read_point(json.loads(row["document"]))
    finished = [repetition for repetition in repetitions if repetition.finished_at is not None]
    has_value = any(repetition.value is not None for repetition in finished)
    state, reason, stopped_early = state_of(
        asked=point.repetitions, finished=len(finished), has_value=has_value, has_begun=bool(repetitions) or bool(hooks),
        reason=row["reason"], last_reason=next((r.reason for r in reversed(finished) if r.reason is not None), None),
    )  # fmt: skip
    return PointRecord(point=point, state=state, reason=reason, hooks=hooks, repetitions=repetitions, stopped_early=stopped_early)


def state_of(
    *, asked: int, finished: int, has_value: bool, has_begun: bool, reason: str | None, last_reason: str | None
) -> tuple[PointState, str | None, str | None]:
    """How far a point has come; why it has no number; why it has fewer repetitions than asked for."""
    if reason is None and finished < asked:
        return (PointState.BEGUN if has_begun else PointState.PENDING), None, None
    if has_value:
        return PointState.MEASURED, None, reason
    return PointState.NO_NUMBER, reason or last_reason or "no repetition ended with a number", None


def _read_hooks(connection: sqlite3.Connection) -> Iterator[tuple[int | None, HookRun]]:
    for row in connection.execute("SELECT * FROM hooks ORDER BY id").fetchall():
        yield (
            row["point_id"],
            HookRun(
                when=row["moment"], command=row["command"], exit_code=row["exit_code"], output=row["output"], duration_s=row["duration_s"]
            ),
        )
