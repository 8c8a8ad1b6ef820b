# SPDX-License-Identifier: Apache-2.0
"""Station 9: the searches of a single verb's run as points: what was made under the same conditions is
repetitions of one point."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import fields

from evenhand.procedure.registry import LATENCY, PROCEDURES
from evenhand.series.campaign import TESTER_LIMIT, Point, PointRecord, Repetition, state_of
from evenhand.series.conditions import conditions_of, configured
from evenhand.series.point_document import check_point
from evenhand.series.reading import StoredSearch

_REPETITION = re.compile(r",? repetition \d+$")
_LATENCY_RFC2544 = "latency-rfc2544"
_WITHOUT_NUMBER = {
    "measured": "too many frames were lost for a figure: a lost frame is infinitely late",
    TESTER_LIMIT: "the tester's own limit was reached",
    "below_minimum": "frames were lost at the lowest load too",
}


def points_of_run(suite: str, searches: Sequence[StoredSearch]) -> tuple[PointRecord, ...]:
    """In the order in which they were begun; searches for the tester's own ceiling and single trials are no
    points.

    ValueError if a file has made one of what cannot be a point.
    """
    groups: dict[str, list[StoredSearch]] = {}
    for search in searches:
        if procedure_of(search) is not None:
            groups.setdefault(_conditions(search), []).append(search)
    names: dict[str, int] = {}
    records = []
    for number, group in enumerate(groups.values()):
        name = _REPETITION.sub("", group[0].name)
        names[name] = names.get(name, 0) + 1
        key = f"{suite}/{name}" if names[name] == 1 else f"{suite}/{name} ({names[name]})"
        records.append(_point_record(key, suite, number, group))
    return tuple(records)


def procedure_of(search: StoredSearch) -> str | None:
    """None if it is no point's."""
    kind = LATENCY.name if search.kind == _LATENCY_RFC2544 else search.kind
    return kind if kind in PROCEDURES else None


def _conditions(search: StoredSearch) -> str:
    setup = search.setup
    # A search that was guided by an earlier one has its number in the goal, and the same conditions.
    goal = {key: value for key, value in search.goal.items() if key != "known_fps"}
    same = [
        _REPETITION.sub("", search.name),
        search.kind,
        search.plan,
        search.frame_size,
        setup.get("mix"),
        setup.get("directions"),
        configured(setup),
        goal,
    ]
    return json.dumps(same, sort_keys=True)


def _point_record(key: str, suite: str, number: int, group: Sequence[StoredSearch]) -> PointRecord:
    first = group[0]
    procedure = procedure_of(first)
    assert procedure is not None
    under = conditions_of(first)
    conditions = {field.name: getattr(under, field.name) for field in fields(under)}
    point = Point(
        key=key,
        suite=suite,
        number=number,
        procedure=procedure,
        goal=first.goal,
        repetitions=len(group),
        **conditions,
    )
    repetitions = tuple(_repetition(index, search, procedure) for index, search in enumerate(group, start=1))
    check_point(point)
    finished = [repetition for repetition in repetitions if repetition.finished_at is not None]
    state, reason, _ = state_of(
        asked=len(repetitions),
        finished=len(finished),
        has_value=any(repetition.value is not None for repetition in finished),
        has_begun=True,
        reason=None,
        last_reason=finished[-1].reason if finished else None,
    )
    return PointRecord(point=point, state=state, reason=reason, hooks=(), repetitions=repetitions)


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
        reason=None if value is not None or not is_finished else why_no_number(search.outcome),
    )


def why_no_number(outcome: str | None) -> str:
    """For people."""
    return _WITHOUT_NUMBER.get(str(outcome), str(outcome).replace("_", " "))
