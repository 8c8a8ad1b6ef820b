# SPDX-License-Identifier: Apache-2.0
"""A value of the wrong type in a TOML file: what to write there instead, as TOML."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

_MOST_LISTED = 64
"""Numbers of a range that are written out."""


def as_toml(value: Any) -> str:
    """The value as it is written in a file. Texts have single quotes, as everywhere in errors; a table is
    only called one."""
    match value:
        case bool():
            return "true" if value else "false"
        case list() | tuple():
            return f"[{', '.join(map(as_toml, value))}]"
        case dict():
            return "a table"
        case _:
            return repr(value)


def toml_to_write(kind: str, value: Any, place: Sequence[str]) -> str | None:
    """What to do, with the very TOML where it can be stated; None where the value itself is wrong and not its
    type.

    Args:
        kind: The type of pydantic's error.
        place: Names of the key and of the tables that contain it.
    """
    wanted = kind.partition("_")[0]
    if wanted in ("tuple", "list") and isinstance(value, dict):
        return f"Write its keys below a line [[{'.'.join(place)}]]."
    if wanted == "model":
        return f"Write its keys below a line [{'.'.join(place)}]."
    if wanted in ("tuple", "list"):
        return _in_brackets(value)
    if isinstance(value, list) and wanted in ("int", "float", "bool", "string"):
        return f"Write it without brackets: {_toml(value[0])}." if len(value) == 1 else None
    if wanted == "string" and isinstance(value, (bool, int, float)):
        return f'Write it in quotes: "{as_toml(value)}".'
    if wanted == "bool":
        return _as_bool(value)
    if wanted in ("int", "float"):
        return _as_number(value, is_whole=wanted == "int")
    return None


def _toml(value: Any) -> str:
    return json.dumps(value) if isinstance(value, str) else as_toml(value)


def _in_brackets(value: Any) -> str | None:
    if not isinstance(value, str):
        return None if isinstance(value, dict) else f"Write it in brackets: [{_toml(value)}]."
    span = re.fullmatch(r"\s*(\d{1,6})\s*-\s*(\d{1,6})\s*", value)
    numbers = (
        list(range(int(span[1]), int(span[2]) + 1))
        if span and int(span[2]) - int(span[1]) < _MOST_LISTED
        else []
    )
    if re.fullmatch(r"\s*\d{1,9}(\s*,\s*\d{1,9})*\s*", value):
        numbers = [int(part) for part in value.split(",")]
    return (
        f"Write it in brackets, without quotes: {as_toml(numbers)}."
        if numbers
        else f"Write it in brackets: [{_toml(value)}]."
    )


def _as_bool(value: Any) -> str | None:
    words = {"true": "true", "yes": "true", "on": "true", "false": "false", "no": "false", "off": "false"}
    meant = words.get(value.strip().lower()) if isinstance(value, str) else None
    return None if meant is None else f"Write it without quotes: {meant}."


def _as_number(value: Any, *, is_whole: bool) -> str | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, float):
        return f"Write {value:.0f}." if is_whole and value.is_integer() else None
    if not isinstance(value, str):
        return None
    form = r"[+-]?\d{1,20}" if is_whole else r"[+-]?\d{1,20}(\.\d{1,20})?"
    return f"Write it without quotes: {value.strip()}." if re.fullmatch(form, value.strip()) else None
