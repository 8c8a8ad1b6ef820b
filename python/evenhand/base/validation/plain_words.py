# SPDX-License-Identifier: Apache-2.0
"""What pydantic refuses, in words of the file or the command line, and not of Python."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from evenhand.base.suggestion import suggestion
from evenhand.base.validation.toml_words import as_toml

_Bounds = Mapping[str, Any]
_WORDS: Mapping[str, Callable[[_Bounds], tuple[str, str]]] = {
    "too_short": lambda bounds: ("is empty", f"Write {_at_least(bounds['min_length'])}, such as [1]."),
    "too_long": lambda bounds: (
        f"has more than {bounds['max_length']} entries",
        f"Write {bounds['max_length']} or fewer.",
    ),
    "string_too_short": lambda bounds: ("is empty", "Write a text, or omit the key."),
    "string_too_long": lambda bounds: (
        f"has more than {bounds['max_length']} characters",
        "Write a shorter text.",
    ),
    "greater_than": lambda bounds: (
        f"must be greater than {bounds['gt']:g}",
        f"Write a value greater than {bounds['gt']:g}.",
    ),
    "greater_than_equal": lambda bounds: ("is too small", f"Write {_at_least(bounds['ge'])}."),
    "less_than": lambda bounds: (
        f"must be less than {bounds['lt']:g}",
        f"Write a value less than {bounds['lt']:g}.",
    ),
    "less_than_equal": lambda bounds: ("is too large", f"Write {_shown(bounds['le'])} or less."),
    "string_type": lambda _: ("is not a text", 'Write it in quotes: "...".'),
    "bool_type": lambda _: ("is neither true nor false", "Write true or false, without quotes."),
    "model_type": lambda _: (
        "is not a table",
        "Write the keys below a line with the table's name in brackets.",
    ),
    "model_attributes_type": lambda _: (
        "is not a table",
        "Write the keys below a line with the table's name in brackets.",
    ),
}
_WHOLE = ("is not a whole number", "Write a whole number.")
_LIST = ("is not a list", "Write it in brackets: [1, 2].")


def in_plain_words(kind: str, value: Any, bounds: _Bounds) -> tuple[str, str]:
    """What is wrong with the value, and what to do.

    Args:
        kind: The type of pydantic's error.
        bounds: Its context.
    """
    if kind in ("literal_error", "enum"):
        return none_of(value, re.findall(r"'([^']*)'", bounds["expected"]), in_quotes=True)
    if kind in _WORDS:
        what, next_step = _WORDS[kind](bounds)
    elif kind.startswith(("int_", "float_")):
        what, next_step = _WHOLE if kind.startswith("int_") else ("is not a number", "Write a number.")
    elif kind.startswith(("tuple_", "list_")):
        what, next_step = _LIST
    else:
        what, next_step = "is not allowed here", "Write another value."
    return f"{as_toml(value)} {what}", next_step


def none_of(value: Any, names: list[str], *, in_quotes: bool) -> tuple[str, str]:
    """A word that is not among those that may stand here: what is wrong with it, and what to do.

    Args:
        in_quotes: As in a file; on a command line there are none.
    """
    shown = [f'"{name}"' if in_quotes else name for name in names]
    near = suggestion(value, names) if isinstance(value, str) else None
    hint = "" if near is None else f"Did you mean {shown[names.index(near)]}?"
    listed = " or ".join(part for part in (", ".join(shown[:-1]), shown[-1]) if part)
    return (
        f"{as_toml(value)} is not one of {', '.join(names)}",
        hint or f"{'Write' if in_quotes else 'Use'} {listed}.",
    )


def _at_least(number: float) -> str:
    return f"{_shown(number)} or more"


def _shown(number: float) -> str:
    """Whole numbers with all their digits: seeds have 64 bits."""
    return str(number) if isinstance(number, int) else f"{number:g}"
