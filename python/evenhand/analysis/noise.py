# SPDX-License-Identifier: Apache-2.0
"""Analysis: how far the repetitions of a series lie apart, what a difference must exceed where there are too
few of them for a test by ranks, and how many more would decide.

With two to four repetitions, ranks say nothing: the values of two points lie completely apart by chance too
often. But a series has several points, and what the repetitions of one differ by is noise at all of them. So
their deviations are pooled, as in an analysis of variance, and a difference of two medians counts only if it
exceeds both what Student's t allows at the level of the test, and the widest range of the repetitions of any
one point.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist, fmean, median

from evenhand.analysis.medians import MeasuredValues
from evenhand.analysis.ranks import RATIO_LEVEL, least_p_value

LEAST_FOR_TEST = 4
"""Fewest repetitions for a test by ranks."""
MOST_ASKED = 200
"""More repetitions are not asked for: whatever disturbs the DUT or the tester is found sooner."""
OF_MEDIAN = math.sqrt(math.pi / 2)
"""Deviation of a median over that of a mean, of many normal values; of two values both are one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """What the repetitions of all points of a series show of their noise; shares of the median or mean of
    their point."""

    deviation: float
    """Standard deviation, pooled over the points."""
    freedom: int
    """Degrees of freedom of it: repetitions beyond the first of each point. 0: the noise is not known."""
    spread: float
    """Widest range of the repetitions of one point."""

    def error(self, counts: tuple[int, int]) -> float:
        """Standard error of the ratio of two medians of so many values."""
        return self.deviation * math.sqrt(sum((OF_MEDIAN if n > 2 else 1.0) ** 2 / n for n in counts))

    def limit(self, counts: tuple[int, int], alpha: float) -> float:
        """What a difference of two medians of so many values must exceed; 0 if the noise is not known.

        Args:
            alpha: Most probability with which noise alone exceeds it in one direction, if it is normal.
        """
        if not self.freedom:
            return 0.0
        return max(self.spread, student_quantile(1 - alpha, self.freedom) * self.error(counts))

    def reach(self, counts: tuple[int, int]) -> float:
        """How far the true ratio may lie from that of the medians, on either side, with the level of an
        interval of a ratio."""
        return (
            student_quantile((1 + RATIO_LEVEL) / 2, self.freedom) * self.error(counts)
            if self.freedom
            else 0.0
        )

    def repetitions_for(
        self,
        *,
        now: int,
        point_count: int,
        alpha: float,
        width: float,
        difference: float = 0.0,
        least: float = 0.0,
    ) -> int | None:
        """How many repetitions of each point would decide, about: so many that noise hides no more than
        `width`, or less than the difference that is seen now, if that is at least `least`.

        None: more than `MOST_ASKED`, or the noise is not known.

        Args:
            now: Repetitions that there are.
            point_count: How many points the other one is compared with, together.
            alpha: Level of the test, one-sided.
            width: Half the width of an interval that decides, as a share.
        """
        if not self.freedom:
            return None
        firm = difference - self.error((now, now * point_count))
        normal = NormalDist()
        for count in range(now + 1, MOST_ASKED + 1):
            if count < LEAST_FOR_TEST or least_p_value(count, count * point_count) > alpha:
                continue
            error = self.error((count, count * point_count))
            hidden = normal.inv_cdf(1 - alpha) * error
            if normal.inv_cdf((1 + RATIO_LEVEL) / 2) * error <= width or (
                firm >= least > 0 and hidden <= firm
            ):
                return count
        return None


def noise_of(points: Iterable[MeasuredValues]) -> Noise:
    """The noise of points of one series. Lower bounds are left out: what cut them off says nothing of it."""
    squares, freedom, spread = 0.0, 0, 0.0
    for point in points:
        bounds = point.lower_bounds or (False,) * len(point.values)
        values = [value for value, is_bound in zip(point.values, bounds, strict=True) if not is_bound]
        top = max(values, default=0.0)
        if len(values) < 2 or not 0 < top < math.inf or min(values) < 0:
            continue
        shares = [value / top for value in values]  # a foreign file may have values whose sum is infinite
        middle = fmean(shares)
        squares += sum((share / middle - 1) ** 2 for share in shares)
        freedom += len(shares) - 1
        spread = max(spread, (1 - min(shares)) / (median(shares) or middle))
    return Noise(deviation=math.sqrt(squares / freedom) if freedom else 0.0, freedom=freedom, spread=spread)


def say_more(now: int, wanted: int | None, noise: Noise) -> str:
    """`about 9 repetitions more of each point (12 in all) would decide it`."""
    if wanted is not None:
        more = wanted - now
        repetitions = "1 repetition" if more == 1 else f"{more} repetitions"
        return f"about {repetitions} more of each point ({wanted} in all) would decide it"
    if not noise.freedom:
        return f"at least {LEAST_FOR_TEST} repetitions of each point would show the noise"
    return (
        f"even {MOST_ASKED} repetitions would hardly decide it: find out what makes them differ by up to"
        f" {100 * noise.spread:.1f} %"
    )


@lru_cache(maxsize=512)
def student_quantile(probability: float, freedom: int) -> float:
    """The value that Student's t with so many degrees of freedom stays below with this probability, from 0.5
    on; by bisection, to nine digits."""
    low, high = 0.0, 1.0
    while _student_below(high, freedom) < probability:
        low, high = high, 2 * high
        if high > 1e9:
            return math.inf
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _student_below(middle, freedom) < probability else (low, middle)
    return high


def _student_below(t: float, freedom: int) -> float:
    """Probability of a value below t >= 0: the finite sums for whole degrees of freedom (Abramowitz and
    Stegun, 26.7.3 and 26.7.4)."""
    angle = math.atan(t / math.sqrt(freedom))
    sine, square = math.sin(angle), math.cos(angle) ** 2
    is_odd = freedom % 2 == 1
    term = math.cos(angle) if is_odd else 1.0
    total = 0.0
    for k in range(freedom // 2):
        total += term
        term *= square * ((2 * k + 2) / (2 * k + 3) if is_odd else (2 * k + 1) / (2 * k + 2))
    inside = 2 / math.pi * (angle + sine * total) if is_odd else sine * total
    return 0.5 + inside / 2
