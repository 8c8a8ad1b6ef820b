# SPDX-License-Identifier: Apache-2.0
"""What a search leaves open between the highest load that passed and the lowest that failed, in intervals,
verdicts and comparisons."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from evenhand.analysis import Shape, analyse, compare, compare_testbeds
from evenhand.analysis.medians import Pool, median_ratio, search_width
from evenhand.analysis.ranks import ratio_interval
from evenhand.analysis.ratios import _ratio, deciding_precision
from evenhand.report.comparison import comparison_lines, show_median
from evenhand.report.summary import COLUMNS, summary_rows
from evenhand.run.campaign_record import PointRecord
from tests.analysis.records import point, record


def searched(found: PointRecord, precision: float) -> PointRecord:
    """The same, as a search leaves it that stops at this precision: the lowest load that failed stands beside
    each value."""
    repetitions = tuple(
        replace(
            one,
            result={"upper_fps_per_direction": None if one.value is None else one.value / (1 - precision)},
        )
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
    exact = compare(
        [record(point(1, [100_000.0] * 10), name="a"), record(point(1, [99_600.0] * 10), name="b")]
    )
    assert exact.points[0].others[0].is_different is True


def test_the_interval_is_the_widest_that_any_limits_within_the_brackets_give() -> None:
    above, below = [10.0, 11.0, 12.0, 13.0], [20.0, 21.0, 22.0, 23.0]
    found = ratio_interval(
        above, below, above_uppers=[v + 2 for v in above], below_uppers=[v + 4 for v in below]
    )
    assert found is not None
    assert (found.low, found.high) == (10.0 / 27.0, 15.0 / 20.0)


def test_the_width_of_searches_is_the_median_of_their_brackets_and_of_two_sets_the_larger() -> None:
    """SEED-70: one coarse bracket among fine ones makes no coarse searches; open and exact ones have none."""
    mixed = Pool(values=(90.0, 99.0, 50.0, 99.9, 7.0), uppers=(100.0, 100.0, 100.0, 100.0, math.inf))
    assert search_width(mixed) == pytest.approx((0.01 + 0.1) / 2)
    fine = Pool(values=(99.0, 99.0, 50.0), uppers=(100.0, 100.0, 100.0))
    assert search_width(fine) == pytest.approx(0.01)
    assert search_width(Pool(values=(1.0, 2.0))) == 0
    for above, below in ((mixed, fine), (fine, mixed)):
        assert median_ratio(above, below).search_width == search_width(mixed)


def test_the_interval_of_a_median_reaches_to_the_loads_that_failed() -> None:
    (curve,) = analyse(
        record(searched(point(1, [1000.0] * 10), 0.005), searched(point(2, [1000.0] * 10), 0.005))
    ).curves
    statistics = curve.points[0].statistics
    assert statistics is not None
    assert statistics.median_interval.low == 1000.0
    assert statistics.median_interval.high == pytest.approx(1000 / 0.995)
    assert statistics.median == 1000.0


@pytest.mark.parametrize("repetitions", [10, 2])
@pytest.mark.parametrize(
    ("one_fps", "finding", "deciding"),
    [
        (799_840.0, "not_much_lower", "2%"),
        (700_000.0, "not_much_lower", "5%"),
        (780_000.0, "not_much_lower", "2%"),
        (400_000.0, "hides", ""),
        (100_000.0, "hides", ""),
        (1_200_000.0, "shows_more", ""),
        (860_000.0, "not_lower", "2%"),
    ],
)
def test_coarse_searches_give_a_verdict_where_their_brackets_leave_no_doubt(
    one_fps: float, finding: str, deciding: str, repetitions: int
) -> None:
    """SEED-07: with searches that stop at 10 %, a pair 0.02 % apart is not called biased, and one that shows
    half is. Where the brackets leave it open, the precision that would decide is named, and does."""
    points = [
        point(1, [one_fps] * repetitions, suite="pair", plan="gateway-v4"),
        point(65534, [8e5] * repetitions, suite="many", plan="gateway-v4"),
    ]
    (coarse,) = analyse(record(*(searched(found, 0.1) for found in points))).bias
    assert coarse.finding == finding
    assert coarse.sentence.startswith(
        {
            "not_much_lower": "Not strongly biased",
            "not_lower": "Not biased",
            "hides": ("Biased", "Seems biased")[repetitions < 4],
        }.get(finding, "One")
    )
    if deciding:
        assert f"the searches stop at 10.0 %: a precision of {deciding} would decide it" in coarse.sentence
        (fine,) = analyse(record(*(searched(found, float(deciding[:-1]) / 100) for found in points))).bias
        assert fine.finding == (
            "same" if 760_000 < one_fps < 840_000 else "hides" if one_fps < 8e5 else "shows_more"
        )


def test_coarse_searches_whose_repetitions_lie_far_apart_want_more_of_those() -> None:
    """No precision would decide what noise alone leaves open."""
    one = point(1, [5e5, 6e5, 7e5, 8e5, 9e5, 9.5e5], suite="pair", plan="gateway-v4")
    many = point(65534, [8e5] * 6, suite="many", plan="gateway-v4")
    (verdict,) = analyse(record(*(searched(found, 0.1) for found in (one, many)))).bias
    assert verdict.finding == "unknown"
    assert "even 200 repetitions would hardly decide it" in verdict.sentence
    assert "--precision" not in verdict.sentence


@pytest.mark.parametrize(
    ("precision", "said"), [(0.04, "about equal, within 5.0 %"), (0.1, "a precision of 2% would decide it")]
)
def test_a_ratio_is_called_about_equal_only_where_the_brackets_leave_no_doubt(
    precision: float, said: str
) -> None:
    """SEED-70."""
    direct = [searched(point(n, [4e5] * 10), precision) for n in (1, 16, 64)]
    gateway = searched(point(65534, [4e5] * 10, suite="gateway", plan="gateway-v4"), precision)
    (ratio,) = analyse(record(*direct, gateway)).ratios
    assert said in ratio.sentence
    assert not ratio.is_flagged


@pytest.mark.parametrize("repetitions", [10, 2])
def test_a_fall_within_the_brackets_of_the_searches_is_none(repetitions: int) -> None:
    """SEED-66: 6 % lower with searches that stop at 10 % may be no fall at all, and at 0.5 % it is one; half
    as high always is."""

    def shape_of(last_fps: float, precision: float) -> Shape:
        fps = [1e5] * 7 + [last_fps]
        points = [searched(point(2**n, [value] * repetitions), precision) for n, value in enumerate(fps)]
        (curve,) = analyse(record(*points)).curves
        assert curve.shape is not None
        return curve.shape

    assert shape_of(9.4e4, 0.1).falls_above is None
    assert "but the searches stop at 10.0 %" in " ".join(shape_of(9.4e4, 0.1).sentences)
    assert shape_of(9.4e4, 0.005).falls_above == 64
    assert shape_of(5e4, 0.1).falls_above == 64


def test_values_that_the_brackets_leave_among_those_of_the_plateau_are_no_fall() -> None:
    """SEED-66: 5.3 % lower by its median, and below all values of the plateau; with its searches' 2 % it is
    above half of them."""
    plateau = [point(2**n, [95_500.0, 105_000.0] * 5) for n in range(7)]
    last = point(128, [94_900.0] * 10)
    for found, falls_above in ((last, 64), (searched(last, 0.02), None)):
        (curve,) = analyse(record(*plateau, found)).curves
        assert curve.shape is not None
        assert curve.shape.falls_above == falls_above


def test_a_lower_bound_is_no_fall() -> None:
    """SEED-66, MLR-10: the tester kept only half at the last point; the DUT may do as much as before."""
    points = [
        point(2**n, [1e5] * 6, kept=dict.fromkeys(range(1, 7), 5e4) if n == 5 else None) for n in range(6)
    ]
    (curve,) = analyse(record(*points)).curves
    assert curve.shape is not None
    assert curve.shape.falls_above is None
    assert curve.shape.is_capped
    assert "32 x 32 passed at the highest load that the tester kept" in " ".join(curve.shape.sentences)


@pytest.mark.parametrize("repetitions", [10, 2])
def test_testbeds_differ_by_more_than_the_brackets_of_their_searches(repetitions: int) -> None:
    def found_with(precision: float, berlin_fps: float, *, kept: bool = False) -> bool:
        munich = searched(point(1, [1e5] * repetitions, testbed="munich"), precision)
        berlin = searched(point(1, [berlin_fps] * repetitions, testbed="berlin"), precision)
        if kept:
            berlin = point(
                1, [1e5] * repetitions, testbed="berlin", kept=dict.fromkeys(range(1, 11), berlin_fps)
            )
        both = replace(munich, repetitions=(*munich.repetitions, *berlin.repetitions))
        verdict = compare_testbeds(record(both))
        assert verdict is not None
        return bool(verdict.different)

    assert not found_with(0.1, 9.3e4)
    assert found_with(0.005, 9.3e4)
    assert found_with(0.1, 5e4)
    assert not found_with(0.005, 5e4, kept=True)


def test_the_bracket_stands_in_the_summary() -> None:
    rows = summary_rows(
        record(searched(point(1, [99_500.0] * 10), 0.005), searched(point(2, [2e5] * 10, maximum=1e5), 0.005))
    )
    column = [column.title for column in COLUMNS].index("failed at")
    assert [row[column - 1 : column + 1] for row in rows] == [
        ("99.5 kfps", "100.0 kfps"),
        (">= 100.0 kfps", "-"),
    ]


def test_the_bracket_stands_beside_each_throughput_and_lower_bounds_have_none() -> None:
    found, capped = (
        searched(point(1, [99_500.0] * 10), 0.005),
        searched(point(1, [2e5] * 10, maximum=1e5), 0.005),
    )
    comparison = compare([record(found, name="a"), record(capped, name="b")])
    assert show_median(comparison.points[0], comparison.points[0].figure) == "99,500 .. 100,000 (10)"
    assert show_median(comparison.points[0].others[0], comparison.points[0].figure) == ">= 100,000 (10)"
    assert "the medians of the highest load that passed" in " ".join(comparison_lines(comparison))
    assert found.median_upper == pytest.approx(1e5)
    assert capped.median_upper is None


@pytest.mark.parametrize("upper", ["1e6", True, float("nan"), float("inf"), [1]])
def test_an_upper_end_that_is_no_number_is_refused(upper: object) -> None:
    """A run file is untrusted."""
    (repetition,) = point(1, [1e5]).repetitions
    with pytest.raises(ValueError, match=r"upper_fps_per_direction is .*, but must be a number"):
        replace(repetition, result={"upper_fps_per_direction": upper})


@pytest.mark.parametrize("upper", [10.0, None])
def test_an_upper_end_below_the_value_is_not_used(upper: float | None) -> None:
    found = point(1, [1e5])
    changed = replace(found.repetitions[0], result={"upper_fps_per_direction": upper})
    found = replace(found, repetitions=(changed,))
    assert changed.upper is None
    assert found.uppers == found.values == (1e5,)


def test_a_precision_that_is_recommended_is_finer_than_that_of_the_searches() -> None:
    """SEED-70: one coarse search among fine ones leaves it open; "1 %: 10 % would decide it" is no advice."""
    below = Pool(values=(100.0,) * 4, uppers=(101.0,) * 4)
    above = Pool(values=(100.0,) * 4, uppers=(101.0, 101.0, 101.0, 150.0))
    ratio = median_ratio(above, below)
    assert ratio.search_width == pytest.approx(1 / 101)
    assert "not known" in _ratio("a", "b", "c", ratio, "more").sentence
    assert deciding_precision(ratio) == 0.005
    coarse = median_ratio(
        Pool(values=(100.0,) * 4, uppers=(150.0,) * 4), Pool(values=(100.0,) * 4, uppers=(150.0,) * 4)
    )
    assert deciding_precision(coarse) == 0.02


def test_values_without_brackets_are_exact() -> None:
    exact = median_ratio(Pool(values=(1.0,) * 4), Pool(values=(2.0,) * 4))
    assert exact.search_width == 0.0
    assert exact.interval is not None
    assert (exact.interval.low, exact.interval.high) == (0.5, 0.5)


@pytest.mark.parametrize(
    ("before", "after", "is_noted"),
    [(9e4, None, True), (9e4, 5e4, True), (9e4, 8.9e4, False), (None, None, False)],
)
def test_a_comparison_notes_searches_that_began_elsewhere(
    before: float | None, after: float | None, is_noted: bool
) -> None:
    runs = [
        record(point(1, [1e5] * 4, goal={} if start is None else {"known_fps": start}), name=name)
        for start, name in ((before, "a"), (after, "b"))
    ]
    comparison = compare(runs)
    assert bool(comparison.notes) is is_noted
    assert ("began at a different load" in " ".join(comparison_lines(comparison))) is is_noted
    assert comparison.unlike == ()
