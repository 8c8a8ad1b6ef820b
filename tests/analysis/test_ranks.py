# SPDX-License-Identifier: Apache-2.0
"""The exact Mann-Whitney test."""

from __future__ import annotations

from itertools import combinations
from math import comb, exp
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.analysis import ranks
from evenhand.analysis.ranks import least_p_value, lower_p_value, ratio_interval
from evenhand.procedure.statistics import Statistics

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
def test_the_probability_is_that_of_counting_all_ways_ties_included(
    sample: list[float], reference: list[float]
) -> None:
    """SEED-66: binary searches end at the same value again and again, so ties are the rule."""
    assert lower_p_value(sample, reference) == pytest.approx(by_enumeration(sample, reference))


def test_separated_values_have_the_least_probability() -> None:
    assert (
        lower_p_value([1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0])
        == pytest.approx(1 / comb(7, 3))
        == least_p_value(3, 4)
    )


def test_equal_values_say_nothing() -> None:
    assert lower_p_value([5.0] * 10, [5.0] * 50) == 1.0


def with_u(u: int) -> tuple[list[float], list[float]]:
    """Ten values and ten, such that in `u` of the 100 pairs the sample's is the larger one."""
    reference = [float(value) for value in range(10)]
    above = [min(10, max(0, u - 10 * i)) for i in range(10)]
    return [count - 0.5 + i / 1000 for i, count in enumerate(above)], reference  # no two alike


@pytest.mark.parametrize(("critical_u", "level"), [(27, 0.05), (23, 0.025), (19, 0.01), (16, 0.005)])
def test_the_critical_values_of_the_published_tables(critical_u: int, level: float) -> None:
    """For ten values against ten, one-sided."""
    assert lower_p_value(*with_u(critical_u)) <= level < lower_p_value(*with_u(critical_u + 1))


def test_large_samples_are_taken_as_normal_and_agree_with_the_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    sample = [float(value) for value in range(0, 90, 3)]
    reference = [float(value) for value in range(12, 112)]
    exact = lower_p_value(sample, reference)
    monkeypatch.setattr(ranks, "LARGEST_EXACT", 0)
    assert lower_p_value(sample, reference) == pytest.approx(exact, rel=0.2)
    assert lower_p_value([5.0] * 4, [5.0] * 4) == 1.0


@pytest.mark.parametrize(("few", "many"), [(3, 3), (4, 4), (4, 9), (5, 5), (10, 10), (10, 40)])
def test_the_level_of_an_interval_is_that_of_the_test_it_inverts(few: int, many: int) -> None:
    """With the interval's k and one less pair the wrong way round, the two-sided test refutes the factor."""
    rank, level = ranks._rank_and_level(few, many)
    wrong = [min(many, max(0, rank - 1 - many * i)) for i in range(few)]
    above = [many - count + 0.5 + i / 1000 for i, count in enumerate(wrong)]
    p_value = lower_p_value([-value for value in above], [-(i + 1.0) for i in range(many)])
    assert 1 - 2 * p_value == pytest.approx(level)


def test_ten_values_and_ten_have_the_published_rank_and_level() -> None:
    """The critical value of U is 23 at a two-sided level of 0.05, so the 24th of the hundred ratios is the
    end."""
    rank, level = ranks._rank_and_level(10, 10)
    assert rank == 24
    assert level == pytest.approx(0.957, abs=0.001)


@pytest.mark.parametrize("noise", ["normal", "skewed"])
def test_an_interval_covers_the_factor_as_often_as_it_says(noise: str) -> None:
    """4,000 pairs of ten repetitions with 1 % noise, apart by 3 %: within 0.01 of the level."""
    draw = Random(28)
    covered = 0
    for _ in range(4_000):
        values = [draw.gauss(0, 0.01) if noise == "normal" else 0.01 * draw.expovariate(1) for _ in range(20)]
        interval = ratio_interval(
            [1030 * exp(value) for value in values[:10]], [1000 * exp(value) for value in values[10:]]
        )
        assert interval is not None
        covered += interval.low <= 1.03 <= interval.high
    assert covered / 4_000 == pytest.approx(ranks._rank_and_level(10, 10)[1], abs=0.01)


def test_an_interval_is_a_third_narrower_than_that_of_two_medians() -> None:
    draw = Random(29)
    exact = of_medians = 0.0
    for _ in range(400):
        above, below = ([1000 * exp(draw.gauss(0, 0.01)) for _ in range(10)] for _ in range(2))
        interval, upper, lower = ratio_interval(above, below), Statistics.of(above), Statistics.of(below)
        assert interval is not None
        assert upper is not None
        assert lower is not None
        exact += interval.high - interval.low
        a, b = upper.median_interval, lower.median_interval
        of_medians += a.high / b.low - a.low / b.high
    assert exact < 0.7 * of_medians


def test_ties_make_an_interval_cover_more_and_never_less() -> None:
    """Values on a grid as coarse as their noise."""
    draw = Random(30)
    covered = 0
    for _ in range(2_000):
        above, below = ([round(1000 * exp(draw.gauss(0, 0.01)), -1) for _ in range(10)] for _ in range(2))
        interval = ratio_interval(above, below)
        assert interval is not None
        covered += interval.low <= 1 <= interval.high
    assert covered / 2_000 >= ranks._rank_and_level(10, 10)[1] - 0.005


def test_zeros_below_leave_an_end_open_or_no_interval() -> None:
    assert ratio_interval([1.0] * 4, [0.0] * 4) is None
    assert ratio_interval([0.0] * 4, [0.0] * 4) is None
    found = ratio_interval([1.0] * 10, [0.0] + [1.0] * 9)
    assert found is not None
    assert (found.low, found.high) == (1.0, 1.0)
