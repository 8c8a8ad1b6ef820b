# SPDX-License-Identifier: Apache-2.0
"""The exact Mann-Whitney test."""

from __future__ import annotations

from itertools import combinations
from math import comb

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.analysis import ranks
from evenhand.analysis.ranks import least_p_value, lower_p_value

VALUES = st.lists(st.integers(0, 6).map(float), min_size=1, max_size=5)


def by_enumeration(sample: list[float], reference: list[float]) -> float:
    """Every way to choose the sample from all values, and how often its sum of midranks is as low."""
    pooled = sorted([*sample, *reference])
    midrank = {value: pooled.index(value) + (pooled.count(value) + 1) / 2 for value in pooled}
    observed = sum(midrank[value] for value in sample)
    ways = [sum(midrank[value] for value in chosen) for chosen in combinations(pooled, len(sample))]
    return sum(way <= observed + 1e-9 for way in ways) / len(ways)


@settings(deadline=None)
@given(sample=VALUES, reference=VALUES)
def test_the_probability_is_that_of_counting_all_ways_ties_included(sample: list[float], reference: list[float]) -> None:
    """SEED-66: binary searches end at the same value again and again, so ties are the rule."""
    assert lower_p_value(sample, reference) == pytest.approx(by_enumeration(sample, reference))


def test_separated_values_have_the_least_probability() -> None:
    assert lower_p_value([1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0]) == pytest.approx(1 / comb(7, 3)) == least_p_value(3, 4)


def test_equal_values_say_nothing() -> None:
    assert lower_p_value([5.0] * 10, [5.0] * 50) == 1.0


def with_u(u: int) -> tuple[list[float], list[float]]:
    """Ten values and ten, such that in `u` of the 100 pairs the sample's is the larger one."""
    reference = [float(value) for value in range(10)]
    above = [min(10, max(0, u - 10 * i)) for i in range(10)]
    return [count - 0.5 + i / 1000 for i, count in enumerate(above)], reference  # no two alike


@pytest.mark.parametrize(("critical_u", "level"), [(27, 0.05), (23, 0.025), (19, 0.01), (16, 0.005)])
def test_the_critical_values_of_the_published_tables(critical_u: int, level: float) -> None:
    """Of ten values against ten, one-sided."""
    assert lower_p_value(*with_u(critical_u)) <= level < lower_p_value(*with_u(critical_u + 1))


def test_large_samples_are_taken_as_normal_and_agree_with_the_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    sample = [float(value) for value in range(0, 90, 3)]
    reference = [float(value) for value in range(12, 112)]
    exact = lower_p_value(sample, reference)
    monkeypatch.setattr(ranks, "LARGEST_EXACT", 0)
    assert lower_p_value(sample, reference) == pytest.approx(exact, rel=0.2)
    assert lower_p_value([5.0] * 4, [5.0] * 4) == 1.0
