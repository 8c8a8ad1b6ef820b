# SPDX-License-Identifier: Apache-2.0
"""Station 9: a point as the row that it is in a run file, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, get_args

from evenhand.base.errors import RequestError
from evenhand.plan import MOST_COUNTED, Direction, SideCounts, parse_imix, plan_title, whole_octets
from evenhand.procedure.descriptor import show_value
from evenhand.procedure.registry import PROCEDURES
from evenhand.run.campaign_record import TESTER_CEILING, PointRecord, Repetition
from evenhand.run.folder import again_command
from evenhand.run.reading import StoredRow, StoredSearch, as_mapping
from evenhand.run.run_file import to_json
from evenhand.spec.request import ROUTES, HashType, Point

_SIDES = ("left", "right")


def point_of(search: StoredSearch) -> Point:
    """The point that a search is alone, under the conditions of its row. ValueError if that does not state
    them: a run file may come from anyone."""
    try:
        read = _read(search)
    except (AttributeError, KeyError, TypeError, ValueError, RequestError) as error:
        raise ValueError(f"{search.name[:80]!r} does not contain its conditions") from error
    if not are_sound(read):
        raise ValueError(f"{search.name[:80]!r} does not contain its conditions")
    return read


def are_sound(conditions: Point) -> bool:
    """Whether each value is of its type."""
    counts = (*conditions.hosts, *conditions.networks)
    return (
        isinstance(conditions.plan, str)
        and len(conditions.hosts) == len(conditions.networks) == len(_SIDES)
        and all(isinstance(count, int) and not isinstance(count, bool) and count >= 1 for count in counts)
        and isinstance(conditions.frame_size, int | str)
        and conditions.hash_type in (None, *get_args(HashType))
        and 1 <= len(conditions.directions) == len(set(conditions.directions) & set(get_args(Direction)))
        and isinstance(conditions.plan_options, Mapping)
    )


def configured(setup: Mapping[str, Any]) -> Any:
    """The configuration of a DUT of our own; None of others."""
    return (setup.get("dut") or {}).get("config")


def _read(search: StoredSearch) -> Point:
    setup, plan = search.setup, search.plan
    mix = setup.get("mix") or {}
    versions = mix.get("versions")
    names = versions["plans"] if versions else [plan.get("name", "")]
    ranges = [plan.get(side, {}).get("hosts", {}) for side in _SIDES]
    elements = (configured(setup) or {}).get("elements") or {}
    if search.imix != (parse_imix(mix["imix"]).short if mix.get("imix") else None):
        raise ValueError("its two statements of the sequence of frame sizes differ")
    return Point(
        key=search.name,
        suite="",
        number=0,
        procedure=search.kind,
        goal=search.goal,
        repetitions=1,
        plan="+".join(map(plan_title, names)),
        plan_options=_routes(plan) if not versions else {"mix": "/".join(map(str, versions["share"]))},
        hosts=SideCounts(*(_count(each, "host") for each in ranges)),
        networks=SideCounts(*(_count(each, "network") for each in ranges)),
        frame_size=search.frame_size if search.imix is None else search.imix,
        directions=tuple(setup.get("directions") or get_args(Direction)),
        hash_type=next((name for name in get_args(HashType) if name == elements.get("hash")), None),
    )


def _routes(plan: Mapping[str, Any]) -> dict[str, str]:
    """How many prefixes of each side are used, if not all are."""
    sides = [plan.get(side, {}) for side in _SIDES]
    used = [int(side.get("hosts", {}).get("list", {}).get("entries", 1)) for side in sides]
    listed = ["list" in side.get("hosts", {}) and side.get("prefixes", {}).get("count", 1) for side in sides]
    if not any(count and count > entries for count, entries in zip(listed, used, strict=True)):
        return {}
    return {ROUTES: SideCounts(*used).written}


def _count(stored: Mapping[str, Any], name: str) -> int:
    """Count of a part of a stored `HostRange`, `host` or `network`, or of a `HostList`; 1 where the plan has
    none."""
    if "list" in stored and name == "host":
        return int(stored["list"]["addresses"] or MOST_COUNTED)
    part = stored.get(name)
    return 1 if part is None else int(part["count"])


_PAIRS: Mapping[str, Callable[[Any], tuple[Any, ...]]] = {
    "hosts": SideCounts._make,
    "networks": SideCounts._make,
    "directions": tuple,
}
"""What JSON has as lists."""
_COLUMNS = ("key", "suite", "procedure", "frame_size", "repetitions")
"""Columns of the table, in addition to the document."""


def point_columns(point: Point) -> dict[str, Any]:
    """Columns of the table `points`."""
    document = {
        field.name: _plain(getattr(point, field.name))
        for field in fields(point)
        if field.name not in _COLUMNS
    }
    size = point.frame_size
    return {
        "key": point.key,
        "suite": point.suite,
        "procedure": point.procedure,
        "frame_size": size if isinstance(size, int) else whole_octets(parse_imix(size)),
        "imix": size if isinstance(size, str) else None,
        "repetitions": point.repetitions,
        "document": to_json(document),
    }


def read_point(row: StoredRow) -> Point:
    """The same point. ValueError, TypeError or KeyError if the row is none."""
    document = as_mapping(row["document"], "points.document")
    size = row["frame_size"] if row["imix"] is None else _sequence(row["imix"])
    whole = {**document, **{name: row[name] for name in _COLUMNS}, "frame_size": size}
    values = {field.name: whole[field.name] for field in fields(Point)}
    point = Point(**{**values, **{name: make(values[name]) for name, make in _PAIRS.items()}})
    check_point(point)
    return point


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


def _sequence(text: str) -> str:
    """ValueError if it is none."""
    try:
        return parse_imix(text).short
    except RequestError as error:
        raise ValueError(error.what) from error


def check_point(point: Point) -> None:
    """ValueError if a value is not of its type: a run file may come from anybody."""
    wholes = (point.repetitions, point.rounds, point.number + 1 if isinstance(point.number, int) else None)
    is_sound = (
        all(isinstance(text, str) for text in (point.key, point.suite))
        and all(isinstance(whole, int) and not isinstance(whole, bool) and whole >= 1 for whole in wholes)
        and point.procedure in PROCEDURES
        and point.rounds <= point.repetitions
        and are_sound(point)
        and isinstance(point.goal, Mapping)
    )
    if not is_sound:
        raise ValueError(f"{str(point.key)[:80]!r} is not a point")


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def remarks_of_point(found: PointRecord) -> list[str]:
    """Why it has no number or fewer values than it should, and whether its repetitions disagree."""
    ended = [each for each in found.repetitions if each.finished_at is not None]
    procedure = found.point.procedure
    remark = disagreement(ended, procedure) or undecided_loads(ended, procedure)
    fewer = why_fewer(ended, found.reason or found.stopped_early)
    return fewer if remark is None else [*fewer, remark]


def why_fewer(ended: Sequence[Repetition], reason: str | None) -> list[str]:
    """Why a point has no number, or fewer values than repetitions that were asked for, or that have ended.

    Args:
        reason: Why it has no number, or was ended early.
    """
    reasons = [] if reason is None else [reason]
    without = [each for each in ended if each.value is None]
    # A point without a number has said already that none has a value, and why.
    if without and (len(without) < len(ended) or not reasons):
        causes = "; ".join(dict.fromkeys(each.reason for each in without if each.reason is not None))
        why = f": {causes}" if causes else ""
        reasons.insert(0, f"{_without_value(len(without), len(ended))}{why}")
    return reasons


def _without_value(count: int, of: int) -> str:
    if count < of:
        return f"{count} of its {of} finished repetitions {'has' if count == 1 else 'have'} no value"
    return (
        "its only finished repetition has no value"
        if of == 1
        else f"none of its {of} finished repetitions has a value"
    )


def disagreement(ended: Sequence[Repetition], procedure: str) -> str | None:
    """A remark if one repetition failed at a load that another one passed without finding its limit: a median
    of both is neither's. None if no lower bound is contradicted; of searches that all ended the range says as
    much."""
    passed = max((each.value for each in ended if each.value is not None and each.is_at_least), default=None)
    if passed is None:
        return None
    failed = [at for each in ended if (at := each.failed_at) is not None and at <= passed]
    if not failed:
        return None
    figure = PROCEDURES[procedure].figure
    others = "another" if len(failed) == 1 else f"{len(failed)} others"
    more = " or less" if len(set(failed)) > 1 else ""
    return (
        f"its repetitions disagree: {show_value(passed, figure)} passed in one, and"
        f" {show_value(max(failed), figure)}{more} failed in {others}; either the DUT changed in between, or"
        " a bad moment of the host was taken for its loss"
    )


def undecided_loads(ended: Sequence[Repetition], procedure: str) -> str | None:
    """The loads between which the limit lies, where all values are lower bounds but a higher load failed."""
    values = [each.value for each in ended if each.value is not None]
    failed = [at for each in ended if (at := each.failed_at) is not None]
    if not values or not failed or not all(each.is_at_least for each in ended if each.value is not None):
        return None
    figure = PROCEDURES[procedure].figure
    return (
        f"its limit lies between {show_value(max(values), figure)}, which passed, and"
        f" {show_value(min(failed), figure)}, which failed; no load between could be decided on this machine"
    )


def again_advice(path: Path, *, undecided: int, ended_early: int, on_page: bool = False) -> str | None:
    """What to do about points of a campaign that has ended, and the command; None if there is nothing to be
    repeated.

    Args:
        undecided: Repetitions that the tester could not decide.
        ended_early: Points that got no more repetitions.
        on_page: It is read elsewhere, and by others (see `again_command`).
    """
    command = again_command(path, on_page=on_page)
    if undecided:
        return (
            "To repeat what the tester could not decide, give it idle CPUs (evenhand check shows what takes"
            f" them) or another machine, and run: {command}"
        )
    if ended_early:
        return f"To repeat what ended early, once the reason is gone, run: {command}"
    return None


_WITHOUT_NUMBER = {
    "measured": "too many frames were lost for a figure: a lost frame is infinitely late",
    TESTER_CEILING: "the tester's ceiling was reached",
    "dut_gone": "the DUT did not answer any more",
    "below_minimum": "frames were lost at the lowest load as well",
}


def why_no_number(outcome: str | None) -> str:
    """Why there is no number, for people."""
    return _WITHOUT_NUMBER.get(str(outcome), str(outcome).replace("_", " "))
