# SPDX-License-Identifier: Apache-2.0
"""JSON that someone else has written, within bounds. Whoever walks through it later cannot be made to
fall."""

from __future__ import annotations

import json
import re
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
_MAY_BE_LARGE = re.compile(r"\d{21}|\d[eE]\+?\d")
"""Is in every text that has a number with too many digits, or a fraction beyond `MOST`; numbers of other
texts need not be looked at one by one."""
_MAY_BE_HALF = re.compile(r"\\u[dD]")
"""Is in every text that has half of a surrogate pair, if the text itself has none."""


def read_json(text: str, *, is_stored: bool = True) -> Any:
    """The value. ValueError: it is not JSON, or beyond the bounds; no number is infinite, NaN or has more
    than 20 digits, and no object has a key twice.

    Args:
        is_stored: Whether it is kept in a run file, and so may not be larger than one.
    """
    if is_stored and len(text) > MAX_TEXT:
        raise ValueError(f"a JSON text of {len(text)} characters is too long")
    containers = text.count("[") + text.count("{")
    if is_stored and text.count(",") + containers > MAX_VALUES:
        raise ValueError("a JSON text has too many values")
    numbers: dict[str, Any] = {}
    if _MAY_BE_LARGE.search(text) is not None:
        numbers = {"parse_float": _read_float, "parse_int": _read_int}
    try:
        value = json.loads(text, parse_constant=_refuse, object_pairs_hook=_read_object, **numbers)
    except RecursionError:
        raise ValueError("a JSON text is nested too deeply") from None
    with_texts = _MAY_BE_HALF.search(text) is not None or not _is_whole(text)
    if with_texts or containers > MAX_DEPTH:
        _check(value, with_texts=with_texts)
    return value


def _is_whole(text: str) -> bool:
    """Whether it has no half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


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


def _check(value: Any, *, with_texts: bool) -> None:
    """Depth, and that texts are text: half of a surrogate pair cannot be printed."""
    kinds: tuple[type, ...] = (dict, list, str) if with_texts else (dict, list)
    layer = [value]
    for _ in range(MAX_DEPTH):
        below: list[Any] = []
        for item in layer:
            if isinstance(item, str):
                item.encode()
            elif isinstance(item, dict):
                below += [each for each in item.values() if isinstance(each, kinds)]
                if with_texts:
                    below += item.keys()
            elif isinstance(item, list):
                below += [each for each in item if isinstance(each, kinds)]
        if not below:
            return
        layer = below
    raise ValueError("a JSON text is nested too deeply")
