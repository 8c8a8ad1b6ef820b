# SPDX-License-Identifier: Apache-2.0
"""Station 7, trial result: numbers of the engine's documents, which are checked before they become results.
ValueError if they are none."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any


def whole(document: Mapping[str, Any], key: str) -> int:
    value = document[key]
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{key} is {value!r}, but must be a whole number from 0")
    return value


def number(value: Any) -> float:
    """Python would take "nan" for one too, and from a text it would become a result."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{value!r} is not a number")
    return float(value)


def optional(value: Any) -> float | None:
    return None if value is None else number(value)


def finite(value: float | None) -> float:
    """JSON has no infinity; the contract writes null."""
    return math.inf if value is None else number(value)
