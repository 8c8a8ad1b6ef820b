# SPDX-License-Identifier: Apache-2.0
"""Procedure: figures over repetitions (SEED-72, R8219-18)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Self

FEWEST_FOR_PERCENTILES = 20
"""Values from which on the 1st and the 99th percentile are shown: RFC 8219 has so many repetitions. With
fewer they would be the minimum and the maximum under another name."""
OWN_PERCENTILES = 100
"""Values from which on they are not both ends of the range."""
MOST_EXACT = 1000
"""Values whose interval is computed in whole numbers."""
WANTED_LEVEL = 0.95
"""Confidence level of the median's interval; with fewer than six values even the whole range covers less, and
`Interval.level` says how much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Where the median of all possible repetitions lies, by order statistics: it holds for any distribution
    of independent values."""

    low: float
    high: float
    level: float
    """Probability that the median lies in it: at least 0.95 from six values on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """Statistics of measured values. Only the median of an even number of values is interpolated (RFC 2330,
    11.3)."""

    count: int
    median: float
    """If all values are lower bounds, the highest of them: each is true, and the highest says the most."""
    minimum: float
    maximum: float
    percentile_1: float
    percentile_99: float
    median_interval: Interval

    @classmethod
    def of(
        cls, values: Iterable[float], uppers: Iterable[float] = (), *, lower_bounds: Iterable[bool] = ()
    ) -> Self | None:
        """None if there are none.

        Args:
            uppers: For each value, how high it may really be, such as the lowest load that failed: the upper
                end of the interval of the median is taken from these, and is infinite where lower bounds
                leave it open. All other figures are those of the values. Empty: the values are exact.
            lower_bounds: For each value, whether it is a lower bound. Empty: none is.
        """
        ordered = sorted(values)
        if not ordered:
            return None
        interval = median_interval(ordered)
        highest = sorted(uppers)
        if highest:
            interval = replace(interval, high=median_interval(highest).high)
        bounds = tuple(lower_bounds)
        are_bounds = bool(bounds) and all(bounds)
        if are_bounds:
            interval = replace(interval, high=math.inf)
        return cls(
            count=len(ordered),
            median=ordered[-1] if are_bounds else _median(ordered),
            minimum=ordered[0],
            maximum=ordered[-1],
            percentile_1=percentile(ordered, 0.01),
            percentile_99=percentile(ordered, 0.99),
            median_interval=interval,
        )

    @property
    def spread(self) -> float:
        """(maximum - minimum) / median; infinite if the median is 0 and the values differ."""
        if self.maximum == self.minimum:
            return 0.0
        return (self.maximum - self.minimum) / self.median if self.median else math.inf

    def to_document(self) -> dict[str, Any]:
        interval = self.median_interval
        high = interval.high if math.isfinite(interval.high) else None
        return {
            "count": self.count,
            "median": self.median,
            "minimum": self.minimum,
            "maximum": self.maximum,
            "percentile_1": self.percentile_1,
            "percentile_99": self.percentile_99,
            "median_interval": {"low": interval.low, "high": high, "level": interval.level},
        }


def percentile(ordered: list[float], share: float) -> float:
    """The smallest value x with F(x) >= share, of values in ascending order (RFC 2330, 11.3); 0 < share <=
    1."""
    return ordered[max(math.ceil(share * len(ordered) - 1e-9), 1) - 1]


def median_interval(ordered: list[float]) -> Interval:
    """The interval from the k-th value to the k-th from the end, with the largest k that covers WANTED_LEVEL;
    else from the first to the last."""
    count = len(ordered)
    k, level = _rank_and_level(count)
    return Interval(low=ordered[k - 1], high=ordered[count - k], level=level)


@lru_cache(maxsize=64)
def _rank_and_level(count: int) -> tuple[int, float]:
    """The largest rank k whose interval covers WANTED_LEVEL of the medians, and what it covers."""
    if count > MOST_EXACT:
        return _rank_of_many(count)
    # Subsets in which fewer than k of the values lie below the median: a sum that grows with k, and is not
    # begun anew for each.
    below = 1
    k = 1
    while 2 * (k + 1) <= count and _coverage(count, more := below + math.comb(count, k)) >= WANTED_LEVEL:
        k, below = k + 1, more
    return k, _coverage(count, below)


def _rank_of_many(count: int) -> tuple[int, float]:
    """The same by the probabilities as floats: as integers they have as many bits as there are values, and a
    million takes hours. Nine standard deviations from the middle they are less than 1e-18."""
    k = max(0, math.floor(count / 2 - 4.5 * math.sqrt(count)))
    log = math.lgamma(count + 1) - math.lgamma(k + 1) - math.lgamma(count - k + 1) - count * math.log(2)
    probability, below = math.exp(log), 0.0
    """The probability of exactly k values below the median, and of fewer."""
    while 1 - 2 * (below + probability) >= WANTED_LEVEL:
        below += probability
        probability *= (count - k) / (k + 1)
        k += 1
    return k, 1 - 2 * below


def _coverage(count: int, below: int) -> float:
    """Probability that the median lies between two values: neither below the lower nor, by symmetry, above
    the upper one."""
    return max(0.0, float(1 - below / 2 ** (count - 1)))


def _median(ordered: list[float]) -> float:
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def finite(value: float | None) -> float | None:
    """The value for documents: JSON has no infinity."""
    return value if value is not None and math.isfinite(value) else None
