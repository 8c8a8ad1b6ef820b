# SPDX-License-Identifier: Apache-2.0
"""What a search leaves open between the highest load that passed and the lowest that failed, in intervals, verdicts and comparisons."""

from __future__ import annotations

from dataclasses import replace

import pytest

from evenhand.analysis import analyse, compare
from evenhand.analysis.medians import Pool, median_ratio
from evenhand.analysis.ranks import ratio_interval
from evenhand.report.comparison import comparison_lines, show_median
from evenhand.series.campaign import PointRecord
from tests.analysis.records import point, record


def searched(found: PointRecord, precision: float) -> PointRecord:
    """The same, as a search leaves it that stops at this precision: the lowest load that failed stands beside each value."""
    repetitions = tuple(
        replace(one, result={"upper_fps_per_direction": None if one.value is None else one.value / (1 - precision)})
        for one in found.repetitions
    )
    return replace(found, repetitions=repetitions)


def test_ten_equal_values_below_ten_equal_others_are_not_told_apart_within_their_brackets() -> None:
    """Ratio 0.996, precision 0.5 %: the true ratio may be 1."""
    before, after = (searched(point(1, [fps] * 10), 0.005) for fps in (100_000.0, 99_600.0))
    (value,) = compare([record(before, name="a"), record(after, name="b")]).points[0].others
    assert value.ratio is not None
    assert value.ratio.interval is not None
    assert value.ratio.interval.low == pytest.approx(0.996 * 0.995)
    assert value.ratio.interval.high == pytest.approx(0.996 / 0.995)
    assert value.is_different is False
    exact = compare([record(point(1, [100_000.0] * 10), name="a"), record(point(1, [99_600.0] * 10), name="b")])
    assert exact.points[0].others[0].is_different is True


def test_the_interval_is_the_widest_that_any_limits_within_the_brackets_give() -> None:
    above, below = [10.0, 11.0, 12.0, 13.0], [20.0, 21.0, 22.0, 23.0]
    found = ratio_interval(above, below, above_uppers=[v + 2 for v in above], below_uppers=[v + 4 for v in below])
    assert found is not None
    assert (found.low, found.high) == (10.0 / 27.0, 15.0 / 20.0)


def test_the_interval_of_a_median_reaches_to_the_loads_that_failed() -> None:
    (curve,) = analyse(record(searched(point(1, [1000.0] * 10), 0.005), searched(point(2, [1000.0] * 10), 0.005))).curves
    statistics = curve.points[0].statistics
    assert statistics is not None
    assert statistics.median_interval.low == 1000.0
    assert statistics.median_interval.high == pytest.approx(1000 / 0.995)
    assert statistics.median == 1000.0


@pytest.mark.parametrize("one_fps", [799_840.0, 700_000.0, 100_000.0])
def test_a_precision_that_is_not_well_below_five_percent_gives_no_verdict(one_fps: float) -> None:
    """SEED-07: with searches that stop at 10 %, also a pair 0.02 % apart was called biased."""
    points = [point(1, [one_fps] * 10, suite="pair", plan="gateway-v4"), point(65534, [8e5] * 10, suite="many", plan="gateway-v4")]
    (coarse,) = analyse(record(*(searched(found, 0.1) for found in points))).bias
    assert coarse.finding == "unknown"
    assert "the searches stop at 10.0 %: give --precision well below 5 %" in coarse.certainty
    (fine,) = analyse(record(*(searched(found, 0.005) for found in points))).bias
    assert fine.finding == ("same" if one_fps > 760_000 else "hides")


def test_a_ratio_of_coarse_searches_is_not_called_about_equal() -> None:
    """SEED-70."""
    direct = [searched(point(n, [4e5] * 10), 0.04) for n in (1, 16, 64)]
    gateway = searched(point(65534, [4e5] * 10, suite="gateway", plan="gateway-v4"), 0.04)
    (ratio,) = analyse(record(*direct, gateway)).ratios
    assert "the searches stop at 4.0 %" in ratio.sentence
    assert not ratio.is_flagged


def test_the_bracket_stands_beside_each_throughput_and_lower_bounds_have_none() -> None:
    found, capped = searched(point(1, [99_500.0] * 10), 0.005), searched(point(1, [2e5] * 10, maximum=1e5), 0.005)
    comparison = compare([record(found, name="a"), record(capped, name="b")])
    assert show_median(comparison.points[0], comparison.points[0].figure) == "99,500 .. 100,000 (10)"
    assert show_median(comparison.points[0].others[0], comparison.points[0].figure) == ">= 100,000 (10)"
    assert "ended with these medians" in " ".join(comparison_lines(comparison))
    assert found.median_upper == pytest.approx(1e5)
    assert capped.median_upper is None


@pytest.mark.parametrize("upper", ["1e6", True, float("nan"), float("inf"), 10.0, [1], None])
def test_an_upper_end_that_is_none_is_not_used(upper: object) -> None:
    """A run file is untrusted: texts, flags, what is no number, and what lies below the value."""
    found = point(1, [1e5])
    found = replace(found, repetitions=(replace(found.repetitions[0], result={"upper_fps_per_direction": upper}),))
    assert found.repetitions[0].upper is None
    assert found.uppers == found.values == (1e5,)


def test_values_without_brackets_are_exact() -> None:
    exact = median_ratio(Pool(values=(1.0,) * 4), Pool(values=(2.0,) * 4))
    assert exact.search_width == 0.0
    assert exact.interval is not None
    assert (exact.interval.low, exact.interval.high) == (0.5, 0.5)


@pytest.mark.parametrize(("before", "after", "is_noted"), [(9e4, None, True), (9e4, 5e4, True), (9e4, 8.9e4, False), (None, None, False)])
def test_a_comparison_notes_searches_that_began_elsewhere(before: float | None, after: float | None, is_noted: bool) -> None:
    runs = [
        record(point(1, [1e5] * 4, goal={} if start is None else {"known_fps": start}), name=name)
        for start, name in ((before, "a"), (after, "b"))
    ]
    comparison = compare(runs)
    assert bool(comparison.notes) is is_noted
    assert ("did not begin at the same load" in " ".join(comparison_lines(comparison))) is is_noted
    assert comparison.unlike == ()
