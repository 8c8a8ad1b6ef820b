# SPDX-License-Identifier: Apache-2.0
"""JSON that someone else has written, within bounds. Whoever walks through it later cannot be made to
fall."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

MAX_TEXT = 2**24
MAX_DEPTH = 32
"""Far above what Evenhand writes (11)."""
MAX_VALUES = 10**6
_MAX_DIGITS = 20
"""2^64 - 1 has so many."""


def read_json(text: str) -> Any:
    """The value. ValueError: it is not JSON, or beyond the bounds; no number is infinite, NaN or has more
    than 20 digits."""
    if len(text) > MAX_TEXT:
        raise ValueError(f"a JSON text of {len(text)} characters is too long")
    if text.count(",") + text.count("[") + text.count("{") > MAX_VALUES:
        raise ValueError("a JSON text has too many values")
    try:
        value = json.loads(text, parse_constant=_refuse, parse_float=_read_float, parse_int=_read_int)
    except RecursionError:
        raise ValueError("a JSON text is nested too deeply") from None
    _check(value)
    return value


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a JSON number")


def _read_float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:20]} is not a finite number")
    return value


def _read_int(text: str) -> int:
    if len(text) > _MAX_DIGITS + text.startswith("-"):
        raise ValueError(f"a whole number of {len(text)} digits is too large")
    return int(text)


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
