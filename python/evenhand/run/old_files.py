# SPDX-License-Identifier: Apache-2.0
"""Station 9: what files of schema versions 1 and 2 do not have as columns: roles of searches, and, of a
verb's run, its points. The only place where a label is read back."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from evenhand.procedure.registry import PROCEDURES
from evenhand.run.campaign_record import PointRecord, Repetition, state_of
from evenhand.run.no_number import why_no_number
from evenhand.run.point_document import point_columns, point_of_document
from evenhand.run.reading import StoredSearch, as_mapping, imix_of_setup, role_of_kind
from evenhand.run.run_points import RunPoints
from evenhand.run.schema import TO_VERSION_3, VERSION
from evenhand.search import Role
from evenhand.spec.point import Point

_REPETITION = re.compile(r",? repetition \d+$")
_LATENCY_RFC2544 = "latency-rfc2544"
_THROUGHPUT: str = "throughput"


def points_of_run(suite: str, searches: Sequence[StoredSearch]) -> tuple[PointRecord, ...]:
    """Points of a file of version 1, in the order in which they were begun; searches for the tester's own
    ceiling and single trials are not points.

    ValueError if a file has made one of what cannot be a point.
    """
    found = RunPoints(suite)
    points: dict[str, Point] = {}
    groups: dict[str, list[StoredSearch]] = {}
    for search in searches:
        procedure = procedure_of(search)
        if procedure is None:
            continue
        key, point = found.find(_REPETITION.sub("", search.name), procedure, search)
        if point is not None:
            points[key] = point
        groups.setdefault(key, []).append(search)
    return tuple(_point_record(point, groups[key]) for key, point in points.items())


def procedure_of(search: StoredSearch) -> str | None:
    """The procedure of its point; None if it belongs to no point."""
    kind = "latency" if search.kind == _LATENCY_RFC2544 else search.kind
    return next((name for name in PROCEDURES if name == kind), None)


def _point_record(point: Point, group: Sequence[StoredSearch]) -> PointRecord:
    repetitions = tuple(
        _repetition(index, search, point.procedure) for index, search in enumerate(group, start=1)
    )
    finished = [repetition for repetition in repetitions if repetition.finished_at is not None]
    state, reason, _ = state_of(
        asked=len(repetitions),
        finished=len(finished),
        has_value=any(repetition.value is not None for repetition in finished),
        has_begun=True,
        reason=None,
        last_reason=finished[-1].reason if finished else None,
    )
    return PointRecord(
        point=replace(point, repetitions=len(group)),
        state=state,
        reason=reason,
        hooks=(),
        repetitions=repetitions,
    )


def _repetition(number: int, search: StoredSearch, procedure: str) -> Repetition:
    is_finished = search.finished_at is not None and search.outcome != "stopped"
    value = (
        PROCEDURES[procedure].value_of(search.result) if is_finished and search.result is not None else None
    )
    return Repetition(
        number=number,
        seed=search.seed,
        testbed=search.setup.get("name", ""),
        started_at=search.started_at,
        finished_at=search.finished_at if is_finished else None,
        outcome=search.outcome,
        value=value,
        result=search.result,
        searches=(search,),
        procedure=procedure,
        reason=None if value is not None or not is_finished else why_no_number(search.outcome),
    )


def in_its_role(search: StoredSearch, point: Point) -> StoredSearch:
    """The search of a campaign of version 2, in its role: a throughput in a point of another procedure is
    what that one needs."""
    return replace(search, role=_role_within(search.kind, point.procedure))


def bring_up_to_date(connection: sqlite3.Connection) -> None:
    """A campaign of version 2 becomes one of version 3, in a transaction of its own; of any later version it
    is left as it is. `sqlite3.Error` if it cannot be written.

    ValueError, TypeError or KeyError if it holds what cannot be a campaign.
    """
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version == VERSION:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        for statement in TO_VERSION_3:
            connection.execute(statement)
        for row_id, document in connection.execute("SELECT id, document FROM points").fetchall():
            columns = point_columns(point_of_document(as_mapping(document, "points.document")))
            _update(connection, "points", row_id, columns)
        for row_id, columns in _search_columns(connection):
            _update(connection, "searches", row_id, columns)
        connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _search_columns(connection: sqlite3.Connection) -> list[tuple[int, dict[str, Any]]]:
    """Columns by the ids of searches: role, number of its role within the repetition, sequence of frame
    sizes."""
    numbers: Counter[tuple[int | None, Role]] = Counter()
    found = []
    for row_id, repetition_id, kind, setup, procedure in connection.execute(
        "SELECT searches.id, repetition_id, kind, setup, procedure FROM searches"
        " LEFT JOIN repetitions ON repetitions.id = repetition_id LEFT JOIN points ON points.id = point_id"
        " ORDER BY searches.id"
    ).fetchall():
        role = _role_within(kind, procedure)
        numbers[repetition_id, role] += 1
        imix = imix_of_setup(as_mapping(setup, "searches.setup"))
        found.append((row_id, {"role": str(role), "number": numbers[repetition_id, role], "imix": imix}))
    return found


def _role_within(kind: str, procedure: str | None) -> Role:
    """The role of a search of version 2, in a point of this procedure."""
    is_for_another = kind == _THROUGHPUT and procedure not in (None, _THROUGHPUT)
    return Role.THROUGHPUT_FOR if is_for_another else role_of_kind(kind)


def _update(connection: sqlite3.Connection, table: str, row_id: int, columns: Mapping[str, Any]) -> None:
    names = ", ".join(f"{name} = ?" for name in columns)
    connection.execute(f"UPDATE {table} SET {names} WHERE id = ?", (*columns.values(), row_id))
