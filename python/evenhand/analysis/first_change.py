# SPDX-License-Identifier: Apache-2.0
"""Analysis: which of many builds was the first that is otherwise, from measurements with noise: a bisection
by probabilities (Waeber, Frazier, Henderson 2013), which decides itself how often to measure what.

The model: all builds before the first changed one have one mean, all from it on another one, and measurements
scatter around it alike. Means and scatter are unknown; they are integrated over, so that a few values that
happen to be close to each other prove nothing.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import accumulate
from statistics import fmean, median
from typing import Literal

from evenhand.analysis.noise import student_quantile
from evenhand.base.errors import RequestError

WIDTH = 1e-3
"""Weight of what is assumed of a mean before it is measured, in measurements: next to nothing."""
CONFIRMED = 2
"""Measurements of the builds on both sides of a change before it is believed: one may have gone wrong."""
NO_CHANGE, DOUBT = 0.5, 0.05
"""Probability, before anything is measured, that good and bad are the same but for noise; and from which on
the ends are measured, which show it soonest."""

Measured = tuple[int, float]
"""Place of a build, and what one measurement of it found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeGoal:
    """When the search may stop.

    `confidence`: probability that the answer must have. `resolution`: scatter that is assumed before any is
    seen, as a share of the value: a search has steps. `smallest`: smallest change that counts, as a share of
    the value: none is there if it is surely smaller. `most`: measurements after which it stops without an
    answer. `at_ends`: measurements of the first and the last build before any other, without which no scatter
    is known.
    """

    confidence: float = 0.99
    resolution: float = 0.005
    smallest: float = 0.02
    most: int = 200
    at_ends: int = 3

    def __post_init__(self) -> None:
        for name, value, is_right in (
            ("confidence", self.confidence, 0.5 < self.confidence < 1),
            ("resolution", self.resolution, 0 < self.resolution < 1),
            ("smallest", self.smallest, 0 < self.smallest < 1),
            ("most", self.most, self.most >= 2 * self.at_ends),
        ):
            if not is_right:
                raise RequestError(
                    f"{name} {value} is out of range",
                    code="analysis.out-of-range",
                    where=name,
                    next_step="Use a confidence of 0.5 to 1, shares of 0 to 1, and at least"
                    f" {2 * self.at_ends} measurements.",
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeBelief:
    """What is known so far: the probability that there is no change, and for each build that it is the first
    changed one; 0 for the first of all."""

    none: float
    first: tuple[float, ...]

    def set_of(self, confidence: float) -> tuple[int, int] | None:
        """Places of the first and last of the fewest neighbouring builds that together have this probability;
        None if it is not reached."""
        sums = [0.0, *accumulate(self.first)]
        best: tuple[int, int] | None = None
        low = 0
        for high in range(1, len(self.first)):
            while low < high and sums[high + 1] - sums[low + 1] >= confidence:
                low += 1
            if sums[high + 1] - sums[low] >= confidence and (best is None or high - low < best[1] - best[0]):
                best = (low, high)
        return best


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstChange:
    """The answer: from `low` to `high` are the places of builds that may be the first changed one. With
    `found` that is usually one, unless those between cannot be measured. `before` and `after` are medians of
    the builds before it and from it on; None: there is no answer."""

    kind: Literal["found", "none", "undecided"]
    low: int
    high: int
    probability: float
    measurements: int
    before: float | None
    after: float | None


def believe(measured: Sequence[Measured], build_count: int, goal: ChangeGoal) -> ChangeBelief:
    """Probabilities after these measurements, of at least one build."""
    counts, sums = [0] * build_count, [0.0] * build_count
    centre = fmean(value for _, value in measured)
    for place, value in measured:
        counts[place] += 1
        sums[place] += value - centre
    total, whole, square = len(measured), sum(sums), sum((value - centre) ** 2 for _, value in measured)
    spread = (goal.resolution * abs(centre)) ** 2 or 1e-12

    def weight(*groups: tuple[int, float]) -> float:
        """How likely the values are if these groups, by count and sum, have one mean each."""
        left = max(0.0, square - sum(of**2 / (WIDTH + count) for count, of in groups))
        foreseen = sum(0.5 * math.log(WIDTH / (WIDTH + count)) for count, _ in groups)
        return foreseen - (1 + total / 2) * math.log(spread + left / 2)

    share = math.log((1 - NO_CHANGE) / (build_count - 1))
    before = list(zip(accumulate(counts), accumulate(sums), strict=True))[:-1]
    changed = [share + weight((count, of), (total - count, whole - of)) for count, of in before]
    logs = [math.log(NO_CHANGE) + weight((total, whole)), *changed]
    most = max(logs)
    weights = [math.exp(each - most) for each in logs]
    everything = sum(weights)
    return ChangeBelief(
        none=weights[0] / everything, first=(0.0, *(each / everything for each in weights[1:]))
    )


def next_build(
    measured: Sequence[Measured], build_count: int, goal: ChangeGoal, skipped: Collection[int] = ()
) -> int | FirstChange:
    """The build to be measured now, or the answer.

    Args:
        skipped: Places of builds that cannot be measured; neither the first nor the last.

    Raises:
        RequestError: There are not two builds, or one of the two ends cannot be measured.
    """
    last = build_count - 1
    if build_count < 2 or 0 in skipped or last in skipped:
        raise RequestError(
            f"{build_count} builds, of which the first and the last must be measured",
            code="analysis.ends-not-measured",
            next_step="Name a good build first and a bad one last, which can be installed and have a number.",
        )
    at_ends = [sum(place == end for place, _ in measured) for end in (0, last)]
    if min(at_ends) < goal.at_ends:
        return 0 if at_ends[0] <= at_ends[1] else last
    belief = believe(measured, build_count, goal)
    if _are_equal(measured, last, goal):
        return _answer("none", 0, last, goal.confidence, measured)
    found = belief.set_of(goal.confidence)
    if found is not None and all(place in skipped for place in range(found[0], found[1])):
        low, high = found
        sides = [max(place for place in range(low) if place not in skipped), high]
        once = [side for side in sides if sum(place == side for place, _ in measured) < CONFIRMED]
        if once and len(measured) < goal.most:
            return once[0]
        return _answer("found", low, high, sum(belief.first[low : high + 1]), measured)
    if len(measured) >= goal.most:
        low, high = found or (1, last)
        return _answer("undecided", low, high, sum(belief.first[low : high + 1]), measured)
    if belief.none > DOUBT:
        return 0 if at_ends[0] <= at_ends[1] else last
    below = list(accumulate(belief.first))
    half = below[-1] / 2
    return min(
        (place for place in range(build_count) if place not in skipped), key=lambda at: abs(below[at] - half)
    )


def _are_equal(measured: Sequence[Measured], last: int, goal: ChangeGoal) -> bool:
    """Whether the interval of the difference of both ends (Student's t) is within the smallest change."""
    ends = [[value for place, value in measured if place == end] for end in (0, last)]
    means = [fmean(values) for values in ends]
    free = sum(map(len, ends)) - 2
    scatter = (
        sum((value - mean) ** 2 for values, mean in zip(ends, means, strict=True) for value in values) / free
    )
    scatter = max(scatter, (goal.resolution * means[0]) ** 2)
    error = math.sqrt(scatter * sum(1 / len(values) for values in ends))
    reach = student_quantile((1 + goal.confidence) / 2, free) * error
    # Both are 0 where all builds lose nothing.
    return abs(means[1] - means[0]) + reach <= goal.smallest * abs(means[0])


def _answer(
    kind: Literal["found", "none", "undecided"],
    low: int,
    high: int,
    probability: float,
    measured: Sequence[Measured],
) -> FirstChange:
    before = [value for place, value in measured if place < low and kind == "found"]
    after = [value for place, value in measured if place >= high and kind == "found"]
    return FirstChange(
        kind=kind,
        low=low,
        high=high,
        probability=probability,
        measurements=len(measured),
        before=median(before) if before else None,
        after=median(after) if after else None,
    )
