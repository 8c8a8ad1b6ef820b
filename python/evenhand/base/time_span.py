# SPDX-License-Identifier: Apache-2.0
"""Expected times: one that is right within a factor of two, or from where to where where nobody can know."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Self

from evenhand.base.units import format_duration

NARROW = 2.0
"""The longest time is at most so many times the shortest where one number says as much as two: their middle
is off by less than half of it."""
UNBOUNDED = 1000.0
"""From so many times the shortest on, the longest time says nothing."""


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """Seconds from the shortest time to the longest."""

    least_s: float
    most_s: float

    @classmethod
    def of(cls, seconds: float) -> Self:
        """About so long."""
        return cls(seconds, seconds)

    @classmethod
    def sum(cls, spans: Iterable[Self]) -> Self:
        """All of them, one after the other."""
        known = list(spans)
        return cls(sum(span.least_s for span in known), sum(span.most_s for span in known))

    @property
    def middle_s(self) -> float:
        """As many times the shortest as the longest is of it. Where the shortest is nothing, half of the
        longest."""
        return math.sqrt(self.least_s * self.most_s) if self.least_s > 0 else self.most_s / 2

    @property
    def is_wide(self) -> bool:
        """Whether one number would say too much."""
        return self.most_s > NARROW * self.least_s + 1  # what is left of a second is nothing

    @property
    def stated_s(self) -> float:
        """The one time that is said, or the shortest of a range."""
        return self.least_s if self.is_wide else self.middle_s

    @property
    def stated_most_s(self) -> float | None:
        """The longest of a range; None: one time is said."""
        return self.most_s if self.is_wide else None

    def times(self, factor: float) -> TimeSpan:
        """So many of it."""
        return TimeSpan(factor * self.least_s, factor * self.most_s)

    def then(self, seconds: float) -> TimeSpan:
        """With so many seconds more; less for a negative number, but never less than nothing."""
        return TimeSpan(max(0.0, self.least_s + seconds), max(0.0, self.most_s + seconds))

    @property
    def words(self) -> str:
        """`about 3 min`, `40 s to 12 min`, `40 s or more`: rounded, for what is said once."""
        return f"{'' if self.is_wide else 'about '}{self._written(_rounded_s)}"

    @property
    def exact(self) -> str:
        """`3 min 12 s`, `40 s to 12 min 20 s`: to the second, for what runs down."""
        return self._written(round)

    def _written(self, rounded_s: Callable[[float], int]) -> str:
        def write(seconds: float) -> str:
            return format_duration(max(1, rounded_s(seconds)))

        if not self.is_wide:
            return write(self.middle_s)
        if self.most_s > UNBOUNDED * max(1.0, self.least_s):
            return f"{write(self.least_s)} or more"
        return f"{write(self.least_s)} to {write(self.most_s)}"


def _rounded_s(seconds: float) -> int:
    """As exact as an expectation is."""
    step_s = next(
        step_s for least_s, step_s in ((7200, 300), (600, 60), (60, 10), (0, 1)) if seconds >= least_s
    )
    return step_s * round(seconds / step_s)
