# SPDX-License-Identifier: Apache-2.0
"""JSON that someone else has written, within bounds. Whoever walks through it later cannot be made to
fall."""

from __future__ import annotations

import json
from typing import Any, NoReturn

MAX_TEXT = 2**24
MAX_DEPTH = 32
"""Far above what Evenhand writes (11)."""
MAX_VALUES = 10**6
MOST, LEAST = 1e30, 1e-100
"""No tester measures a number beyond these, and whoever adds, squares or divides some of them gets one that
is finite still."""
_MAX_DIGITS = 20
"""2^64 - 1 has so many."""


def read_json(text: str, *, is_stored: bool = True) -> Any:
    """The value. ValueError: it is not JSON, or beyond the bounds; no number is infinite, NaN or has more
    than 20 digits, and no object has a key twice.

    Args:
        is_stored: Whether it is kept in a run file, and so may not be larger than one.
    """
    if is_stored and len(text) > MAX_TEXT:
        raise ValueError(f"a JSON text of {len(text)} characters is too long")
    if is_stored and text.count(",") + text.count("[") + text.count("{") > MAX_VALUES:
        raise ValueError("a JSON text has too many values")
    try:
        value = json.loads(
            text,
            parse_constant=_refuse,
            parse_float=_read_float,
            parse_int=_read_int,
            object_pairs_hook=_read_object,
        )
    except RecursionError:
        raise ValueError("a JSON text is nested too deeply") from None
    _check(value)
    return value


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a JSON number")


def _read_float(text: str) -> float:
    value = float(text)
    if not abs(value) <= MOST:
        raise ValueError(f"{text[:20]} is too large for a number that was measured")
    return value


def _read_int(text: str) -> int:
    if len(text) > _MAX_DIGITS + text.startswith("-"):
        raise ValueError(f"a whole number of {len(text)} digits is too large")
    return int(text)


def _read_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in found if keys.count(key) > 1)
        raise ValueError(f"a JSON object has the key {twice[:40]!a} twice")
    return found


def _check(value: Any) -> None:
    """Depth, and that texts are text: half of a surrogate pair cannot be printed."""
    layer = [value]
    for _ in range(MAX_DEPTH):
        below: list[Any] = []
        for item in layer:
            if isinstance(item, str):
                item.encode()
            elif isinstance(item, dict):
                below += item.keys()
                below += item.values()
            elif isinstance(item, list):
                below += item
        if not below:
            return
        layer = below
    raise ValueError("a JSON text is nested too deeply")
