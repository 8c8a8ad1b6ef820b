# SPDX-License-Identifier: Apache-2.0
"""Lower bounds where the tester could not keep a higher load: they may lie anywhere among the values of a
point."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from evenhand.analysis import analyse, compare
from evenhand.analysis.medians import median_ratio
from evenhand.report.campaign_document import export_document
from evenhand.report.comparison import show_median
from evenhand.report.summary import summary_rows
from evenhand.run.campaign_record import PointRecord, bounds_of, is_median_at_least
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


@pytest.mark.parametrize(("one_fps", "hides"), [(5e5, "nothing"), (4.9e5, "at most 2.0 %"), (3.7e5, None)])
def test_a_lower_bound_says_only_that_one_pair_is_not_lower(one_fps: float, hides: str | None) -> None:
    """SEED-07: one pair with "at least" what many addresses show may show as much or more."""
    one = point(1, [8e5] * 6, suite="gateway", plan=GATEWAY, kept=dict.fromkeys(range(1, 7), one_fps))
    many = point(65534, [5e5] * 6, suite="gateway", plan=GATEWAY)
    found = analyse(record(one, many))
    verdict, why = (
        found.bias[0],
        "a result is only a lower bound, because on this machine no higher load could",
    )
    if hides is None:
        assert verdict.finding == "unknown"
        assert verdict.sentence.startswith(f"No verdict: {why} be decided")
    else:
        assert verdict.finding == "not_lower"
        assert verdict.sentence.startswith(f"Not biased: one address pair hides {hides} of what this DUT")
        assert f"Whether it reaches more is not decided: {why} be decided" in verdict.sentence
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


def test_a_lower_bound_at_which_another_repetition_failed_is_told() -> None:
    """A bad moment taken for loss makes a repetition end below what others passed. The median stays what
    it is, and the contradiction is told beside it."""
    mixed = point(256, [8e5, 223738.0, 8e5], kept={1: 226859.0, 3: 226859.0}, failed={2: 226859.0})
    found = analyse(record(mixed))
    (told,) = [line for line in found.warnings if "disagree" in line]
    assert (
        ": 256 x 256: its repetitions disagree: 226,859 fps passed in one, and 226,859 fps failed in" in told
    )
    assert "failed in another; either the DUT changed" in told
    statistics = mixed.statistics
    assert statistics is not None
    assert (statistics.median, mixed.is_at_least) == (226859.0, True)


@pytest.mark.parametrize(
    "agreeing",
    [
        point(1, [8e5, 2e5], kept={1: 3e5}, failed={2: 3.1e5}),  # it failed above what passed
        point(1, [3e5, 2e5], failed={1: 3.1e5, 2: 2.1e5}),  # the range tells that
        point(1, [8e5, 8e5], kept={1: 3e5, 2: 2e5}),  # two lower bounds are both true
    ],
)
def test_repetitions_that_do_not_contradict_a_lower_bound_are_no_disagreement(agreeing: PointRecord) -> None:
    assert "disagree" not in " ".join(analyse(record(agreeing)).warnings)


def test_a_repetition_that_failed_at_the_lowest_load_contradicts_those_that_passed() -> None:
    """It has no value, so the median is of the others alone: that is told with what it failed at."""
    found = point(1, [8e5, None, 8e5, None], kept={1: 3e5, 3: 2e5}, failed={2: 340.0, 4: 500.0})
    warnings = " ".join(analyse(record(found)).warnings)
    assert "2 of its 4 finished repetitions have no value" in warnings
    assert "300,000 fps passed in one, and 500 fps or less failed in 2 others" in warnings


def test_what_the_tester_could_not_decide_is_repeated_on_idle_cpus_and_by_root_if_root_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever reads a page need not be who wrote it."""
    found = replace(record(point(1, [8e5, None], kept={1: 2e5})), path=tmp_path / "my run.evenhand")
    again = "evenhand run --resume 'my run.evenhand' --again."
    advice = analyse(found).warnings[-1]
    assert advice.startswith(
        "To repeat what the tester could not decide, give it idle CPUs (evenhand check shows"
    )
    assert advice.endswith(f"or another machine, and run: {again}")
    found.path.touch()
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr("os.geteuid", lambda: found.path.stat().st_uid)
    by_root = found.path.stat().st_uid == 0
    assert analyse(found).warnings[-1].endswith(f"run: {'sudo ' * by_root}{again}")
    monkeypatch.setattr("os.access", lambda path, mode: False)
    assert analyse(found).warnings[-1].endswith(f"run: sudo {again}")
    assert "To repeat" not in " ".join(analyse(replace(found, finished_at=None)).warnings)
    assert "To repeat" not in " ".join(analyse(record(point(1, [1e5] * 4))).warnings)
