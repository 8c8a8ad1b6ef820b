# SPDX-License-Identifier: Apache-2.0
"""Station 7, trial result: numbers of the engine's documents, which are checked before they become results.
ValueError if they are none."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from evenhand.base.errors import RequestError
from evenhand.base.units import format_count, format_duration
from evenhand.base.validation.hostile_json import MAX_TEXT, MAX_VALUES, MOST


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


_OTHER_VALUES, _OTHER_OCTETS = 30_000, 1 << 20
"""The most of a trial's document without its lists: histograms, slices, ports, notes."""
_OF_A_TAG = (3, 40)
"""Values, as the reader counts them, and octets: `[1234567890,12345678.901234567],`."""
_OF_A_TENTH = (1, 10)
"""The same of a tenth of a second, for which a trial lists the frames that it lost."""
_TENTHS_PER_S = 10


def check_document_size(*, directions: int, tagged_frames: int, sending_s: float) -> None:
    """RequestError if a trial would record more than can be read."""
    if not math.isfinite(sending_s):
        return  # the engine session says what is wrong with it
    room = [
        (most - others) / directions - share * _TENTHS_PER_S * sending_s
        for most, others, share in zip(
            (MAX_VALUES, MAX_TEXT), (_OTHER_VALUES, _OTHER_OCTETS), _OF_A_TENTH, strict=True
        )
    ]
    most_tags = int(min(left / each for left, each in zip(room, _OF_A_TAG, strict=True)))
    if tagged_frames <= most_tags:
        return
    if most_tags < 0:
        longest_s = (MAX_VALUES - _OTHER_VALUES) / directions / _TENTHS_PER_S
        raise RequestError(
            f"a trial of {format_duration(sending_s)} records more than a run file may hold",
            code="trial.too-much-to-record",
            where="duration",
            next_step=f"Use at most {format_duration(longest_s)}.",
        )
    raise RequestError(
        f"{format_count(tagged_frames)} tagged frames are more than a run file may hold of one trial",
        code="trial.too-much-to-record",
        where="tagged_frames",
        next_step=f"Tag at most {format_count(most_tags)} frames.",
    )
