# SPDX-License-Identifier: Apache-2.0
"""Values of the wrong type, refused like all others: what, where, what to do next. For those who run no type
checker over their script."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import cache
from inspect import isclass
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Any, Literal, TypeGuard, Union, get_args, get_origin, get_type_hints

from evenhand.base.errors import RequestError, shortened
from evenhand.base.validation.hostile_json import LEAST
from evenhand.base.validation.hostile_json import MAX_VALUES as MOST_VALUES
from evenhand.base.validation.hostile_json import MOST as LARGEST

_UNITS = {
    "_fps": "a number of frames per second, such as 1e6",
    "_s": "a number of seconds, such as 2.5",
    "_us": "a number of microseconds, such as 100.0",
    "_ppm": "a number of parts per million, such as 100.0",
}
"""What a name ends with, and what it wants."""


MOST = 1 << 64
"""Whole numbers are below it, as are counts of the engine."""
_LONGEST = 60
"""Characters of a value in an error."""


def check_types(instance: Any) -> None:
    """Check a dataclass, as the first thing that its `__post_init__` does. What is as good as the type of its
    field becomes that type: see `plain`.

    Raises:
        RequestError: A field has a value that its annotation does not allow; names the field.
    """
    of: Any = type(instance)
    for name, (kind, may_be_infinite, plain_types) in _kinds(of).items():
        value = getattr(instance, name)
        if _is_plain(value, plain_types):
            continue
        check_type(value, kind, where=name, may_be_infinite=may_be_infinite)
        if (as_plain := plain(value, kind)) is not value:
            object.__setattr__(instance, name, as_plain)


def check_type(value: object, kind: Any, *, where: str, may_be_infinite: bool = False) -> None:
    """RequestError if the value is not of this type.

    A whole number is a float as well, and any sequence will do for a tuple; True is not a number, and neither
    is what is not finite.

    Args:
        where: The argument.
        may_be_infinite: An infinite number means something: as much as there may be.
    """
    if (problem := _beyond(value, may_be_infinite=may_be_infinite)) is not None:
        raise RequestError(problem, code="base.wrong-type", where=where, next_step="Use a smaller number.")
    if _is_odd(value, may_be_infinite=may_be_infinite) or not _is(value, kind):
        what, next_step = _wanted(kind, where)
        raise RequestError(
            f"{shortened(repr(value), _LONGEST)} is not {what}",
            code="base.wrong-type",
            where=where,
            next_step=next_step,
        )


def _is_real(value: object) -> TypeGuard[Real]:
    return isinstance(value, Real) and not isinstance(value, bool)


def _is_odd(value: object, *, may_be_infinite: bool) -> bool:
    """Whether it is a number that is not finite, where it must be."""
    return _is_real(value) and not math.isfinite(value) and not (value == math.inf and may_be_infinite)


def _beyond(value: object, *, may_be_infinite: bool) -> str | None:
    """What is wrong with a number that nothing has, or a sequence that has one or is endless: looked at
    before anything is computed of it, or shown. None if nothing is."""
    if isinstance(value, int):
        digits = int(value.bit_length() * math.log10(2)) + 1
        return f"a number of {digits} digits: must be below 2^64" if abs(value) >= MOST else None
    if isinstance(value, float):
        is_beyond = math.isfinite(value) and value != 0 and not LEAST <= abs(value) <= LARGEST
        return f"{value!r}: too large, or too small, for a number that is measured" if is_beyond else None
    if _is_real(value):
        try:
            found = float(value)
        except OverflowError:
            return "a number without end: too large for a number that is measured"
        if found == 0 and value != 0:
            return "a number that is nearly 0: too small for a number that is measured"
        return _beyond(found, may_be_infinite=may_be_infinite)
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        try:
            is_long = len(value) > MOST_VALUES
        except OverflowError:
            is_long = True
        if is_long:
            return f"more than {MOST_VALUES:,} values"
        problems = (_beyond(each, may_be_infinite=may_be_infinite) for each in value)
        return next((problem for problem in problems if problem is not None), None)
    return None


def plain(value: Any, kind: Any) -> Any:
    """A value that `check_type` allows as JSON, and a key of a cache, know it: numbers of NumPy and fractions
    are `int` or `float`, and any sequence is a tuple, if that is wanted."""
    own: type = type(value)
    if isinstance(value, Real) and own not in (bool, int, float):
        return int(value) if isinstance(value, Integral) else float(value)
    wanted = next((each for each in _choices(kind) if get_origin(each) is tuple), None)
    if wanted is None or not isinstance(value, Sequence) or isinstance(value, str | bytes):
        return value
    found = tuple(plain(each, get_args(wanted)[0]) for each in value)
    is_plain = type(value) is tuple and all(new is old for new, old in zip(found, value, strict=True))
    return value if is_plain else found


@cache
def _kinds(of: type) -> Mapping[str, tuple[Any, bool, frozenset[type]]]:
    """The type of each field; whether it may be infinite: a highest load may, which is the line rate then;
    and its plain types, see `_is_plain`."""
    hints = get_type_hints(of)
    return {
        field.name: (
            hints[field.name],
            field.name == "max_fps" or field.default == math.inf,
            _plain_types(hints[field.name]),
        )
        for field in fields(of)
    }


def _plain_types(kind: Any) -> frozenset[type]:
    """Types of which any value is allowed as it is; of numbers, if it is neither too large nor too small."""
    classes = {each for each in _choices(kind) if get_origin(each) is None and isclass(each)}
    numbers = {int, float} if float in classes else classes & {int, bool}
    return frozenset(
        numbers | {each for each in classes if each is str or not issubclass(each, Real | Sequence)}
    )


def _is_plain(value: Any, plain_types: frozenset[type]) -> bool:
    """Whether a value is surely right, and need not become another type. Almost all are; to look at each
    closely takes most of the time of searches whose length is estimated."""
    own = type(value)
    if own is float:
        return own in plain_types and (value == 0 or LEAST <= abs(value) <= LARGEST)
    return own in plain_types and (own is not int or abs(value) < MOST)


def _is(value: object, kind: Any) -> bool:
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is Any:
        return True
    if origin in (Union, UnionType):
        return any(_is(value, each) for each in arguments)
    if origin is Literal:
        return any(isinstance(value, type(each)) and value == each for each in arguments)
    if kind is float:
        return _is_real(value)
    if kind is int:
        return isinstance(value, Integral) and not isinstance(value, bool)
    if origin in (tuple, Sequence):
        if not isinstance(value, Sequence) or isinstance(value, str | bytes):
            return False
        return (
            all(_is(each, arguments[0]) for each in value)
            if origin is Sequence or arguments[1:] == (...,)
            else _are(value, arguments)
        )
    return isinstance(value, origin or kind)


def _are(values: Sequence[object], kinds: Sequence[Any]) -> bool:
    return len(values) == len(kinds) and all(map(_is, values, kinds))


def _wanted(kind: Any, where: str) -> tuple[str, str]:
    """What it should be, and what to do."""
    kinds = [each for each in _choices(kind) if each is not NoneType]
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


def _choices(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def _name(kind: Any) -> str:
    origin = get_origin(kind)
    if origin is Literal:
        return " or ".join(map(repr, get_args(kind)))
    if origin in (tuple, Sequence):
        return f"a {'tuple' if origin is tuple else 'list'} of {_name(get_args(kind)[0])}"
    if origin in (Union, UnionType):
        return " or ".join(map(_name, get_args(kind)))
    if origin in (Mapping, Callable):
        return "a dict" if origin is Mapping else "a function"
    known = {str: "a text", bool: "True or False", int: "whole numbers"}
    return known.get(kind, kind.__name__ if isclass(kind) else str(kind))
