# SPDX-License-Identifier: Apache-2.0
"""Station 9: reading a campaign's file, or the run file of a single verb as a campaign of one suite."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evenhand.base.errors import RequestError
from evenhand.series.campaign import CampaignRecord, HookRun, PointRecord, Repetition, state_of
from evenhand.series.point_document import read_point
from evenhand.series.reading import (
    Row,
    RunTables,
    StoredSearch,
    as_mapping,
    as_seed,
    as_texts,
    as_versions,
    open_to_read,
    read_searches,
)
from evenhand.series.run_points import points_of_run, procedure_of

CUT_SHORT = "cut_short"
"""Outcome of a repetition that was begun anew: what it measured stays, and is in no statistic."""


def read_record(path: Path | str) -> CampaignRecord:
    """All of a campaign, finished or not, also while it is being measured; of any schema version.

    Raises:
        RequestError, HostError: As `read_run`.
    """
    path = Path(path)
    with open_to_read(path) as tables:
        runs = tables.rows("run")
        campaigns = tables.rows("campaign") if "campaign" in tables.names else []
        if not runs:
            raise RequestError(
                "this run was cut short before it began", where=str(path), next_step="Measure again."
            )
        if not campaigns:
            return _record_of_run(path, runs[0], list(read_searches(tables).values()))
        return _record_of_campaign(path, runs[0], campaigns[0], tables)


def _record_of_run(path: Path, run: Row, searches: list[StoredSearch]) -> CampaignRecord:
    command = as_texts(run["command"], "run.command")
    suite = next((word for word in command[1:] if not word.startswith("-")), path.stem)
    host = as_mapping(run["host"], "run.host")
    return CampaignRecord(
        path=path,
        name=path.stem,
        is_campaign=False,
        created_at=run["created_at"],
        finished_at=run["finished_at"],
        commands=(tuple(command),),
        versions=as_versions(run["versions"]),
        host=host,
        spec={},
        testbeds={
            search.setup["name"]: testbed_document(search.setup, host)
            for search in searches
            if "name" in search.setup
        },
        points=points_of_run(suite, searches),
        other_searches=tuple(search for search in searches if procedure_of(search) is None),
    )


def testbed_document(setup: Mapping[str, Any], host: Mapping[str, Any]) -> dict[str, Any]:
    """What is known of tester and DUT (the draft's Figure 6), of a set-up as a run file has it."""
    testbed = setup.get("testbed") or {}
    facts = (testbed.get("dut") or {}).get("facts")
    return {"tester": dict(host), "dut": setup.get("dut") or facts, "testbed": testbed}


def _record_of_campaign(path: Path, run: Row, campaign: Row, tables: RunTables) -> CampaignRecord:
    repetitions = _read_repetitions(tables)
    sessions = tables.rows("sessions")
    hooks = list(_read_hooks(tables))
    return CampaignRecord(
        path=path,
        name=campaign["name"],
        is_campaign=True,
        created_at=run["created_at"],
        finished_at=run["finished_at"],
        commands=tuple(tuple(as_texts(session["command"], "sessions.command")) for session in sessions),
        versions=as_versions(run["versions"]),
        host=as_mapping(run["host"], "run.host"),
        spec=as_mapping(campaign["spec"], "campaign.spec"),
        testbeds={
            row["name"]: as_mapping(row["document"], "testbeds.document") for row in tables.rows("testbeds")
        },
        points=tuple(
            _point_record(
                row,
                tuple(repetitions.get(row["id"], ())),
                tuple(hook for point_id, hook in hooks if point_id == row["id"]),
            )
            for row in tables.rows("points")
        ),
        hooks=tuple(hook for point_id, hook in hooks if point_id is None),
        notes=tuple(note for session in sessions for note in as_texts(session["notes"], "sessions.notes")),
    )


def _read_repetitions(tables: RunTables) -> dict[int, list[Repetition]]:
    """By the ids of their points; in order, those that were cut short before those that were made in their
    place."""
    searches: dict[int, list[StoredSearch]] = {}
    belongs = {row["id"]: row["repetition_id"] for row in tables.rows("searches", "id", "repetition_id")}
    for search_id, search in read_searches(tables).items():
        searches.setdefault(belongs[search_id], []).append(search)
    of_point: dict[int, list[Repetition]] = {}
    for row in sorted(
        tables.rows("repetitions"), key=lambda row: (row["point_id"], row["number"], row["attempt"])
    ):
        repetition = Repetition(
            number=row["number"],
            seed=as_seed(row["seed"]),
            testbed=row["testbed"],
            started_at=row["started_at"],
            finished_at=row["finished_at"],
            outcome=row["outcome"],
            value=row["value"],
            result=None if row["result"] is None else as_mapping(row["result"], "repetitions.result"),
            searches=tuple(searches.get(row["id"], ())),
            reason=row["reason"],
        )
        of_point.setdefault(row["point_id"], []).append(repetition)
    return of_point


def _point_record(row: Row, repetitions: tuple[Repetition, ...], hooks: tuple[HookRun, ...]) -> PointRecord:
    point = read_point(as_mapping(row["document"], "points.document"))
    finished = [repetition for repetition in repetitions if repetition.finished_at is not None]
    state, reason, stopped_early = state_of(
        asked=point.repetitions,
        finished=len(finished),
        has_value=any(repetition.value is not None for repetition in finished),
        has_begun=bool(repetitions) or bool(hooks),
        reason=row["reason"],
        last_reason=next((r.reason for r in reversed(finished) if r.reason is not None), None),
    )
    return PointRecord(
        point=point,
        state=state,
        reason=reason,
        hooks=hooks,
        repetitions=repetitions,
        stopped_early=stopped_early,
    )


def _read_hooks(tables: RunTables) -> Iterator[tuple[int | None, HookRun]]:
    for row in tables.rows("hooks"):
        yield (
            row["point_id"],
            HookRun(
                when=row["moment"],
                command=row["command"],
                exit_code=row["exit_code"],
                output=row["output"],
                duration_s=row["duration_s"],
            ),
        )
