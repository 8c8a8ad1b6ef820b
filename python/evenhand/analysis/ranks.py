# SPDX-License-Identifier: Apache-2.0
"""Analysis: the exact Mann-Whitney test, ties included. It asks only that repetitions are independent, not how they are distributed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from evenhand.lazy import lazy

if TYPE_CHECKING:
    import numpy as np
else:
    np = lazy("numpy")

LARGEST_EXACT = 50_000_000
"""Additions. Ten values against 160 take three million; beyond this the sum of ranks is taken as normal, which it then nearly is."""


def lower_p_value(sample: Sequence[float], reference: Sequence[float]) -> float:
    """The probability that, if both are draws of one distribution, the ranks of `sample` are as low as they are or lower (one-sided).

    Over all ways to say which of the values belong to the sample: so it is exact also where searches end at the same value again and
    again, and ranks are shared.
    """
    count = len(sample)
    if count == 0 or not reference:
        raise ValueError("nothing to compare")
    doubled = _doubled_midranks([*sample, *reference])
    total = sum(doubled[:count])
    if len(doubled) * count * total > LARGEST_EXACT:
        return _normal_p_value(doubled, count, total)
    # ways[k][s]: in how many ways k of the values so far have the sum s. Only sums up to the observed one are of interest.
    ways = np.zeros((count + 1, total + 1))
    ways[0, 0] = 1.0
    for rank in doubled:
        if rank <= total:
            ways[1:, rank:] += ways[:-1, : total + 1 - rank].copy()
    return min(1.0, float(ways[count].sum()) / math.comb(len(doubled), count))


def least_p_value(sample_count: int, reference_count: int) -> float:
    """What complete separation gives: no test of so many values says less."""
    return 1 / math.comb(sample_count + reference_count, sample_count)


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
