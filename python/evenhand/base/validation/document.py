# SPDX-License-Identifier: Apache-2.0
"""A frozen type as a document, and back. What a type's fields are called and of what type they are
says which keys the document has, so that a file from elsewhere is refused here and nowhere behind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, field, fields, is_dataclass
from enum import Enum
from functools import cache, partial
from types import NoneType, UnionType
from typing import (
    Any,
    Literal,
    NamedTuple,
    TypeAlias,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from evenhand.base.errors import RequestError

T = TypeVar("T")
Reader: TypeAlias = Callable[[Any, str], Any]
"""Gets a value of a document and its place, and returns the value of the field. ValueError if it is none."""
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
        if each.beside:
            found.update(_written(of))
        elif each.only_if is None or each.only_if(value):
            found[each.key] = _written(of)
    return found


class Documented:
    """A frozen type whose document is its fields."""

    __slots__ = ()

    def to_document(self) -> dict[str, Any]:
        """For JSON."""
        return to_document(self)


def _written(value: Any) -> Any:
    if is_dataclass(value):
        return value.to_document() if hasattr(value, "to_document") else to_document(value)
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
        if each.beside:
            there = {name: document[name] for name in each.beside if name in document}
            found[each.name] = each.read(there, place)
        elif (value := document.get(each.key)) is not None:
            found[each.name] = each.read(value, f"{place}.{each.key}")
        elif each.is_needed:
            raise ValueError(f"{place} lacks {each.key}")
    try:
        return kind(**found)
    except RequestError as error:
        raise ValueError(f"{place} is not possible: {error}") from error


@cache
def _reader_of(kind: Any) -> Reader:
    """What reads a value of this type from a document. Made once for each type: a large campaign has a
    million values."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        (only,) = map(_reader_of, (of for of in arguments if of is not NoneType))
        return lambda value, place: None if value is None else only(value, place)
    if kind is Any:
        return lambda value, place: value
    if origin is Mapping:
        read_key, read_value = map(_reader_of, arguments)
        return lambda value, place: {
            read_key(key, place): read_value(each, f"{place}.{str(key)[:40]}")
            for key, each in _mapping(value, place).items()
        }
    if origin is tuple:
        return partial(_read_items, _reader_of(arguments[0]))
    if hasattr(kind, "from_document"):
        return cast(Reader, kind.from_document)
    if is_dataclass(kind):
        return lambda value, place: _read_type(kind, _mapping(value, place), place)
    if origin is Literal:
        return partial(_read_choice, {choice: choice for choice in arguments})
    if isinstance(kind, type) and issubclass(kind, Enum):
        return partial(_read_choice, {each.value: each for each in kind})
    return partial(_read_scalar, kind)


def _read_items(read: Reader, value: Any, place: str) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise ValueError(f"{place} is {shown(value)}, but must be a list")
    return tuple(read(each, f"{place}[{index}]") for index, each in enumerate(value))


def _read_choice(choices: Mapping[str, Any], value: Any, place: str) -> Any:
    check_scalar(str, value, place)
    if value not in choices:
        raise ValueError(f"{place} is {shown(value)}, but must be one of {', '.join(choices)}")
    return choices[value]


def _read_scalar(kind: type, value: Any, place: str) -> Any:
    check_scalar(kind, value, place)
    return value


def check_scalar(kind: type, value: Any, place: str) -> None:
    """ValueError unless it is a value of this type: text, true or false, a whole number, or any number that
    is finite."""
    is_right = isinstance(value, _TYPES[kind]) and (kind is bool or not isinstance(value, bool))
    if not is_right or (kind in (int, float) and not abs(value) < MOST):
        raise ValueError(f"{place} is {shown(value)}, but must be {_NAMES[kind]}")


_TYPES: Mapping[type, tuple[type, ...]] = {str: (str,), bool: (bool,), int: (int,), float: (int, float)}
_NAMES = {str: "text", bool: "true or false", int: "a whole number", float: "a number"}


def shown(value: Any) -> str:
    """A value of a file in an error, cut short."""
    found = repr(value)
    return found if len(found) <= 40 else f"{found[:37]}..."


def _mapping(value: Any, place: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f"{place} is {shown(value)}, but must be a table")
    return value


class _Field(NamedTuple):
    """A field that a document has."""

    name: str
    key: str
    read: Reader
    is_needed: bool
    written: str
    only_if: Callable[[Any], bool] | None
    beside: tuple[str, ...]
    """Keys of a mapping that stand beside the other keys of the document; empty if it is none."""


@cache
def _fields_of(kind: Any) -> tuple[_Field, ...]:
    hints = get_type_hints(kind)
    extended = {each.name for base in kind.__mro__[1:] if is_dataclass(base) for each in fields(base)}
    ordered = sorted(fields(kind), key=lambda each: each.name in extended)
    return tuple(
        _Field(
            name=each.name,
            key=key,
            read=_reader_of(hints[each.name]),
            is_needed=each.default is MISSING and each.default_factory is MISSING,
            written=each.metadata.get("written") or each.name,
            only_if=each.metadata.get("only_if"),
            beside=get_args(get_args(hints[each.name])[0]) if each.metadata.get("is_beside") else (),
        )
        for each in ordered
        if (key := each.metadata.get("key", each.name)) is not None
    )
