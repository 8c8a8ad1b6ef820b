# SPDX-License-Identifier: Apache-2.0
"""`--fail-below`: what fails a build, and what noise alone must not fail."""

from __future__ import annotations

import pytest

from evenhand.analysis import Comparison, compare
from evenhand.report.comparison import comparison_document, comparison_lines
from tests.analysis.records import DOUBLING, noisy, point, record


def builds(seed: int, *, repetitions: int = 10, factor: float = 1.0) -> Comparison:
    """17 points with 1 % noise, before and after a change by this factor."""
    before, after = (
        record(
            *(
                point(n, noisy(1e5 * share, repetitions, 0.01, seed=seed * 1000 + n + shift))
                for n in DOUBLING
            ),
            name=name,
        )
        for name, share, shift in (("a", 1.0, 0), ("b", factor, 1))
    )
    return compare([before, after])


def test_builds_of_an_unchanged_dut_do_not_fail() -> None:
    """At 0.99, 17 points and 1 % noise: the point estimates fail more than a tenth of them, the intervals
    none of 40."""
    unchanged = [builds(seed) for seed in range(40)]
    assert sum(bool(found.below(0.99)) for found in unchanged) == 0
    assert sum(bool(found.below(0.99, "median")) for found in unchanged) > 4


def test_a_dut_that_lost_five_percent_fails_with_each_point_judged_by_its_interval() -> None:
    below = builds(1, factor=0.95).below(0.99)
    assert len(below) == len(DOUBLING)
    assert {found.by for found in below} == {"interval"}


@pytest.mark.parametrize(("points", "level"), [(1, 0.95), (17, 1 - 0.05 / 17)])
def test_the_level_is_adjusted_for_the_number_of_points(points: int, level: float) -> None:
    """Bonferroni; the interval that is shown beside the ratio is not."""
    comparison = compare(
        [record(*(point(n, noisy(1e5, 10, 0.01)) for n in DOUBLING[:points]), name=name) for name in "ab"]
    )
    for found in comparison.points:
        gate = found.others[0].gate
        assert gate is not None
        assert level <= gate.level < level + 0.01


@pytest.mark.parametrize("repetitions", [1, 5])
def test_too_few_repetitions_are_judged_by_the_point_estimate_and_it_is_said(repetitions: int) -> None:
    """Nothing passes for want of an interval: five and five have 0.992, and 17 points need 0.997."""
    comparison = builds(1, repetitions=repetitions, factor=0.9)
    assert comparison.without_gate == len(DOUBLING)
    assert {found.by for found in comparison.below(0.97)} == {"median"}
    assert len(comparison.below(0.97)) == len(DOUBLING)
    text = " ".join(comparison_lines(comparison, fail_below=0.97))
    assert "17 values have no such interval" in text
    assert "the point estimate was judged" in text


def test_less_is_better_fails_by_the_reciprocal() -> None:
    """A latency that is a tenth longer."""
    before, after = (point(1, noisy(us, 10, 0.01), procedure="latency") for us in (10.0, 11.0))
    worse, better = (
        compare([record(a, name="a"), record(b, name="b")]) for a, b in ((before, after), (after, before))
    )
    (below,) = worse.below(0.97)
    assert below.by == "interval"
    assert better.below(0.97) == ()


def test_the_document_says_by_what_it_was_judged() -> None:
    comparison = builds(1, factor=0.9)
    document = comparison_document(comparison, fail_below=0.97, fail_by="median")
    assert document["fail_by"] == "median"
    assert {found["by"] for found in document["below"]} == {"median"}
    assert document["without_gate_interval"] == 0
    assert "point estimates alone" in " ".join(
        comparison_lines(comparison, fail_below=0.97, fail_by="median")
    )
