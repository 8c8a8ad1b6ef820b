# SPDX-License-Identifier: Apache-2.0
"""Groups of options, each defined once: a verb names a group as a parameter, and Typer sees the options in
it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer

from evenhand.base.option import OptionField, option_field

Verb = Callable[..., int | None]


def with_options(verb: Verb) -> Verb:
    """Spread the groups among a verb's parameters: one that is a dataclass becomes its fields, as options;
    the verb gets it filled in. A group may hold others.

    The fields are annotated as parameters of Typer are. TypeError if two groups have a field of the same
    name.
    """
    hints = get_type_hints(verb, include_extras=True)
    groups: dict[str, type] = {}
    shown: list[inspect.Parameter] = []
    for parameter in inspect.signature(verb).parameters.values():
        annotation = hints[parameter.name]
        if _is_group(annotation):
            groups[parameter.name] = annotation
            shown += _options_of(annotation)
        else:
            annotation = _of_shell(parameter.name, annotation)
            shown.append(parameter.replace(annotation=annotation, kind=inspect.Parameter.KEYWORD_ONLY))

    @functools.wraps(verb)
    def call(**values: Any) -> int | None:
        for name, group in groups.items():
            values[name] = _filled_in(group, values)
        return verb(**values)

    names = [parameter.name for parameter in shown]
    if len(set(names)) < len(names):
        raise TypeError(
            f"{verb.__name__}: the same option in two groups:"
            f" {sorted({name for name in names if names.count(name) > 1})}"
        )
    # What Typer reads instead of the function itself.
    call.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    return call


def _filled_in(group: Any, values: dict[str, Any]) -> Any:
    """The group with its options, which are taken out of `values`."""
    hints = get_type_hints(group, include_extras=True)
    chosen = {
        field.name: _filled_in(hints[field.name], values)
        if _is_group(hints[field.name])
        else values.pop(field.name)
        for field in fields(group)
    }
    return group(**chosen)


def _is_group(annotation: Any) -> bool:
    return is_dataclass(annotation) and isinstance(annotation, type)


def _options_of(group: Any) -> Iterator[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    for field in fields(group):
        if _is_group(hints[field.name]):
            yield from _options_of(hints[field.name])
            continue
        default = inspect.Parameter.empty if field.default is MISSING else field.default
        annotation = _of_shell(field.name, hints[field.name])
        yield inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
        )


def _of_shell(name: str, annotation: Any) -> Any:
    """What Typer is shown of an option of ours (`base/option.py`); anything else as it is."""
    field = option_field(name, annotation)
    if field is None:
        return annotation
    option = field.option
    shell = typer.Option(
        option.declared or field.where,
        metavar=option.metavar or (None if option.grammar is None else option.grammar.metavar),
        help=option.help,
        min=option.least,
        max=option.most,
        rich_help_panel=option.panel,
    )
    return Annotated[_kind_of(field), shell]


def _kind_of(field: OptionField) -> Any:
    """The type that the shell reads: texts, but for numbers, flags, choices and names of files."""
    kinds = [kind for kind in (field.kind, *get_args(field.kind)) if kind is not type(None)]
    if field.choices:
        return field.kind
    if any(get_origin(kind) is list for kind in kinds):
        return list[str] | None
    found = next((kind for kind in (bool, int, Path) if kind in kinds), str)
    return found if field.kind is bool else found | None
