# SPDX-License-Identifier: Apache-2.0
"""Results: a frozen type as a document, and back. What a type's fields are called and of what type they are
says which keys the document has, so that a file from elsewhere is refused here and nowhere behind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, field, fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from evenhand.base.errors import RequestError

T = TypeVar("T")
MOST = 1 << 64
"""No number of a run is so large; with larger ones sums and products of sound numbers are infinite."""


def at_key(key: str | None, default: Any = MISSING) -> Any:
    """A field whose key is not its name. None: the document does not have it."""
    return field(default=default, metadata={"key": key})


def to_document(value: Any) -> dict[str, Any]:
    """Its fields by their keys; those of the type that it extends come last."""
    return {key: _written(getattr(value, name)) for name, key, _, _ in _fields_of(cast(Any, type(value)))}


def _written(value: Any) -> Any:
    if is_dataclass(value):
        return to_document(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {key: _written(each) for key, each in value.items()}
    return [_written(each) for each in value] if isinstance(value, list | tuple) else value


def from_document(kind: type[T], document: Any, place: str) -> T:
    """The value whose document this is; what the document does not have, or has as null, is the default.

    Args:
        place: Where it stands, for errors: `repetitions.result`.

    Raises:
        ValueError: A value has another type than its field, or a key without a default is missing.
    """
    return cast(T, _read_type(kind, _mapping(document, place), place))


def _read_type(kind: Any, document: Mapping[str, Any], place: str) -> Any:
    found = {
        name: _read(of, document[key], f"{place}.{key}")
        for name, key, of, _ in _fields_of(kind)
        if document.get(key) is not None
    }
    for name, key, _, is_needed in _fields_of(kind):
        if is_needed and name not in found:
            raise ValueError(f"{place} lacks {key}")
    try:
        return kind(**found)
    except RequestError as error:
        raise ValueError(f"{place} is not possible: {error}") from error


def _read(kind: Any, value: Any, place: str) -> Any:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        (only,) = (of for of in arguments if of is not NoneType)
        return None if value is None else _read(only, value, place)
    if kind is Any:
        return value
    if origin is Mapping:
        return {
            _read(arguments[0], key, place): _read(arguments[1], each, f"{place}.{str(key)[:40]}")
            for key, each in _mapping(value, place).items()
        }
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise ValueError(f"{place} is {shown(value)}, but must be a list")
        return tuple(_read(arguments[0], each, f"{place}[{index}]") for index, each in enumerate(value))
    if is_dataclass(kind):
        return _read_type(kind, _mapping(value, place), place)
    choices = arguments if origin is Literal else [each.value for each in kind] if _is_enum(kind) else ()
    if choices:
        check_scalar(str, value, place)
        if value not in choices:
            raise ValueError(f"{place} is {shown(value)}, but must be one of {', '.join(choices)}")
        return value if origin is Literal else kind(value)
    check_scalar(kind, value, place)
    return value


def check_scalar(kind: type, value: Any, place: str) -> None:
    """ValueError unless it is a value of this type: text, true or false, a whole number, or any number that
    is finite."""
    types = int | float if kind is float else kind
    is_right = isinstance(value, types) and (kind is bool or not isinstance(value, bool))
    if not is_right or (kind in (int, float) and not abs(value) < MOST):
        raise ValueError(f"{place} is {shown(value)}, but must be {_NAMES[kind]}")


_NAMES = {str: "text", bool: "true or false", int: "a whole number", float: "a number"}


def shown(value: Any) -> str:
    """A value of a file in an error, cut short."""
    found = repr(value)
    return found if len(found) <= 40 else f"{found[:37]}..."


def _is_enum(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Enum)


def _mapping(value: Any, place: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f"{place} is {shown(value)}, but must be a table")
    return value


@cache
def _fields_of(kind: Any) -> tuple[tuple[str, str, Any, bool], ...]:
    """Name, key, type, and whether it must be there, of each field that a document has."""
    hints = get_type_hints(kind)
    extended = {each.name for base in kind.__mro__[1:] if is_dataclass(base) for each in fields(base)}
    ordered = sorted(fields(kind), key=lambda each: each.name in extended)
    return tuple(
        (each.name, key, hints[each.name], each.default is MISSING and each.default_factory is MISSING)
        for each in ordered
        if (key := each.metadata.get("key", each.name)) is not None
    )
