# SPDX-License-Identifier: Apache-2.0
"""Rise, plateau and fall of series whose truth was planted."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from evenhand.analysis import Shape, analyse
from evenhand.analysis.plateau import LEVEL, choose_plateau, possible_comparisons
from tests.analysis.records import DOUBLING, noisy, point, record

TOP_FPS = 1e6


def shape_of(levels: Sequence[float], *, repetitions: int = 10, noise: float = 0.0, seed: int = 1) -> Shape:
    """The shape of a doubling series whose first points have these shares of the plateau."""
    points = [
        point(hosts, noisy(level * TOP_FPS, repetitions, noise, seed=seed * 100 + i))
        for i, (hosts, level) in enumerate(zip(DOUBLING, levels, strict=False))
    ]
    (curve,) = analyse(record(*points)).curves
    assert curve.shape is not None
    return curve.shape


@st.composite
def planted(draw: st.DrawFn) -> tuple[list[float], int, int]:
    """Levels, place of the first plateau point, place of the last: each step of rise and fall changes by 8
    percent or more."""
    count = draw(st.integers(4, 17))
    first = draw(st.integers(0, count - 2))
    last = draw(st.integers(first + 1, count - 1))
    steps = st.floats(0.2, 0.92)
    levels = [1.0] * count
    for i in range(first - 1, -1, -1):
        levels[i] = levels[i + 1] * draw(steps)
    for i in range(last + 1, count):
        levels[i] = levels[i - 1] * draw(steps)
    return levels, first, last


@settings(deadline=None, max_examples=150)
@given(planted=planted(), seed=st.integers(0, 10**6))
def test_a_planted_rise_and_fall_are_found_where_they_are(
    planted: tuple[list[float], int, int], seed: int
) -> None:
    """SEED-66: ten repetitions, noise of 1 percent, an effect of 8 percent and more."""
    levels, first, last = planted
    shape = shape_of(levels, noise=0.01, seed=seed)
    assert shape.rise_end == (DOUBLING[first] if first > 0 else None)
    assert shape.falls_above == (DOUBLING[last] if last < len(levels) - 1 else None)
    assert shape.fall_begin == (DOUBLING[last + 1] if last < len(levels) - 1 else None)
    assert shape.plateau == DOUBLING[first : last + 1]
    assert shape.plateau_level == pytest.approx(TOP_FPS, rel=0.02)


@settings(deadline=None, max_examples=100)
@given(planted=planted(), repetitions=st.integers(1, 3))
def test_one_to_three_repetitions_go_by_a_tolerance_and_say_so(
    planted: tuple[list[float], int, int], repetitions: int
) -> None:
    levels, first, last = planted
    shape = shape_of(levels, repetitions=repetitions)
    assert (shape.rise_end, shape.falls_above) == (
        DOUBLING[first] if first > 0 else None,
        DOUBLING[last] if last < len(levels) - 1 else None,
    )
    assert not shape.is_noise_known
    assert all(test.p_value is None for test in shape.tests)
    known = "the noise is not known, and" if repetitions == 1 else "so"
    assert f"{known} a change of the medians of 5.0 % was taken as a change." in shape.sentences[-1]
    assert "a tolerance, not a test" in shape.method


@pytest.mark.thorough
@pytest.mark.parametrize("noise", [0.02, 0.1, 0.3])
def test_noise_alone_makes_no_rise_or_fall_more_often_than_the_level_says(noise: float) -> None:
    """SEED-66: 200 series of the same DUT. With a probability of 0.05 each, more than 20 claims have one of
    0.001."""
    claims = 0
    for seed in range(200):
        shape = shape_of([1.0] * 17, noise=noise, seed=seed)
        claims += shape.rise_end is not None or shape.falls_above is not None
    assert claims <= 20
    assert shape.level == LEVEL


def test_noise_alone_is_kept_in_check_with_four_repetitions_too() -> None:
    """With so few the test needs a plateau of many points to say anything at all; where it cannot, the
    tolerance decides, and says so."""
    tested = [
        shape
        for seed in range(100)
        if (shape := shape_of([1.0] * 17, repetitions=4, noise=0.02, seed=seed)).is_noise_known
    ]
    assert len(tested) > 80
    assert sum(shape.falls_above is not None for shape in tested) <= 12


def test_the_choice_of_the_plateau_is_counted() -> None:
    """By hand, of four points: 1 + 3 runs of one point with three outside, three runs of two with two, two of
    three with one."""
    assert possible_comparisons(4) == 4 * 3 + 3 * 2 + 2 * 1
    assert (
        possible_comparisons(17) == sum((17 - length + 1) * (17 - length) for length in range(1, 17)) == 1632
    )


def test_a_change_that_is_no_more_than_noise_is_none() -> None:
    """SEED-66: the median of the last point is 10 percent lower, and so are many values on the plateau."""
    values = [[TOP_FPS * (1 + x) for x in (-0.3, -0.2, -0.1, -0.1, 0.0, 0.0, 0.1, 0.1, 0.2, 0.3)]] * 5
    values.append([TOP_FPS * (0.9 + x) for x in (-0.3, -0.2, -0.1, -0.1, 0.0, 0.0, 0.1, 0.1, 0.2, 0.3)])
    (curve,) = analyse(record(*(point(n, v) for n, v in zip(DOUBLING, values, strict=False)))).curves
    assert curve.shape is not None
    assert curve.shape.falls_above is None
    assert curve.shape.is_noise_known
    (test,) = curve.shape.tests
    assert test.change == pytest.approx(-0.1)
    assert test.p_value is not None
    assert test.p_value > 0.05
    assert any("within the noise" in sentence for sentence in curve.shape.sentences)


def test_a_dut_that_hashes_ports_does_not_rise() -> None:
    """Type 2: one pair already spreads the load."""
    shape = shape_of([1.0] * 17, noise=0.005)
    assert (shape.rise_end, shape.falls_above, shape.plateau) == (None, None, DOUBLING)
    assert shape.sentences[0] == "No rise: one address pair is not lower than the plateau."
    assert shape.sentences[2] == "No fall up to 65,533 x 65,533."


def test_a_series_that_only_rises_has_no_plateau() -> None:
    shape = shape_of([1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0], noise=0.01)
    assert (shape.rise_end, shape.falls_above) == (16, None)
    assert not shape.is_plateau_seen
    assert "it is not known whether the throughput rises further" in shape.sentences[0]


def test_a_series_that_only_falls() -> None:
    shape = shape_of([1.0, 0.8, 0.6, 0.5], noise=0.01)
    assert (shape.rise_end, shape.falls_above, shape.fall_begin) == (None, 1, 2)


def test_one_point_that_stands_alone_is_no_plateau() -> None:
    """A lucky power of two, or a disturbed search: what its neighbours agree on is the level."""
    shape = shape_of([0.1, 0.5, 1.0, 1.0, 1.1, 1.0, 1.0, 0.7])
    assert (shape.rise_end, shape.falls_above) == (4, 64)
    assert any("16 x 16 is 10.0 % above the plateau" in sentence for sentence in shape.sentences)
    assert choose_plateau([0.1, 1.0, 0.6], 0.05) == (1, 1)


def test_a_dip_between_points_of_the_plateau_is_no_fall() -> None:
    shape = shape_of([0.5, 1.0, 1.0, 0.8, 1.0, 1.0])
    assert (shape.rise_end, shape.falls_above) == (2, None)
    assert any(
        sentence.startswith("The median of 8 x 8 is 20.0 % below the plateau") for sentence in shape.sentences
    )


def test_a_point_without_number_leaves_the_place_open_and_says_so() -> None:
    points = [
        point(1, [1e5] * 10),
        point(2, [None], reason="tester's ceiling"),
        point(4, [4e5] * 10),
        point(8, [4e5] * 10),
    ]
    analysis = analyse(record(*points))
    shape = analysis.curves[0].shape
    assert shape is not None
    assert shape.rise_end == 4
    assert any(
        sentence.startswith("2 x 2 has no number, so where the rise ends") for sentence in shape.sentences
    )
    assert any("2 x 2 has no number: tester's ceiling" in warning for warning in analysis.warnings)


@settings(deadline=None, max_examples=60)
@given(values=st.lists(st.lists(st.sampled_from([0.0, 1.0, 5e4, 1e5, 99_999.5]), max_size=12), max_size=8))
@example(values=[[0.0] * 4, [0.0, 0.0, 1.0, 1.0]])
def test_no_series_is_too_odd_to_be_read(values: list[list[float]]) -> None:
    """Zeros, equal values, points without any: never an error, and a document that JSON can hold."""
    analysis = analyse(record(*(point(n, v) for n, v in zip(DOUBLING, values, strict=False))))
    json.dumps(analysis.to_document(), allow_nan=False)


def test_the_order_of_the_repetitions_does_not_matter() -> None:
    values = [noisy(level * TOP_FPS, 10, 0.02, seed=i) for i, level in enumerate([0.3, 0.6, 1.0, 1.0, 0.8])]
    shapes = []
    for seed in (1, 2):
        draw = random.Random(seed)
        shuffled = [draw.sample(v, len(v)) for v in values]
        shapes.append(
            analyse(record(*(point(n, v) for n, v in zip(DOUBLING, shuffled, strict=False)))).curves[0].shape
        )
    assert shapes[0] == shapes[1]
