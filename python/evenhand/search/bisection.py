# SPDX-License-Identifier: Apache-2.0
"""Station 8: the largest whole number that passes, by halving; for procedures that search no load but a
length."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthBracket:
    """Where the limit lies."""

    lower: int
    """The largest number that passed, below every one that failed; 0 if none did."""
    upper: int | None
    """The smallest that failed; None: the maximum itself passed."""
    is_complete: bool = True
    """False: some number could not be decided, and the limit lies anywhere between the two."""


def find_largest(
    passes: Callable[[int], bool | None],
    *,
    maximum: int,
    step: int = 1,
    known: int | None = None,
    proven: int = 0,
) -> LengthBracket:
    """Binary search from `proven`, which needs no proof, to `maximum`, which is tried first.

    Args:
        passes: Tries one number; None if it could not be decided, which ends the search.
        step: The search ends when the bounds are no further apart.
        known: Where the limit lay before. The search begins there, with steps that double; both bounds are
            proven anew.
    """
    lower, width = proven, step
    upper: int | None = None
    while upper is None or upper - lower > step:
        if known is None or not 0 < known < maximum or (lower > 0 and upper is not None):
            number = maximum if upper is None else (lower + upper) // 2
        elif lower == 0 and upper is None:
            number = known
        else:
            number = min(lower + width, maximum) if upper is None else max(upper - width, 1)
            width *= 2
        passed = passes(number)
        if passed is None:
            return LengthBracket(lower=lower, upper=upper, is_complete=False)
        if not passed:
            upper = number
        elif number == maximum:
            return LengthBracket(lower=maximum, upper=None)
        else:
            lower = number
    return LengthBracket(lower=lower, upper=upper)
