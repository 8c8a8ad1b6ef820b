# SPDX-License-Identifier: Apache-2.0
"""What pydantic refuses, in words of the file or the command line, and not of Python."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from evenhand.base.errors import suggestion

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


_Bounds = Mapping[str, Any]


class Words(NamedTuple):
    """Words for a value that is refused."""

    what: str
    next_step: str
    code: str
    """See EvenhandError."""


_NO_TABLE = Words(
    "is not a table",
    next_step="Write the keys below a line with the table's name in brackets.",
    code="base.not-a-table",
)
_WORDS: Mapping[str, Callable[[_Bounds], Words]] = {
    "too_short": lambda bounds: Words(
        "is empty", next_step=f"Write {_at_least(bounds['min_length'])}, such as [1].", code="base.empty"
    ),
    "too_long": lambda bounds: Words(
        f"has more than {bounds['max_length']} entries",
        next_step=f"Write {bounds['max_length']} or fewer.",
        code="base.too-long",
    ),
    "string_too_short": lambda bounds: Words(
        "is empty", next_step="Write a text, or omit the key.", code="base.empty"
    ),
    "string_too_long": lambda bounds: Words(
        f"has more than {bounds['max_length']} characters",
        next_step="Write a shorter text.",
        code="base.too-long",
    ),
    "greater_than": lambda bounds: Words(
        f"must be greater than {bounds['gt']:g}",
        next_step=f"Write a value greater than {bounds['gt']:g}.",
        code="base.out-of-range",
    ),
    "greater_than_equal": lambda bounds: Words(
        "is too small", next_step=f"Write {_at_least(bounds['ge'])}.", code="base.out-of-range"
    ),
    "less_than": lambda bounds: Words(
        f"must be less than {bounds['lt']:g}",
        next_step=f"Write a value less than {bounds['lt']:g}.",
        code="base.out-of-range",
    ),
    "less_than_equal": lambda bounds: Words(
        "is too large", next_step=f"Write {_shown(bounds['le'])} or less.", code="base.out-of-range"
    ),
    "string_type": lambda _: Words(
        "is not a text", next_step='Write it in quotes: "...".', code="base.not-a-text"
    ),
    "bool_type": lambda _: Words(
        "is neither true nor false",
        next_step="Write true or false, without quotes.",
        code="base.neither-true-nor-false",
    ),
    "model_type": lambda _: _NO_TABLE,
    "model_attributes_type": lambda _: _NO_TABLE,
}
_WHOLE = Words("is not a whole number", next_step="Write a whole number.", code="base.not-whole")
_NUMBER = Words("is not a number", next_step="Write a number.", code="base.not-a-number")
_LIST = Words("is not a list", next_step="Write it in brackets: [1, 2].", code="base.not-a-list")
_OTHER = Words("is not allowed here", next_step="Write another value.", code="base.wrong-value")


def in_plain_words(kind: str, value: Any, bounds: _Bounds) -> Words:
    """What is wrong with the value, and what to do.

    Args:
        kind: The type of pydantic's error.
        bounds: Its context.
    """
    if kind in ("literal_error", "enum"):
        return none_of(value, re.findall(r"'([^']*)'", bounds["expected"]), in_quotes=True)
    if kind in _WORDS:
        words = _WORDS[kind](bounds)
    elif kind.startswith(("int_", "float_")):
        words = _WHOLE if kind.startswith("int_") else _NUMBER
    else:
        words = _LIST if kind.startswith(("tuple_", "list_")) else _OTHER
    return words._replace(what=f"{as_toml(value)} {words.what}")


def none_of(value: Any, names: list[str], *, in_quotes: bool) -> Words:
    """A word that is not among those that are allowed here: what is wrong with it, and what to do.

    Args:
        in_quotes: As in a file; on a command line there are none.
    """
    shown = [f'"{name}"' if in_quotes else name for name in names]
    near = suggestion(value, names) if isinstance(value, str) else None
    hint = "" if near is None else f"Did you mean {shown[names.index(near)]}?"
    listed = " or ".join(part for part in (", ".join(shown[:-1]), shown[-1]) if part)
    return Words(
        f"{as_toml(value)} is not one of {', '.join(names)}",
        next_step=hint or f"{'Write' if in_quotes else 'Use'} {listed}.",
        code="base.not-one-of",
    )


def _at_least(number: float) -> str:
    return f"{_shown(number)} or more"


def _shown(number: float) -> str:
    """Whole numbers with all their digits: seeds have 64 bits."""
    return str(number) if isinstance(number, int) else f"{number:g}"
