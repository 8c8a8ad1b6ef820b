# SPDX-License-Identifier: Apache-2.0
"""Station 9: the JSON of a run file has the shape that its readers rely on: the one border behind which a
value is of its type, or not there.

A file may come from anybody. What is listed here is what analysis, reports and exports read without a second
look; what is not listed is foreign information, which they show as text or check themselves. Every value may
be missing or null, since older versions wrote less.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

Shape: TypeAlias = Callable[[Any, str], None]
"""Of a value that is there, and the name of its place. ValueError if it has another shape."""
MOST = 1 << 64
"""No number of a run is so large; with larger ones sums and products of sound numbers are infinite."""


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and abs(value) < MOST  # neither is what is not finite


def _scalar(matches: Callable[[Any], bool], name: str) -> Shape:
    def check(value: Any, place: str) -> None:
        if not matches(value):
            raise ValueError(f"{place} is {_shown(value)}, but must be {name}")

    return check


text = _scalar(_is_text, "text")
flag = _scalar(_is_flag, "true or false")
whole = _scalar(_is_whole, "a whole number")
number = _scalar(_is_number, "a number")


def list_of(item: Shape, *, may_be_null: bool = False) -> Shape:
    """A list whose items have this shape; none of them is null unless it is allowed."""

    def check(value: Any, place: str) -> None:
        if not isinstance(value, list):
            raise ValueError(f"{place} is {_shown(value)}, but must be a list")
        for index, each in enumerate(value):
            if each is not None or not may_be_null:
                item(each, f"{place}[{index}]")

    return check


def pair_of(first: Shape, second: Shape) -> Shape:
    """A list of two values with these shapes."""

    def check(value: Any, place: str) -> None:
        if not isinstance(value, list) or len(value) != 2:
            raise ValueError(f"{place} is {_shown(value)}, but must be a list of two")
        for each, shape in zip(value, (first, second), strict=True):
            shape(each, place)

    return check


def table(**keys: Shape) -> Shape:
    """A table; those of its keys that are there have these shapes."""

    def check(value: Any, place: str) -> None:
        if not isinstance(value, Mapping):
            raise ValueError(f"{place} is {_shown(value)}, but must be a table")
        for name, shape in keys.items():
            if value.get(name) is not None:
                shape(value[name], f"{place}.{name}")

    return check


def table_of(item: Shape) -> Shape:
    """A table with any keys, whose values have this shape, or are null."""

    def check(value: Any, place: str) -> None:
        if not isinstance(value, Mapping):
            raise ValueError(f"{place} is {_shown(value)}, but must be a table")
        for name, each in value.items():
            if each is not None:
                item(each, f"{place}.{str(name)[:40]}")

    return check


def _shown(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 40 else f"{shown[:37]}..."
