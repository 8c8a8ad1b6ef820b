# SPDX-License-Identifier: Apache-2.0
"""Values of the wrong type, refused like all others: what, where, what to do next. For those who run no type
checker over their script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import cache
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from evenhand.base.errors import RequestError

_UNITS = {
    "_fps": "a number of frames per second, such as 1e6",
    "_s": "a number of seconds, such as 2.5",
    "_us": "a number of microseconds, such as 100.0",
    "_ppm": "a number of parts per million, such as 100.0",
}
"""What a name ends with, and what it wants."""


def check_types(instance: Any) -> None:
    """Check a dataclass, as the first thing that its `__post_init__` does.

    Raises:
        RequestError: A field has a value that its annotation does not allow; names the field.
    """
    of: Any = type(instance)
    for name, kind in _kinds(of).items():
        check_type(getattr(instance, name), kind, where=name)


def check_type(value: object, kind: Any, *, where: str) -> None:
    """RequestError if the value is not of this type.

    A whole number is a float as well, and any sequence will do for a tuple; True is not a number.

    Args:
        where: The argument.
    """
    if not _is(value, kind):
        what, next_step = _wanted(kind, where)
        raise RequestError(
            f"{value!r} is not {what}", code="base.wrong-type", where=where, next_step=next_step
        )


@cache
def _kinds(of: type) -> Mapping[str, Any]:
    hints = get_type_hints(of)
    return {field.name: hints[field.name] for field in fields(of)}


def _is(value: object, kind: Any) -> bool:
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is Any:
        return True
    if origin in (Union, UnionType):
        return any(_is(value, each) for each in arguments)
    if origin is Literal:
        return value in arguments
    if kind is float:
        return isinstance(value, Real) and not isinstance(value, bool)
    if kind is int:
        return isinstance(value, Integral) and not isinstance(value, bool)
    if origin is tuple:
        if not isinstance(value, Sequence) or isinstance(value, str | bytes):
            return False
        return (
            all(_is(each, arguments[0]) for each in value)
            if arguments[1:] == (...,)
            else _are(value, arguments)
        )
    return isinstance(value, origin or kind)


def _are(values: Sequence[object], kinds: Sequence[Any]) -> bool:
    return len(values) == len(kinds) and all(map(_is, values, kinds))


def _wanted(kind: Any, where: str) -> tuple[str, str]:
    """What it should be, and what to do."""
    kinds = [
        each
        for each in (get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,))
        if each is not NoneType
    ]
    none = " or None" if kinds != [kind] else ""
    if float in kinds:
        unit = next(
            (text for suffix, text in _UNITS.items() if where.endswith(suffix)), "a number, such as 0.5"
        )
        return f"a number{none}", f"Give {unit}; texts with units are only for the command line."
    if int in kinds:
        return f"a whole number{none}", "Give a whole number, such as 1."
    names = " or ".join(_name(each) for each in kinds)
    return f"{names}{none}", f"Give {names}."


def _name(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return " or ".join(map(repr, get_args(kind)))
    if get_origin(kind) is tuple:
        return f"a tuple of {_name(get_args(kind)[0])}"
    return {str: "a text", bool: "True or False", int: "whole numbers"}.get(
        kind, getattr(kind, "__name__", str(kind))
    )
