# SPDX-License-Identifier: Apache-2.0
"""Base: an option is declared once, as a field of a dataclass, and read the same way wherever it is written.

    @dataclass(frozen=True, slots=True, kw_only=True)
    class LossOptions:
        maximum_rate: Annotated[str | None, Option(grammar=RATE, sets="max_fps", help="...")] = None

The shell calls it `--maximum-rate`, a campaign file `maximum-rate`. The field has its value as it is written,
with its default; `values_of` reads what was given, by the keywords of the goal that the options make.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import MISSING, dataclass, fields
from enum import StrEnum
from functools import cache
from typing import Annotated, Any, Literal, TypeVar, cast, get_args, get_origin, get_type_hints

from evenhand.base.units import parse_count, parse_duration, parse_rate, parse_ratio

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Grammar:
    """How the value of an option is written."""

    metavar: str
    """Placeholder in the help: `RATE`."""
    read: Callable[..., Any]
    """Takes the text, and `where` it is written; gives the value. RequestError if it has another form."""
    write: Callable[[Any], str] = str
    """The text of a value."""

    def default(self, goal: Any, name: str) -> str:
        """The default that a type of goals has for this argument, as it would be written: it is declared
        there alone."""
        return self.write(next(field.default for field in fields(goal) if field.name == name))


def _parse_counts(text: str, *, where: str) -> tuple[int, ...]:
    return tuple(parse_count(word, where=where) for word in text.split(","))


RATE = Grammar("RATE", parse_rate)
"""Frames per second per direction: `500kfps`."""
RATIO = Grammar("RATIO", parse_ratio, lambda ratio: f"{100 * ratio:g}%" if ratio else "0")
"""A share from 0 to 1: `0.5%`."""
DURATION = Grammar("TIME", parse_duration, lambda duration_s: f"{duration_s:g}s")
"""Seconds: `60s`, `5ms`."""
FRAMES = Grammar("FRAMES", parse_count)
NUMBER = Grammar("NUMBER", parse_count)
"""Number of connections: `400000`, `10M`."""
FRAME_COUNTS = Grammar("FRAMES,...", _parse_counts, lambda counts: ",".join(map(str, counts)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """What is said of a field that is an option, in addition to its type and its default."""

    grammar: Grammar | None = None
    """None: the value means what it is, as a number, a choice and a flag do."""
    help: str
    metavar: str | None = None
    """Default: that of the grammar."""
    declared: str = ""
    """The option as the shell has it, where the field's name does not say it: `--from`,
    `--own-loop/--no-own-loop`."""
    sets: str = ""
    """The keyword of the goal that it sets. Default: the field's name."""
    panel: str | None = None
    """The heading of the help under which it is listed."""
    least: int | None = None
    """Least value of a number."""
    most: int | None = None
    """Greatest value of a number."""
    key: str = ""
    """The key that a campaign file has for it. Default: the option's name, without dashes."""
    is_for_shell_only: bool = False
    """A campaign file has no such key, since a file of the user's own is named there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionField:
    """An option of a group."""

    name: str
    """Name without dashes: `maximum-rate`."""
    field: str
    default: Any
    """The default as it would be written."""
    kind: Any
    """The field's type."""
    option: Option

    @property
    def where(self) -> str:
        """For errors."""
        return f"--{self.name}"

    @property
    def key(self) -> str:
        """Its key in a campaign file: `frame-sizes`."""
        return self.option.key or self.name

    @property
    def choices(self) -> tuple[str, ...]:
        """The values that it may have, where these are a few texts; empty: others."""
        for kind in (self.kind, *get_args(self.kind)):
            if get_origin(kind) is Literal:
                return get_args(kind)
            if isinstance(kind, type) and issubclass(kind, StrEnum):
                return tuple(kind)
        return ()

    @property
    def keyword(self) -> str:
        """Keyword of the goal."""
        return self.option.sets or self.field

    def read(self, written: Any, *, where: str | None = None) -> Any:
        """The value of what is written. RequestError names the option, or `where` it is written instead."""
        if written is None or self.option.grammar is None:
            return written
        return self.option.grammar.read(written, where=self.where if where is None else where)


def option_field(name: str, annotation: Any, default: Any = None) -> OptionField | None:
    """The option that a field or a parameter of this name is; None if it is not one."""
    parts = get_args(annotation) if get_origin(annotation) is Annotated else ()
    option = next((part for part in parts[1:] if isinstance(part, Option)), None)
    if option is None:
        return None
    declared = option.declared or f"--{name.replace('_', '-')}"
    return OptionField(
        name=declared.split("/")[0].removeprefix("--"),
        field=name,
        default=str(default) if isinstance(default, StrEnum) else default,
        kind=parts[0],
        option=option,
    )


def needed_field(name: str, annotation: Any, default: Any = None) -> OptionField:
    """The same of one that is an option."""
    found = option_field(name, annotation, default)
    assert found is not None, name
    return found


def options_of(group: type) -> tuple[OptionField, ...]:
    """The options of a group, in its order. Fields that are not options are left out."""
    return _options_of(cast(Hashable, group))


@cache
def _options_of(group: Any) -> tuple[OptionField, ...]:
    hints = get_type_hints(group, include_extras=True)
    defaults = {field.name: None if field.default is MISSING else field.default for field in fields(group)}
    found = (option_field(name, hints[name], default) for name, default in defaults.items())
    return tuple(each for each in found if each is not None)


def values_of(options: Any) -> dict[str, Any]:
    """What a group's options set, by the keywords of their goal; without those that are None.

    Raises:
        RequestError: A value has the wrong form; names the option.
    """
    written = ((each, getattr(options, each.field)) for each in options_of(type(options)))
    return {each.keyword: each.read(value) for each, value in written if value is not None}


def fill(group: type[T], written: Mapping[str, Any]) -> T:
    """The group with what is written, by the names of its options, and the defaults of the others.

    Raises:
        ValueError: A choice has no such value.
    """
    values = {}
    for each in options_of(group):
        value = written.get(each.name, each.default)
        if each.choices and value is not None and value not in each.choices:
            raise ValueError(f"{value!r} is not one of {', '.join(each.choices)}")
        values[each.field] = next((choice for choice in each.choices if choice == value), value)
    return group(**values)
