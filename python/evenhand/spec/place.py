# SPDX-License-Identifier: Apache-2.0
"""Specification: where a mistake is, for errors of parts that know arguments, or options of the shell."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from evenhand.base.errors import EvenhandError, RequestError
from evenhand.spec.argument_names import option_places, option_words

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
