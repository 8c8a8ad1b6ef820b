# SPDX-License-Identifier: Apache-2.0
"""What repetitions are summed up to."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from evenhand.procedure import Spread
from evenhand.procedure.spread import percentile


def test_percentiles_and_median_are_as_in_the_rfcs() -> None:
    """R8219-15: RFC 2330's example."""
    values = (-2, 7, 7, 4, 18, -5)
    assert [percentile(values, p, 100) for p in (0, 25, 50, 100)] == [-5, -2, 4, 18]
    spread = Spread.of(values)
    assert (spread.count, spread.median, spread.min, spread.max, spread.p1, spread.p99) == (6, 5.5, -5, 18, -5, 18)


def test_percentiles_of_a_thousand() -> None:
    """R8219-09: 1..1000 has the median 500.5 and the 99.9th percentile 999."""
    values = range(1, 1001)
    assert Spread.of(values).median == 500.5
    assert percentile(values, 999, 1000) == 999


@given(st.lists(st.floats(-1e9, 1e9), min_size=1), st.integers(1, 1000))
def test_enough_values_are_at_or_below_a_percentile(values: list[float], per_mille: int) -> None:
    """R8219-15: the smallest measured value for which it is so."""
    found = percentile(values, per_mille, 1000)
    assert found in values
    assert sum(value <= found for value in values) * 1000 >= len(values) * per_mille
    assert sum(value < found for value in values) * 1000 < len(values) * per_mille or found == min(values)


def test_what_is_infinite_stays_so_and_is_null_in_a_document() -> None:
    """R8219-16."""
    spread = Spread.of((1.0, math.inf, 2.0))
    assert (spread.median, spread.mean, spread.max) == (2.0, math.inf, math.inf)
    assert spread.to_document(unit="ns") == {
        "count": 3, "median_ns": 2.0, "mean_ns": None, "min_ns": 1.0, "max_ns": None, "p1_ns": 1.0, "p99_ns": None,
    }  # fmt: skip
