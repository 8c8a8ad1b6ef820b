# SPDX-License-Identifier: Apache-2.0
"""Analysis: the exact Mann-Whitney test, ties included, and the interval of a ratio that inverts it.

Both ask only that repetitions are independent, not how they are distributed."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from statistics import NormalDist
from typing import TYPE_CHECKING

from evenhand.base.lazy_import import lazy_import
from evenhand.procedure.statistics import Interval

if TYPE_CHECKING:
    import numpy as np
else:
    np = lazy_import("numpy")

LARGEST_EXACT = 50_000_000
"""Additions. Ten values against 160 take three million; beyond this the sum of ranks is taken as normal,
which it then nearly is."""

LARGEST_COUNTED = 200_000
"""Steps to count the arrangements of two samples: 10 values against 160 take 16,000. Beyond this the
statistic is taken as normal."""
RATIO_LEVEL = 0.95
"""The least level of the interval of a ratio. The attainable one above it is used, and stated: 95.7 % of ten
values and ten."""


def lower_p_value(sample: Sequence[float], reference: Sequence[float]) -> float:
    """The probability that, if both are draws of one distribution, the ranks of `sample` are as low as they
    are or lower (one-sided).

    Over all ways to say which of the values belong to the sample: so it is exact also where searches end at
    the same value again and again, and ranks are shared.
    """
    count = len(sample)
    if count == 0 or not reference:
        raise ValueError("nothing to compare")
    doubled = _doubled_midranks([*sample, *reference])
    total = sum(doubled[:count])
    if len(doubled) * count * total > LARGEST_EXACT:
        return _normal_p_value(doubled, count, total)
    # ways[k][s]: in how many ways k of the values so far have the sum s. Only sums up to the observed one are
    # of interest.
    ways = np.zeros((count + 1, total + 1))
    ways[0, 0] = 1.0
    for rank in doubled:
        if rank <= total:
            ways[1:, rank:] += ways[:-1, : total + 1 - rank].copy()
    return min(1.0, float(ways[count].sum()) / math.comb(len(doubled), count))


def least_p_value(sample_count: int, reference_count: int) -> float:
    """What complete separation gives: no test of so many values says less."""
    return 1 / math.comb(sample_count + reference_count, sample_count)


def ratio_interval(
    above: Sequence[float],
    below: Sequence[float],
    *,
    above_uppers: Sequence[float] = (),
    below_uppers: Sequence[float] = (),
    above_lowers: Sequence[float] = (),
    below_lowers: Sequence[float] = (),
    level: float = RATIO_LEVEL,
) -> Interval | None:
    """Interval of the factor between two samples (Hodges and Lehmann): from the k-th lowest to the k-th
    highest of all ratios of one value above to one below, none of them negative.

    It holds the factors that a two-sided Mann-Whitney test does not refute. If both samples have one
    distribution but for a factor, it covers that with exactly the level that is stated, whatever the
    distribution; with ties, at least as often. The level is the lowest attainable one that is not below the
    one that is asked for, or the highest there is if all of them are.

    Args:
        above_uppers: Each value lies anywhere between that of `above` and this one: the ends are the lowest
            and the highest that any choice within the brackets gives. Empty: the values are exact.
        below_uppers: The same of `below`.
        above_lowers: How low each value of `above` may really be; likewise.
        below_lowers: The same of `below`.
        level: The least that is wanted.

    None if an end is not a number, since values below are 0.
    """
    if not above or not below:
        raise ValueError("nothing to compare")
    rank, attained = _rank_and_level(*sorted((len(above), len(below))), level)
    # Over a 0 any ratio is possible, of another 0 at least 0: each end takes the worse.
    lows = sorted(
        a / b if b else (math.inf if a else 0.0) for a in above_lowers or above for b in below_uppers or below
    )
    highs = sorted(a / b if b else math.inf for a in above_uppers or above for b in below_lowers or below)
    low, high = lows[rank - 1], highs[-rank]
    return Interval(low=low, high=high, level=attained) if math.isfinite(high) else None


@lru_cache(maxsize=256)
def _rank_and_level(few: int, many: int, wanted: float = RATIO_LEVEL) -> tuple[int, float]:
    """Which of the ordered ratios are the ends, counted from 1, and how often the interval covers the
    truth."""
    pairs = few * many
    tail = (1 - wanted) / 2
    if pairs * few > LARGEST_COUNTED:
        deviation = math.sqrt(pairs * (few + many + 1) / 12)
        rank = max(1, math.floor(pairs / 2 - 0.5 + NormalDist().inv_cdf(tail) * deviation) + 1)
        return rank, 1 - 2 * NormalDist().cdf((rank - 0.5 - pairs / 2) / deviation)
    # ways[u]: arrangements in which u pairs are the wrong way round. Their generating function is the
    # Gaussian binomial coefficient.
    ways = [1] + [0] * pairs
    for size in range(1, few + 1):
        for u in range(pairs, many + size - 1, -1):
            ways[u] -= ways[u - many - size]
        for u in range(size, pairs + 1):
            ways[u] += ways[u - size]
    total = math.comb(few + many, few)
    lower = list(accumulate(ways))
    rank = max(1, bisect_right(lower, math.floor(total * tail)))
    return rank, 1 - 2 * lower[rank - 1] / total


def _doubled_midranks(values: Sequence[float]) -> list[int]:
    """Twice the ranks from 1, which are then whole numbers also where equal values share theirs."""
    order = sorted(values)
    first: dict[float, int] = {}
    last: dict[float, int] = {}
    for rank, value in enumerate(order, start=1):
        first.setdefault(value, rank)
        last[value] = rank
    return [first[value] + last[value] for value in values]


def _normal_p_value(doubled: Sequence[int], count: int, total: int) -> float:
    """Mean and variance are those of the ranks as they are, shared ones included."""
    size = len(doubled)
    mean = sum(doubled) / size
    variance = sum((rank - mean) ** 2 for rank in doubled) / (size - 1) * count * (size - count) / size
    if variance == 0:
        return 1.0
    return 0.5 * math.erfc(-(total + 1 - count * mean) / math.sqrt(2 * variance))
