# SPDX-License-Identifier: Apache-2.0
"""The known word that somebody most likely meant; letters in the wrong case are no other word."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

USUAL_CUTOFF = 0.6
"""Of difflib's ratio, from 0 to 1."""


def suggestion(word: str, known: Iterable[str], *, cutoff: float = USUAL_CUTOFF) -> str | None:
    """None if none is near.

    Args:
        cutoff: The least likeness that counts, from 0 to 1.
    """
    by_letters = {name.casefold(): name for name in known}
    # `ios` is no misspelling of `cisco-ios`, but a part of it.
    parts = [name for name in by_letters if word.casefold() in re.split("[-_]", name)]
    if len(parts) == 1:
        return by_letters[parts[0]]
    found = get_close_matches(word.casefold(), by_letters, n=1, cutoff=cutoff)
    return by_letters[found[0]] if found else None
