# SPDX-License-Identifier: Apache-2.0
"""Specification: where a mistake is, for errors of parts that know arguments, or options of the shell."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

from evenhand.base.errors import EvenhandError, RequestError
from evenhand.base.option import options_of
from evenhand.base.validation.checked_file import Loc
from evenhand.procedure.registry import PROCEDURES
from evenhand.spec.common_options import RepetitionOptions
from evenhand.spec.plan import CountOptions, PlanOptions
from evenhand.spec.presets import EVERY_SUITE
from evenhand.spec.request import OF_ALL


def place_of(loc: Loc, *, whole: Mapping[str, Any], document: Mapping[str, Any]) -> str:
    """`suite "direct": hosts`; of a list also which of its values.

    Args:
        whole: What was checked.
        document: What the user wrote of it.
    """
    if len(loc) > 1 and loc[0] == "suite" and isinstance(loc[1], int):
        suite = whole["suite"][loc[1]]
        name = suite.get("name") if isinstance(suite, dict) else None
        if isinstance(name, str) and len(loc) > 2:
            return place_in_suite(document, name, *_named(loc[2:]))
        return ": ".join(
            [f"suite {name!r}" if isinstance(name, str) else f"suite {loc[1] + 1}", *_dotted(_named(loc[2:]))]
        )
    return ".".join(_named(loc))


def place_in_suite(document: Mapping[str, Any], suite: str, key: str, *inner: str) -> str:
    """A key that the suite itself does not have is placed in `[every-suite]`, if it is written there."""
    own = [table for table in document.get("suite", ()) if table.get("name") == suite]
    every = document.get(EVERY_SUITE, document.get(EVERY_SUITE.replace("-", "_"), {}))
    is_of_every = _has(every, key) and not any(_has(table, key) for table in own)
    return ": ".join([EVERY_SUITE if is_of_every else f"suite {suite!r}", *_dotted([key, *inner])])


def _has(table: Mapping[str, Any], key: str) -> bool:
    return key in {name.replace("_", "-") for name in table}


def _dotted(names: list[str]) -> list[str]:
    return [".".join(names)] if names else []


def _named(loc: Loc) -> list[str]:
    """Keys alone, without numbers of items and what pydantic adds for the alternatives of a union."""
    return [
        str(part) for part in loc if isinstance(part, str) and part not in ("int", "str", "constrained-int")
    ]


_OTHERS = {
    "first": "--plan",
    "second": "--plan",
    "share": "--mix",
    "goals": "--goal",
    "frame_size": "--frame-size",
    "frame_sizes": "--frame-size",
    "one_pair": "--after",
    "one_pair_first": "--one-pair-first",
    "allows_unreachable": "--allow-unreachable",
}
"""Arguments that no option sets by this name."""


@cache
def _options(_registered: tuple[str, ...]) -> dict[str, str]:
    groups: list[type] = [procedure.options for procedure in PROCEDURES.values()]
    groups += [*OF_ALL, PlanOptions, CountOptions, RepetitionOptions]
    declared = (each for group in groups for each in options_of(group))
    return {**{each.keyword: each.where for each in declared}, **_OTHERS}


def argument_options() -> dict[str, str]:
    """Options by the argument of the Python API that they set."""
    return _options(tuple(PROCEDURES))


_ARGUMENT = re.compile(r"\b[a-z]+(?:_[a-z]+)+\b")
"""In a sentence: words without an underscore are words."""


def option_places(where: str, known: Collection[str] | None = None) -> str:
    """The place of an error, `burst_frames, duration_s`, with options for arguments: `--burst, --duration`.

    Args:
        known: Options of the verb; others are none of its arguments. None: all of them.
    """
    return ", ".join(dict.fromkeys(_option(part, known) for part in where.split(", ")))


def option_words(sentence: str, known: Collection[str] | None = None) -> str:
    """The same within a sentence."""
    return _ARGUMENT.sub(lambda found: _option(found[0], known), sentence)


def _option(name: str, known: Collection[str] | None) -> str:
    option = argument_options().get(name, name)
    return option if known is None or option in known else name


_DASHES = re.compile(r"--(?=[a-z])")
_OTHER_NAMES = {"frame-size": "frame-sizes"}
"""Options that are lists in a file."""


@contextmanager
def placed(where: str) -> Iterator[None]:
    """An error inside is of this place. Options have no dashes in a file: `--rate` and the argument
    `rate_fps` become `rate`."""
    try:
        yield
    except EvenhandError as error:
        inner, next_step = (
            _DASHES.sub("", option_places(error.where)),
            _DASHES.sub("", option_words(error.next_step)),
        )
        place = ": ".join(part for part in (where, _OTHER_NAMES.get(inner, inner)) if part)
        raise RequestError(
            error.what, code=error.code, where=place, next_step=next_step or "Correct it there."
        ) from error
