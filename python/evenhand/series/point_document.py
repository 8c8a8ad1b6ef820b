# SPDX-License-Identifier: Apache-2.0
"""Station 9: a point as a document, as it stands in a campaign's file, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from evenhand.series.campaign import Point

_PAIRS = ("hosts", "networks", "directions")
"""Tuples, which JSON has as lists."""


def point_document(point: Point) -> dict[str, Any]:
    """All of it, for JSON."""
    return {field.name: _plain(getattr(point, field.name)) for field in fields(point)}


def read_point(document: Mapping[str, Any]) -> Point:
    """The same point. TypeError or KeyError if it is none."""
    values = {field.name: document[field.name] for field in fields(Point)}
    return Point(**{**values, **{name: tuple(values[name]) for name in _PAIRS}})


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value
