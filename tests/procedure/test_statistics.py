# SPDX-License-Identifier: Apache-2.0
"""Figures over repetitions: median, percentiles, and an interval of the median that holds what it says."""

from __future__ import annotations

import math
import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.procedure.statistics import MOST_EXACT, Statistics, median_interval, percentile

VALUES = st.lists(st.floats(min_value=0, max_value=1e9), min_size=1, max_size=60)


def test_the_figures_of_ten_searches() -> None:
    """SEED-72, R8219-18: median, minimum, maximum, 1st and 99th percentile; ten values are too few for
    percentiles inside."""
    found = Statistics.of([5, 1, 2, 3, 4, 6, 7, 8, 9, 10])
    assert found is not None
    assert (found.median, found.minimum, found.maximum, found.percentile_1, found.percentile_99) == (
        5.5,
        1,
        10,
        1,
        10,
    )
    assert (found.median_interval.low, found.median_interval.high) == (2, 9)
    assert found.median_interval.level == pytest.approx(0.978515625)


def test_nothing_has_no_figures() -> None:
    assert Statistics.of([]) is None


def test_percentiles_are_measured_values() -> None:
    """R8219-15: RFC 2330, 11.3, whose example has 2 as the 25th percentile of -2, 7, 7, 4, 18, -5."""
    ordered = sorted([-2.0, 7.0, 7.0, 4.0, 18.0, -5.0])
    assert [percentile(ordered, share) for share in (1e-9, 0.5, 0.51, 1.0)] == [-5, 4, 7, 18]
    hundreds = [float(n) for n in range(1, 201)]
    assert (percentile(hundreds, 0.01), percentile(hundreds, 0.99)) == (2, 198)


def test_a_few_values_tell_how_little_they_say() -> None:
    """R8219-18: the whole range of three values covers the median in three of four cases only."""
    levels = [median_interval([float(n) for n in range(count)]).level for count in range(1, 8)]
    assert levels == [0, 0.5, 0.75, 0.875, 0.9375, 0.96875, 0.984375]


def test_the_interval_covers_the_median_as_often_as_it_says() -> None:
    """Drawn from a skewed distribution, whose median is ln 2."""
    draw = random.Random(7)
    runs = [sorted(draw.expovariate(1) for _ in range(10)) for _ in range(4_000)]
    covered = sum(interval.low <= 0.6931 <= interval.high for interval in map(median_interval, runs))
    assert covered / len(runs) == pytest.approx(0.9785, abs=0.01)


@given(VALUES)
def test_the_figures_are_in_order(values: list[float]) -> None:
    found = Statistics.of(values)
    assert found is not None
    interval = found.median_interval
    in_order = [
        found.minimum,
        found.percentile_1,
        interval.low,
        found.median,
        interval.high,
        found.percentile_99,
        found.maximum,
    ]
    assert all(a <= b for a, b in pairwise([in_order[0], *in_order[2:5], in_order[6]]))
    assert found.minimum <= found.percentile_1 <= found.percentile_99 <= found.maximum
    assert len(values) < 6 or 0.95 <= interval.level <= 1
    assert found.count == len(values)


def test_the_spread_is_relative_to_the_median() -> None:
    for values, spread in (
        ([100.0, 101.0, 100.0], 0.01),
        ([5.0, 5.0], 0.0),
        ([0.0, 0.0], 0.0),
        ([0.0, 0.0, 1.0], float("inf")),
    ):
        found = Statistics.of(values)
        assert found is not None
        assert found.spread == pytest.approx(spread)


@pytest.mark.parametrize("count", [MOST_EXACT + 1, MOST_EXACT + 2, 3001])
def test_the_interval_of_many_values_is_that_of_whole_numbers(count: int) -> None:
    """R8219-18. Beyond a thousand it is computed with floats."""
    below, k = 1, 1
    while 1 - (below + math.comb(count, k)) / 2 ** (count - 1) >= 0.95:
        below, k = below + math.comb(count, k), k + 1
    found = median_interval([float(value) for value in range(count)])
    assert (found.low, found.high) == (k - 1, count - k)
    assert found.level == pytest.approx(1 - below / 2 ** (count - 1), abs=1e-9)


def test_a_million_values_have_an_interval_without_numbers_of_a_million_bits() -> None:
    """A trial with 20,000 tags took minutes after it had ended."""
    found = median_interval([float(value) for value in range(10**6)])
    assert (found.low, found.high) == (499_019, 500_980)


def test_only_where_all_values_are_lower_bounds_the_highest_of_them_is_the_median() -> None:
    """SEED-72: one exact value among them, and the median is that of all."""
    values = [3.0, 1.0, 2.0]
    bounds = Statistics.of(values, lower_bounds=[True] * 3)
    assert bounds is not None
    assert (bounds.median, bounds.median_interval.high) == (3, math.inf)
    assert bounds.to_document()["median_interval"]["high"] is None
    for mixed in ([True, True, False], [False, True, False], []):
        found = Statistics.of(values, lower_bounds=mixed)
        assert found is not None
        assert (found.median, found.median_interval.high) == (2, 3)


def test_the_interval_reaches_up_to_what_failed_at_its_rank() -> None:
    """SEED-72: not to the highest load that failed in any repetition, and not to the value itself."""
    values = [float(n) for n in range(1, 11)]
    found = Statistics.of(values, [value + 0.5 for value in values[:-1]] + [100.0])
    assert found is not None
    assert (found.median_interval.low, found.median_interval.high) == (2, 9.5)
    assert found.maximum == 10
