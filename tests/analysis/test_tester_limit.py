# SPDX-License-Identifier: Apache-2.0
"""Lower bounds where the tester could not keep a higher load: they may lie anywhere among the values of a
point."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from evenhand.analysis import analyse, compare
from evenhand.analysis.medians import median_ratio
from evenhand.report.campaign_document import export_document
from evenhand.report.comparison import show_median
from evenhand.report.summary import summary_rows
from evenhand.run.campaign_record import bounds_of, is_median_at_least
from tests.analysis.records import point, record

GATEWAY = "gateway-v4"


@pytest.mark.parametrize(
    ("values", "bounds", "shown"),
    [
        ([1.0, 2.0, 3.0], [False, False, False], ("", "", "")),
        ([1.0, 2.0, 3.0], [False, False, True], ("", "", ">= ")),  # as where the maximum passed
        ([1.0, 2.0, 3.0], [True, False, False], (">= ", ">= ", ">= ")),  # it may lie above all others
        ([2.0, 2.0, 1.0], [False, False, True], ("", ">= ", ">= ")),
        ([1.0, 2.0], [False, True], (">= ", "", ">= ")),
        ([2.0, 2.0, 2.0], [True, True, True], (">= ", ">= ", ">= ")),
        ([], [], ("", "", "")),
    ],
)
def test_a_figure_is_a_lower_bound_if_it_would_rise_with_those_among_its_values(
    values: list[float], bounds: list[bool], shown: tuple[str, str, str]
) -> None:
    """MLR-10."""
    assert bounds_of(values, bounds) == shown
    assert is_median_at_least(values, bounds) is bool(shown[0])


def test_of_lower_bounds_alone_the_highest_is_the_result_wherever_it_is_shown() -> None:
    """MLR-10: a bad minute of the tester's host says less of the DUT, and nothing else. As soon as one
    repetition has found the limit, the median stays a median."""
    limited = point(1, [8e5] * 3, kept={1: 2.08e5, 2: 3.5e5, 3: 2.1e5})
    found = record(limited, point(16, [4e5, 3e5, 5e5], kept={2: 3e5}))
    assert [None if p.statistics is None else p.statistics.median for p in found.points] == [3.5e5, 4e5]
    assert ">= 350 kfps" in summary_rows(found)[0]
    compared = compare([found, replace(found, name="b")]).points[0]
    assert show_median(compared, compared.figure) == ">= 350,000 (3)"
    document = export_document(found)["points"][0]
    assert (document["median"], document["minimum"], document["maximum"]) == (3.5e5, 2.08e5, 3.5e5)
    assert median_ratio(found.points[1], limited).ratio == 4 / 3.5
    statistics = limited.statistics
    assert statistics is not None
    assert statistics.to_document()["median_interval"]["high"] is None


def test_one_pair_that_is_known_below_many_that_the_tester_could_not_keep_is_biased() -> None:
    """SEED-07: "at most X" against "at least Y" says enough where Y is much more."""
    one = point(1, [1e5] * 6, suite="gateway", plan=GATEWAY)
    many = point(65534, [8e5] * 6, suite="gateway", plan=GATEWAY, kept=dict.fromkeys(range(1, 7), 5e5))
    (verdict,) = analyse(record(one, many)).bias
    assert verdict.finding == "hides"
    assert verdict.sentence.startswith("Biased: one address pair hides at least 80.0 %")


@pytest.mark.parametrize("one_fps", [5e5, 4.9e5])
def test_a_lower_bound_gives_no_verdict_in_the_other_direction(one_fps: float) -> None:
    """SEED-07: one pair with "at least" what many addresses show may show as much or more."""
    one = point(1, [8e5] * 6, suite="gateway", plan=GATEWAY, kept=dict.fromkeys(range(1, 7), one_fps))
    many = point(65534, [5e5] * 6, suite="gateway", plan=GATEWAY)
    found = analyse(record(one, many))
    assert found.bias[0].finding == "unknown"
    assert found.bias[0].sentence.startswith(
        "No verdict: a result is only a lower bound, because the tester reached its own limit"
    )
    assert "because the tester could not keep a higher load: 1 x 1" in " ".join(found.warnings)


def test_a_few_lower_bounds_among_the_values_are_no_exact_ones() -> None:
    """Two of ten repetitions were cut off at half: the median is known, and no test takes the two for low
    values."""
    cut = {1: 2e5, 2: 2e5}
    one = point(1, [4e5] * 10, suite="gateway", plan=GATEWAY, kept=cut)
    many = point(65534, [4e5] * 10, suite="gateway", plan=GATEWAY)
    assert not one.is_at_least
    comparison = compare([record(many, name="a"), record(one, name="b")], anyway=True)
    assert comparison.points[0].others[0].is_different is not True
    (verdict,) = analyse(record(one, many)).bias
    assert verdict.finding == "same"


def test_lower_bounds_among_the_values_leave_the_upper_end_of_an_interval_open() -> None:
    """Three of ten: of so many ratios nothing is known above that the interval has no upper end, and is
    none."""
    one = point(1, [4e5] * 10, kept={1: 2e5, 2: 2e5, 3: 2e5})
    assert not one.is_at_least
    assert one.uppers.count(math.inf) == 3
    value = compare([record(point(1, [4e5] * 10), name="a"), record(one, name="b")]).points[0].others[0]
    assert value.ratio is not None
    assert (value.ratio.interval, value.is_different) == (None, None)
    assert value.to_document()["statistics"]["median_interval"]["high"] is None


def test_summary_and_comparison_show_a_lower_bound() -> None:
    limited = point(1, [8e5] * 4, kept=dict.fromkeys(range(1, 5), 5e5))
    assert ">= 500 kfps" in summary_rows(record(limited))[0]
    comparison = compare([record(limited, name="a"), record(limited, name="b")])
    assert show_median(comparison.points[0], comparison.points[0].figure) == ">= 500,000 (4)"
    assert comparison.points[0].others[0].is_different is None
