# SPDX-License-Identifier: Apache-2.0
"""Station 9: a point as a document, as it stands in a campaign's file, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from evenhand.procedure.registry import PROCEDURES
from evenhand.series.campaign import Point
from evenhand.series.conditions import are_sound

_PAIRS = ("hosts", "networks", "directions")
"""Tuples, which JSON has as lists."""


def point_document(point: Point) -> dict[str, Any]:
    """All of it, for JSON."""
    return {field.name: _plain(getattr(point, field.name)) for field in fields(point)}


def read_point(document: Mapping[str, Any]) -> Point:
    """The same point. TypeError or KeyError if it is none."""
    whole = {"rounds": 1, **document}  # files from before there were rounds
    values = {field.name: whole[field.name] for field in fields(Point)}
    point = Point(**{**values, **{name: tuple(values[name]) for name in _PAIRS}})
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
        raise ValueError(f"{str(point.key)[:80]!r} is no point")


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value
