# SPDX-License-Identifier: Apache-2.0
"""Results: a frozen type as a document, and back. What a type's fields are called and of what type they are
says which keys the document has, so that a file from elsewhere is refused here and nowhere behind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, field, fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from evenhand.base.errors import RequestError

T = TypeVar("T")
MOST = 1 << 64
"""No number of a run is so large; with larger ones sums and products of sound numbers are infinite."""


def at_key(
    key: str | None,
    default: Any = MISSING,
    *,
    written: str | None = None,
    only_if: Callable[[Any], bool] | None = None,
) -> Any:
    """A field whose key is not its name, or that is not written as it is.

    Args:
        key: None: the document does not have it.
        written: The property with the value that is written, of a field that may be left to it.
        only_if: Whether the document of such a value has the key; it is read in any case.
    """
    return field(default=default, metadata={"key": key, "written": written, "only_if": only_if})


def beside() -> Any:
    """A mapping whose keys, choices of a `Literal`, stand beside the other keys of its document."""
    return field(default_factory=dict, metadata={"is_beside": True})


def to_document(value: Any) -> dict[str, Any]:
    """Its fields by their keys; those of the type that it extends come last."""
    found: dict[str, Any] = {}
    for each in _fields_of(cast(Any, type(value))):
        of = getattr(value, each.written)
        if each.is_beside:
            found.update(_written(of))
        elif each.only_if is None or each.only_if(value):
            found[each.key] = _written(of)
    return found


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
    found: dict[str, Any] = {}
    for each in _fields_of(kind):
        if each.is_beside:
            there = {name: document[name] for name in get_args(get_args(each.of)[0]) if name in document}
            found[each.name] = _read(each.of, there, place)
        elif document.get(each.key) is not None:
            found[each.name] = _read(each.of, document[each.key], f"{place}.{each.key}")
        elif each.is_needed:
            raise ValueError(f"{place} lacks {each.key}")
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


class _Field(NamedTuple):
    """A field that a document has."""

    name: str
    key: str
    of: Any
    """Its type."""
    is_needed: bool
    written: str
    only_if: Callable[[Any], bool] | None
    is_beside: bool


@cache
def _fields_of(kind: Any) -> tuple[_Field, ...]:
    hints = get_type_hints(kind)
    extended = {each.name for base in kind.__mro__[1:] if is_dataclass(base) for each in fields(base)}
    ordered = sorted(fields(kind), key=lambda each: each.name in extended)
    return tuple(
        _Field(
            name=each.name,
            key=key,
            of=hints[each.name],
            is_needed=each.default is MISSING and each.default_factory is MISSING,
            written=each.metadata.get("written") or each.name,
            only_if=each.metadata.get("only_if"),
            is_beside=each.metadata.get("is_beside", False),
        )
        for each in ordered
        if (key := each.metadata.get("key", each.name)) is not None
    )
