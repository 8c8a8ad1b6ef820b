# SPDX-License-Identifier: Apache-2.0
"""Analysis: where a series of numbers changes from one level to another.

The groups are those of jumpavg, the library of FD.io CSIT's trending: of all ways to cut the series into
groups of successive numbers, it takes the one whose description is shortest (minimum description length). A
group has an average and a deviation of its own, and each further one costs bits for both, so noise alone
rarely pays for a second. docs/explanation/trends.md has what was measured of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from evenhand.base.lazy_import import lazy_import

if TYPE_CHECKING:
    import jumpavg
else:
    jumpavg = lazy_import("jumpavg")

FEWEST_RUNS = 6
"""Fewest numbers of a series that is cut into levels. In fewer, even a change of five deviations is seldom
found."""
SHORTEST_LEVEL = 2
"""Fewest numbers of a level. One alone among others of another level is set aside: the next one shows whether
it was the first of a new level, or a stray."""
MOST_APART = 3
"""At most one number in so many is set aside; a series with more of them has no levels."""
RESOLUTION = 0.002
"""Share of the median below which differences do not count: finer than the brackets of usual searches
(0.5 %), and coarser than what jumpavg takes by itself. A group costs fewer bits then, so a change is found
earlier, and false alarms stay as rare."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """Which numbers of a series are of one level, by their places from 0."""

    groups: tuple[tuple[int, ...], ...]
    """Groups in order; each number is in one of them, or set aside."""
    apart: tuple[int, ...] = ()
    """Set aside, in ascending order."""


def find_levels(values: Sequence[float]) -> Levels:
    """The levels of a series, at least one.

    Numbers are taken as exact, and none may be below 0. ValueError if there are none.
    """
    if not values:
        raise ValueError("nothing to cut into levels")
    kept, apart = list(range(len(values))), list[int]()
    while len(kept) >= FEWEST_RUNS and max(values[i] for i in kept) > 0:
        groups = _cut(values, kept)
        alone = [group[0] for group in groups if len(group) < SHORTEST_LEVEL]
        if not alone:
            return Levels(groups=groups, apart=tuple(sorted(apart)))
        apart += alone
        kept = [place for place in kept if place not in alone]
        if len(apart) * MOST_APART > len(values):
            return Levels(groups=(tuple(range(len(values))),))
    return Levels(groups=(tuple(kept),), apart=tuple(sorted(apart)))


def _cut(values: Sequence[float], kept: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    numbers = [float(values[place]) for place in kept]
    unit = RESOLUTION * (median(numbers) or max(numbers))
    groups, begin = list[tuple[int, ...]](), 0
    for group in jumpavg.classify(numbers, unit=unit):
        end = begin + len(group.run_list)
        groups.append(tuple(kept[begin:end]))
        begin = end
    return tuple(groups)
