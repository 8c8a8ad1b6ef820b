# SPDX-License-Identifier: Apache-2.0
"""Specification: what an argument of the Python API is called on the command line: errors name the argument,
and get the user's name for it here."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache

from evenhand.base.option import options_of
from evenhand.procedure.registry import PROCEDURES
from evenhand.spec.plan import CountOptions, PlanOptions
from evenhand.spec.repetition import RepetitionOptions
from evenhand.spec.request import OF_ALL

_OTHERS = {
    "first": "--plan",
    "second": "--plan",
    "share": "--mix",
    "goals": "--goal",
    "frame_size": "--frame-size",
    "frame_sizes": "--frame-size",
    "single_pair": "--after",
    "single_pair_first": "--single-pair-first",
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
