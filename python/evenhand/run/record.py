# SPDX-License-Identifier: Apache-2.0
"""Station 9: reading a run file: that of a campaign, or that of a verb, which is a campaign of one suite."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from evenhand.run.campaign_record import CampaignRecord, HookRun, PointRecord, Repetition, Session, state_of
from evenhand.run.point_document import in_suite, read_point
from evenhand.run.reading import (
    RunTables,
    StoredRow,
    StoredSearch,
    as_mapping,
    as_seed,
    as_texts,
    as_versions,
    open_to_read,
    read_searches,
    run_row,
)
from evenhand.spec.request import Point


def read_record(path: Path | str, *, with_trials: bool = True) -> CampaignRecord:
    """All of a run or campaign, finished or not, also while it is being measured.

    Args:
        with_trials: False: the searches have none, which takes a small part of the time.

    Raises:
        RequestError, HostError: As `read_run`.
    """
    path = Path(path)
    with open_to_read(path) as tables:
        run = run_row(tables, path)
        campaigns = tables.rows("campaign")
        return _record(path, run, campaigns[0] if campaigns else None, tables, with_trials)


def _record(
    path: Path, run: StoredRow, campaign: StoredRow | None, tables: RunTables, with_trials: bool
) -> CampaignRecord:
    points = {row["id"]: in_suite(read_point(row), path.stem) for row in tables.rows("points")}
    searches: dict[int | None, list[StoredSearch]] = {}
    belongs = {row["id"]: row["repetition_id"] for row in tables.rows("searches", "id", "repetition_id")}
    for search_id, search in read_searches(tables, with_trials=with_trials).items():
        searches.setdefault(belongs[search_id], []).append(search)
    sessions = read_sessions(tables)
    places = {session_id: place for place, session_id in enumerate(sessions)}
    repetitions = read_repetitions(tables, points, searches, sessions)
    hooks = list(_read_hooks(tables, places))
    merged_from = run["merged_from"]
    as_texts(run["command"], "run.command")  # whose sessions have it too
    return CampaignRecord(
        path=path,
        name=path.stem if campaign is None else campaign["name"],
        is_campaign=campaign is not None,
        created_at=run["created_at"],
        finished_at=run["finished_at"],
        commands=tuple(session.command for session in sessions.values()),
        versions=as_versions(run["versions"]),
        host=as_mapping(run["host"], "run.host"),
        spec={} if campaign is None else as_mapping(campaign["spec"], "campaign.spec"),
        source="" if campaign is None else campaign["source"],
        seed=0 if campaign is None else as_seed(campaign["seed"]),
        testbeds={
            row["name"]: as_mapping(row["document"], "testbeds.document") for row in tables.rows("testbeds")
        },
        points=tuple(
            point_record(
                points[row["id"]],
                row["reason"],
                tuple(repetitions.get(row["id"], ())),
                tuple(hook for point_id, hook in hooks if point_id == row["id"]),
            )
            for row in tables.rows("points", "id", "reason")
        ),
        hooks=tuple(hook for point_id, hook in hooks if point_id is None),
        notes=tuple(note for session in sessions.values() for note in session.notes),
        sessions=tuple(sessions.values()),
        other_searches=tuple(searches.get(None, ())),
        merged_from=() if merged_from is None else tuple(as_texts(merged_from, "run.merged_from")),
    )


def read_sessions(tables: RunTables) -> dict[int, Session]:
    """Sessions by their ids, in order."""
    return {
        row["id"]: Session(
            started_at=row["started_at"],
            finished_at=row["finished_at"],
            command=tuple(as_texts(row["command"], "sessions.command")),
            versions=as_versions(row["versions"]),
            host=as_mapping(row["host"], "sessions.host"),
            notes=tuple(as_texts(row["notes"], "sessions.notes")),
        )
        for row in tables.rows("sessions")
    }


def read_repetitions(
    tables: RunTables,
    points: Mapping[int, Point],
    searches: Mapping[int | None, Sequence[StoredSearch]],
    sessions: Mapping[int, Session],
) -> dict[int, list[Repetition]]:
    """Repetitions by the ids of their points; in order, those that were cut short before those that were made
    in their place.

    Args:
        searches: By the ids of their repetitions.
        sessions: In their order, by their ids.
    """
    places = {session_id: place for place, session_id in enumerate(sessions)}
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
            measured_s=row["measured_s"],
            session=places[row["session_id"]],
            procedure=points[row["point_id"]].procedure,
        )
        of_point.setdefault(row["point_id"], []).append(repetition)
    return of_point


def point_record(
    point: Point, ended_for: str | None, repetitions: tuple[Repetition, ...], hooks: tuple[HookRun, ...] = ()
) -> PointRecord:
    """A point, and what its rows say of it.

    Args:
        ended_for: Why it gets no more repetitions, as its row has it.
    """
    finished = [repetition for repetition in repetitions if repetition.finished_at is not None]
    state, reason, stopped_early = state_of(
        asked=point.repetitions,
        finished=len(finished),
        has_value=any(repetition.value is not None for repetition in finished),
        has_begun=bool(repetitions) or bool(hooks),
        reason=ended_for,
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


def _read_hooks(tables: RunTables, sessions: Mapping[int, int]) -> Iterator[tuple[int | None, HookRun]]:
    for row in tables.rows("hooks"):
        yield (
            row["point_id"],
            HookRun(
                when=row["moment"],
                command=row["command"],
                exit_code=row["exit_code"],
                output=row["output"],
                duration_s=row["duration_s"],
                ended_at=row["started_at"],
                suite=row["suite"],
                session=sessions[row["session_id"]],
            ),
        )
