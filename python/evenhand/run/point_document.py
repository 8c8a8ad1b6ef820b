# SPDX-License-Identifier: Apache-2.0
"""Station 9: a point as the row that it is in a run file, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from evenhand.base.errors import RequestError
from evenhand.plan import SideCounts, parse_imix, whole_octets
from evenhand.procedure.registry import PROCEDURES
from evenhand.run.conditions import are_sound
from evenhand.run.reading import StoredRow, as_mapping
from evenhand.run.run_file import to_json
from evenhand.spec.point import Point

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
    """The same point, of a row of any version. ValueError, TypeError or KeyError if it is none."""
    document = as_mapping(row["document"], "points.document")
    if "procedure" in row:
        size = row["frame_size"] if row["imix"] is None else _sequence(row["imix"])
        document = {**document, **{name: row[name] for name in _COLUMNS}, "frame_size": size}
    return point_of_document(document)


def _sequence(text: str) -> str:
    """ValueError if it is none."""
    try:
        return parse_imix(text).short
    except RequestError as error:
        raise ValueError(error.what) from error


def point_of_document(document: Mapping[str, Any]) -> Point:
    """A point of which all is in the document, as in files of version 2."""
    whole = {"rounds": 1, **document}  # files from before there were rounds
    values = {field.name: whole[field.name] for field in fields(Point)}
    point = Point(**{**values, **{name: make(values[name]) for name, make in _PAIRS.items()}})
    check_point(point)
    return point


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
