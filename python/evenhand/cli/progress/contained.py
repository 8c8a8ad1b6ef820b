# SPDX-License-Identifier: Apache-2.0
"""What shows is apart from what measures: a mistake in a line of progress costs that line, never the trial
that it is about.

A display is called from the middle of a measurement: between the trials of a search, and in the thread that
reads the engine. An error that left it would end a campaign of days for a comma.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import ParamSpec

from evenhand.cli.common import err

P = ParamSpec("P")


def contained(show: Callable[P, None]) -> Callable[P, None]:
    """What shows something; an error of its own is said on stderr, once for each kind,
    and goes no further."""

    @wraps(show)
    def shown(*arguments: P.args, **keywords: P.kwargs) -> None:
        try:
            show(*arguments, **keywords)
        except Exception as error:
            with suppress(Exception):
                _say(show.__qualname__, error)

    return shown


_said: set[tuple[str, str]] = set()


def _say(where: str, error: Exception) -> None:
    """Without the display, which has just failed."""
    kind = (where, type(error).__name__)
    if kind in _said:
        return
    _said.add(kind)
    err().print(
        f"A line of progress is missing because of a bug in Evenhand: {type(error).__name__}: {error}."
        " The measurement goes on, and nothing that it stores is affected. Please report it.",
        markup=False,
        soft_wrap=True,
    )


def forget() -> None:
    """What was said already is said again, by the next measurement of this process."""
    _said.clear()
