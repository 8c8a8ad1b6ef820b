# SPDX-License-Identifier: Apache-2.0
"""What files of the user's have in common, whatever is in them: how TOML is read, and how a mistake in it is told."""

from __future__ import annotations

import difflib
import tomllib
from pathlib import Path
from typing import Any

from pydantic import BaseModel, BeforeValidator, ValidationError

from evenhand.errors import EvenhandError, RequestError

MOST_LISTED = 30
"""Keys that an error names beside the nearest one."""


class RefusedError(ValueError):
    """What pydantic may know of an error of ours, which says itself what to do next."""

    def __init__(self, error: EvenhandError) -> None:
        super().__init__(error.what)
        self.next_step = error.next_step


def with_unit(parse: Any) -> BeforeValidator:
    """Of a text such as "5s", which `parse` reads."""

    def read(value: Any) -> Any:
        if not isinstance(value, str):
            raise ValueError("is a text with a unit, in quotes")
        try:
            return parse(value)
        except EvenhandError as error:
            raise ValueError(f"{error.what}. {error.next_step}") from error

    return BeforeValidator(read)


def read_toml(path: Path, *, what: str) -> dict[str, Any]:
    """The document of a TOML file.

    Args:
        what: Such as "testbed file".

    Raises:
        RequestError: It cannot be read, or is not TOML.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RequestError(f"this file cannot be read: {error.strerror}", where=str(path), next_step=f"Name a {what}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RequestError(f"this file is not TOML: {error}", where=str(path), next_step="Correct it there.") from error


def unknown_key(key: str, known: list[str], *, where: str) -> RequestError:
    """With the nearest known one."""
    nearest = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
    hint = f"Did you mean {nearest[0]!r}?" if nearest else ""
    listed = "" if nearest and len(known) > MOST_LISTED else f"Known here: {', '.join(known)}."
    return RequestError(f"unknown key {key!r}", where=where, next_step=" ".join(part for part in (hint, listed) if part))


def first_problem(error: ValidationError) -> Any:
    """The one that is told: a misspelt key shows up twice, as unknown and as missing, and the unknown one is what the user wrote."""
    return sorted(error.errors(include_url=False), key=lambda problem: problem["type"] != "extra_forbidden")[0]


def refusal(problem: Any, root: type[BaseModel], *, at: str) -> RequestError:
    """What pydantic found, with its value and what to do next.

    Args:
        problem: See `first_problem`.
        root: The model that was made.
        at: The file, and the place in it.
    """
    if problem["type"] == "extra_forbidden":
        *parents, key = problem["loc"]
        return unknown_key(str(key), known_keys(root, parents), where=at)
    if problem["type"] == "missing":
        return RequestError("this key is missing", where=at, next_step="Add it.")
    refused = problem.get("ctx", {}).get("error")
    if isinstance(refused, RefusedError):
        return RequestError(str(refused), where=at, next_step=refused.next_step)
    message = problem["msg"].removeprefix("Value error, ")
    shown = f"{problem['input']!r}: " if not isinstance(problem["input"], dict) else ""
    return RequestError(f"{shown}{message}", where=at, next_step="Correct it there.")


def known_keys(root: type[BaseModel], parents: list[Any]) -> list[str]:
    """Of the table at this place, as the user writes them."""
    table: Any = root
    for part in parents:
        if isinstance(part, int):  # the model of a list's items has been reached by the list's name
            continue
        table = _model_in(next(field for name, field in table.model_fields.items() if part in (name, field.alias)).annotation)
    return [field.alias or name for name, field in table.model_fields.items()]


def _model_in(annotation: Any) -> Any:
    """The model in `Model`, `Model | None` or `tuple[Model, ...]`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(found for part in getattr(annotation, "__args__", ()) if (found := _model_in(part)) is not None)
