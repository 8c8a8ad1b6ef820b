# SPDX-License-Identifier: Apache-2.0
"""Station 7, trial result: numbers of the engine's documents, which are checked before they become results.
ValueError if they are none."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from evenhand.base.validation.hostile_json import MOST


def whole(document: Mapping[str, Any], key: str) -> int:
    value = document[key]
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 64:
        raise ValueError(f"{key} is {_shown(value)}, but must be a whole number from 0 to 2^64 - 1")
    return value


def number(value: Any) -> float:
    """Python would take "nan" for one too, and from a text it would become a result."""
    if isinstance(value, int) and abs(value) >= 1 << 64:  # which may be too large for a float
        raise ValueError(f"{_shown(value)} is not a number")
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= MOST:
        raise ValueError(f"{_shown(value)} is not a number")
    return float(value)


def optional(value: Any) -> float | None:
    return None if value is None else number(value)


def finite(value: float | None) -> float:
    """JSON has no infinity; the contract writes null."""
    return math.inf if value is None else number(value)


def numbers_of(value: Any, place: str = "") -> Iterator[tuple[str, float]]:
    """Every number of a document that is not whole, and where it is: `waits.residual_s`."""
    if isinstance(value, float):
        yield place, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from numbers_of(item, f"{place}.{key}".lstrip("."))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from numbers_of(item, f"{place}[{index}]")


def _shown(value: Any) -> str:
    """Its beginning: a document of others may have a number of thousands of digits, which Python does not
    write."""
    if isinstance(value, int) and abs(value) >= 1 << 64:
        return f"a number of {value.bit_length()} bits"
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}..."
