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
_KINDS = bytes(
    ord("0") if octet in b"0123456789" else ord("e") if octet in b"eE" else ord(".") for octet in range(256)
)
_LARGE = (b"0" * (_MAX_DIGITS + 1), b"0e0")
"""One of them is in what `_KINDS` makes of a text that has a number with too many digits, or a fraction
beyond `MOST`; numbers of other texts need not be looked at one by one. A regular expression takes as long as
to read the JSON."""
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
    try:
        octets, is_whole = text.encode(), True
    except UnicodeEncodeError:  # half of a surrogate pair
        octets, is_whole = text.encode(errors="surrogatepass"), False
    kinds = octets.translate(_KINDS, b"+")
    decoder = _NUMBER_DECODER if any(part in kinds for part in _LARGE) else _DECODER
    try:
        value = decoder.decode(text)
    except RecursionError:
        raise ValueError("a JSON text is nested too deeply") from None
    with_texts = not is_whole or ("\\u" in text and _MAY_BE_HALF.search(text) is not None)
    if with_texts or containers > MAX_DEPTH:
        _check(value, with_texts=with_texts)
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


_DECODER = json.JSONDecoder(parse_constant=_refuse, object_pairs_hook=_read_object)
_NUMBER_DECODER = json.JSONDecoder(
    parse_constant=_refuse, object_pairs_hook=_read_object, parse_float=_read_float, parse_int=_read_int
)


def _check(value: Any, *, with_texts: bool) -> None:
    """Depth, and that texts are text: half of a surrogate pair cannot be printed."""
    layer: list[Any] = [[value]]
    for _ in range(MAX_DEPTH + 1):
        if with_texts:
            for item in layer:
                for each in (*item, *item.values()) if isinstance(item, dict) else item:
                    if isinstance(each, str):
                        each.encode()
        layer = [
            each
            for item in layer
            for each in (item.values() if isinstance(item, dict) else item)
            if isinstance(each, dict | list)
        ]
        if not layer:
            return
    raise ValueError("a JSON text is nested too deeply")
