# SPDX-License-Identifier: Apache-2.0
"""Analysis: whether two points of two runs answer one question, in what they do not, and which of them go
together."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evenhand.analysis.condition_words import GOAL, PLAN_OPTION, SENT, SETUP, unlike_words
from evenhand.analysis.plans import sent_plan
from evenhand.run.campaign_record import CampaignRecord, PointRecord
from evenhand.run.point_document import point_of
from evenhand.spec.request import Point, as_meant

UNSTATED = ("known_fps",)
"""Keys of a goal that make no other question: where a search began, if an earlier one guided it."""


@dataclass(frozen=True, slots=True)
class Match:
    """Which points go together."""

    of: Mapping[int, PointRecord]
    """Points by the place in the first run."""
    only_first: tuple[PointRecord, ...]
    only_other: tuple[PointRecord, ...]
    of_one_kind: bool
    """Both are campaigns, or both the runs of verbs."""


def match_points(one: CampaignRecord, another: CampaignRecord) -> Match:
    """Those alike go together, in the same suite before any; of the rest those of one procedure, the least
    unlike before others, but only if they agree in all that distinguishes the points of one of the
    runs: a point with one address pair is never the counterpart of one with many."""
    of_one_kind = one.is_campaign == another.is_campaign
    first, other = one.points, another.points
    left, found = list(other), {}
    for is_same_suite in (True, False):
        for i, point in enumerate(first):
            if i in found:
                continue
            for candidate in left:
                if (candidate.point.suite == point.point.suite or not is_same_suite) and not unlike_in(
                    point, candidate, of_one_kind
                ):
                    found[i] = candidate
                    left.remove(candidate)
                    break
    rest = [
        (len(unlike_in(first[i], c, of_one_kind)), i, j)
        for i in range(len(first))
        if i not in found
        for j, c in enumerate(left)
    ]
    taken: set[int] = set()
    differing = {
        procedure: _differing(procedure, first, other)
        for procedure in {point.point.procedure for point in first}
    }
    for _, i, j in sorted(rest):
        mine, others = first[i].point, left[j].point
        if i not in found and j not in taken and mine.procedure == others.procedure:
            names = differing[mine.procedure]
            of_mine, of_others = _distinguishing(mine), _distinguishing(others)
            if all(of_mine[name] == of_others[name] for name in names):
                found[i] = left[j]
                taken.add(j)
    only_first = tuple(point for i, point in enumerate(first) if i not in found)
    return Match(
        found, only_first, tuple(point for j, point in enumerate(left) if j not in taken), of_one_kind
    )


def _differing(procedure: str, *runs: Sequence[PointRecord]) -> list[str]:
    """What the points of this procedure in one of the runs differ by."""
    values = [[_distinguishing(p.point) for p in run if p.point.procedure == procedure] for run in runs]
    return [
        name
        for name in ("addresses", "routes", "frame size", "directions", "hash type", "IP version")
        if any(len({point[name] for point in points}) > 1 for points in values)
    ]


def _distinguishing(point: Point) -> dict[str, Hashable]:
    """What a series is made over. Only the IP versions of the plan count: the same series with other
    connections may well be compared."""
    return {
        "addresses": (tuple(point.hosts), tuple(point.networks)),
        "routes": point.routes,
        "frame size": point.frame_size,
        "directions": tuple(point.directions),
        "hash type": point.hash_type,
        "IP version": tuple(re.findall("v[46]", point.plan)),
    }


def unlike_in(a: PointRecord, b: PointRecord, of_one_kind: bool = True) -> tuple[str, ...]:
    """`frame size 64 against 128`: what would make their numbers answers to different questions.

    Args:
        of_one_kind: Both are of campaigns, or both of the runs of verbs. If not, what their searches were
            asked for decides, since a campaign has its goal as its file spells it.
    """
    measured = (None, None) if of_one_kind else (measured_conditions(a), measured_conditions(b))
    mine, others = (asked or _conditions(record) for asked, record in zip(measured, (a, b), strict=True))
    keys = [key for key in {**mine, **others} if not _is_same(a.point.procedure, key, mine, others)]
    if not (_is_sent_known(a) and _is_sent_known(b)):
        # What one of them has not sent yet is not a difference: then what was asked for decides.
        keys = [key for key in keys if not key.startswith(SENT)]
    # Counts of addresses, plan and ports are in both; once is enough.
    if any(not key.startswith(SENT) for key in keys):
        keys = [key for key in keys if not key.startswith(SENT)]
    return tuple(unlike_words(key, mine.get(key), others.get(key)) for key in keys)


def _is_same(procedure: str, key: str, mine: Mapping[str, Any], others: Mapping[str, Any]) -> bool:
    """Whatever the spelling: a campaign has what its file has."""
    one, other = mine.get(key), others.get(key)
    name = next((key.removeprefix(head) for head in (GOAL, PLAN_OPTION) if key.startswith(head)), None)
    if one == other or name is None or not (isinstance(one, str | list) and isinstance(other, str | list)):
        return bool(one == other)
    return bool(as_meant(procedure, name, one) == as_meant(procedure, name, other))


def _is_sent_known(record: PointRecord) -> bool:
    return sent_plan(record) is not None


def _conditions(record: PointRecord) -> dict[str, Any]:
    point = record.point
    return _stated(point.procedure, point, point.goal, sent_plan(record))


def measured_conditions(record: PointRecord) -> dict[str, Any] | None:
    """The same as its first search has it, which the procedure has written whoever called it; None if there
    is none yet.

    With the waits of the trials and the hosts' MACs: a campaign has them in its goal.
    """
    searches = [search for repetition in record.repetitions for search in repetition.searches]
    search = next((search for search in searches if search.is_measurement), None)
    if search is None:
        return None
    try:
        under = point_of(search)
    except ValueError:
        return None
    setup = {key: search.setup.get(key) for key in ("waits", "host_macs", "rates")}
    return {**_stated(record.point.procedure, under, search.goal, search.plan), **dict(flat(setup, SETUP))}


def start_of(record: PointRecord) -> float | None:
    """The load at which its first search was set to begin, in fps; None: wherever that search begins by
    itself."""
    searches = [search for repetition in record.repetitions for search in repetition.searches]
    search = next((search for search in searches if search.is_measurement), None)
    start = (record.point.goal if search is None else search.goal).get("known_fps")
    return float(start) if isinstance(start, int | float) and not isinstance(start, bool) else None


def _stated(
    procedure: str, under: Point, goal: Mapping[str, Any], sent: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Conditions by names for people."""
    return {
        "procedure": procedure,
        "plan": under.plan,
        "hosts": str(under.hosts),
        "networks": str(under.networks),
        "frame size": under.frame_size,
        "directions": list(under.directions),
        "hash type": under.hash_type,
        **dict(flat(under.plan_options, PLAN_OPTION)),
        **dict(flat({key: value for key, value in goal.items() if key not in UNSTATED}, GOAL)),
        **({} if sent is None else dict(flat(sent, SENT))),
    }


def flat(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Leaves by their path: `host: cpu.model`. Lists of tables too; other lists are one value."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from flat(item, f"{name}{'' if name.endswith((': ', ' ')) else '.'}{key}")
    elif isinstance(value, list | tuple) and value and all(isinstance(item, Mapping) for item in value):
        for i, item in enumerate(value, start=1):
            yield from flat(item, f"{name}.{item.get('name', i)}")
    elif value is not None:
        yield name, list(value) if isinstance(value, tuple) else value
