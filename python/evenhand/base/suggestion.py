# SPDX-License-Identifier: Apache-2.0
"""The known word that the user most likely meant; letters in the wrong case do not make another word."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import SequenceMatcher, get_close_matches
from itertools import takewhile

USUAL_CUTOFF = 0.6
"""Cutoff of difflib's ratio, from 0 to 1."""


def suggestion(word: str, known: Iterable[str], *, cutoff: float = USUAL_CUTOFF) -> str | None:
    """None if none is near.

    Args:
        cutoff: The least similarity that counts, from 0 to 1.
    """
    by_letters = {name.casefold(): name for name in known}
    # `ios` is not a misspelling of `cisco-ios`, but a part of it.
    parts = [name for name in by_letters if word.casefold() in re.split("[-_]", name)]
    if len(parts) == 1:
        return by_letters[parts[0]]
    near = get_close_matches(word.casefold(), by_letters, n=len(by_letters) or 1, cutoff=cutoff)
    if not near:
        return None
    # Of names that are equally like it, the one that begins as it does: `nat45` is nat44 rather than nat64.
    best = max(near, key=lambda name: (_similarity(word, name), _common_beginning(word.casefold(), name)))
    return by_letters[best]


def _common_beginning(a: str, b: str) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False)))


def _similarity(word: str, name: str) -> float:
    return SequenceMatcher(None, name, word.casefold()).ratio()
