# SPDX-License-Identifier: Apache-2.0
"""Points over many runs: which changes are found, which are not, and what is never mixed."""

from __future__ import annotations

import random
from dataclasses import replace
from statistics import median

import pytest

from evenhand.analysis import compare
from evenhand.analysis.medians import FEWEST_RUNS, find_levels
from evenhand.analysis.trend import trend, version_key
from evenhand.analysis.trend_model import Trend
from tests.analysis.records import point, record
from tests.analysis.trends import bed, changes_at, example_trend, night, nights, share, trend_of
from tests.errors import raises

LEVEL = 1_000_000.0
MAXIMUM = 1_000_000.0
SEEDS = 200


def test_noise_alone_is_no_change() -> None:
    """A trend that cries wolf is not read. At most 2 of 100 series of 20 nights may; docs/explanation has
    what was measured."""
    assert share(lambda seed: bool(trend_of([LEVEL] * 20, seed=seed).changes), SEEDS) <= 0.02


@pytest.mark.parametrize("plan", ["gateway-v4", "gateway-v6"])
def test_a_step_of_five_percent_is_found_at_the_right_run(plan: str) -> None:
    levels = [LEVEL] * 12 + [0.95 * LEVEL] * 8

    def is_found(seed: int) -> bool:
        return changes_at(trend_of(levels, seed=seed, plan=plan)) == [12]

    assert share(is_found, 50) >= 0.9
    (change,) = trend_of(levels, seed=1, plan=plan).changes
    assert change.before_run == 11
    assert change.is_regression
    assert change.performance == pytest.approx(0.95, abs=0.015)
    assert change.by == "levels"


def test_a_new_level_needs_two_runs() -> None:
    """The first night after a change cannot be told from a stray; the second one can."""
    one = trend_of([LEVEL] * 12 + [0.95 * LEVEL], noise=0.004)
    assert one.changes == ()
    assert one.values[12].is_apart
    two = trend_of([LEVEL] * 12 + [0.95 * LEVEL] * 2, noise=0.004)
    assert changes_at(two) == [12]
    assert not any(value.is_apart for value in two.values)


@pytest.mark.parametrize("stray", [0.9, 1.2, 0.01, 30.0])
def test_a_single_stray_is_no_step(stray: float) -> None:
    levels: list[float] = [LEVEL] * 20
    levels[9] *= stray
    found = trend_of(levels, noise=0.005)
    assert found.changes == ()
    assert [value.run for value in found.values if value.is_apart] == [9]
    assert found.levels[0].runs == 19


def test_a_step_is_found_beside_a_stray() -> None:
    levels = [LEVEL] * 10 + [0.95 * LEVEL] * 10
    levels[4] *= 0.7
    assert changes_at(trend_of(levels, noise=0.005)) == [10]


def test_up_and_down_again_are_two_changes() -> None:
    """A regression that was repaired: both runs are named, and which was which."""
    found = trend_of([LEVEL] * 8 + [0.93 * LEVEL] * 6 + [LEVEL] * 8, noise=0.005)
    assert changes_at(found) == [8, 14]
    assert [change.is_regression for change in found.changes] == [True, False]


def test_a_level_is_the_median_of_its_runs_and_all_changes_make_the_performance() -> None:
    """A rise after a fall takes it back; the latest change comes first, and of one run the largest loss."""
    found = trend_of([LEVEL] * 8 + [0.9 * LEVEL] * 6 + [0.95 * LEVEL] * 8, noise=0.003)
    medians = [value.median for value in found.values]
    for level in found.levels:
        assert level.median == median(each for each in medians[level.first_run : level.last_run + 1] if each)
    fall, rise = found.changes
    assert fall.performance == pytest.approx(0.9, abs=0.01)
    assert rise.performance is not None
    assert found.performance == pytest.approx((fall.performance or 0) * rise.performance)
    assert found.performance == pytest.approx(0.95, abs=0.01)
    other = trend_of([LEVEL] * 14 + [0.8 * LEVEL] * 8, noise=0.003)
    for points in ((found, other), (other, found)):
        shown = Trend(over="time", runs=(), points=points).changes
        assert [(change.run, change.is_regression) for _, change in shown] == [
            (14, True),
            (14, False),
            (8, True),
        ]


def test_a_drift_ends_as_several_falls_and_no_rise() -> None:
    """One percent a week is no step, but it is no single level either."""
    for seed in range(10):
        found = trend_of([LEVEL * (1 - 0.1 * n / 40) for n in range(40)], noise=0.004, seed=seed)
        assert len(found.changes) >= 2
        assert all(change.is_regression for change in found.changes)


def test_less_is_better_of_a_latency() -> None:
    found = trend_of([40.0] * 8 + [44.0] * 6, noise=0.01, procedure="latency")
    (change,) = found.changes
    assert change.is_regression
    assert change.ratio.ratio == pytest.approx(1.1, abs=0.02)
    assert change.performance == pytest.approx(1 / 1.1, abs=0.02)


def test_loss_from_nothing_is_a_regression_and_to_nothing_is_none() -> None:
    """There is no ratio to 0."""
    (change,) = trend_of([0.0] * 6 + [0.01] * 6, procedure="loss").changes
    assert change.ratio.ratio is None
    assert change.is_regression
    (back,) = trend_of([0.01] * 6 + [0.0] * 6, procedure="loss").changes
    assert not back.is_regression
    assert trend_of([0.0] * 12, procedure="loss").changes == ()


def test_lower_bounds_are_never_a_change_of_their_own() -> None:
    """All passed at the highest load: nothing is known of what lies above, however the loads differ."""
    found = trend_of([LEVEL] * 8 + [1.2 * LEVEL] * 8, maximum=0.9 * LEVEL)
    assert all(value.is_at_least for value in found.values)
    assert found.changes == ()
    two = trend(
        [
            night(
                n, point(16, [LEVEL * (1.3 if n < 8 else 1.0)] * 3, maximum=LEVEL * (1.0 if n < 8 else 0.8))
            )
            for n in range(16)
        ]
    ).points[0]
    assert [value.median for value in two.values] == [LEVEL] * 8 + [0.8 * LEVEL] * 8
    assert two.changes == ()
    assert len(two.levels) == 1


def test_a_fall_from_lower_bounds_is_certain_and_a_bound_below_a_number_is_nothing() -> None:
    """From at least 1.0 to 0.9: it fell by that or more. From 1.0 to at least 0.9: nobody knows."""
    fall = trend_of([1.3 * MAXIMUM] * 8 + [0.9 * MAXIMUM] * 8, noise=0.002, maximum=MAXIMUM)
    (change,) = fall.changes
    assert (change.run, change.is_regression, change.ratio.bound) == (8, True, "at_most")
    assert fall.levels[0].is_at_least
    rise = trend_of([0.9 * MAXIMUM] * 8 + [1.3 * MAXIMUM] * 8, noise=0.002, maximum=MAXIMUM)
    (change,) = rise.changes
    assert (change.run, change.is_regression, change.ratio.bound) == (8, False, "at_least")
    records = [
        night(n, point(16, [LEVEL] * 3, maximum=LEVEL * 2 if n < 8 else 0.9 * LEVEL)) for n in range(16)
    ]
    assert trend(records).points[0].changes == ()


def test_a_step_within_the_brackets_of_the_searches_is_none() -> None:
    """Searches that stop at 5 % cannot tell 1 %."""

    def of_width(upper: float) -> int:
        made = []
        for n in range(16):
            one = night(n, point(16, [LEVEL if n < 8 else 0.99 * LEVEL] * 3))
            (found,) = one.points
            repetitions = tuple(
                replace(each, result={"upper_fps_per_direction": (each.value or 0) * upper})
                for each in found.repetitions
            )
            made.append(replace(one, points=(replace(found, repetitions=repetitions),)))
        return len(trend(made).points[0].changes)

    assert of_width(1.05) == 0
    assert of_width(1.002) == 1


def test_a_point_without_a_number_is_a_gap() -> None:
    levels: list[float | None] = [*([LEVEL] * 8), *([0.94 * LEVEL] * 8)]
    levels[3] = levels[8] = levels[15] = None
    found = trend_of(levels, noise=0.003)
    assert changes_at(found) == [9]
    assert found.changes[0].before_run == 7
    gaps = [value for value in found.values if value.statistics is None]
    assert [value.run for value in gaps] == [3, 8, 15]
    assert all(value.reason for value in gaps)


def test_a_point_that_some_runs_do_not_have_is_a_gap_there() -> None:
    """A campaign that grew: its new points begin later, and nothing is refused."""
    made = [
        night(n, point(16, [LEVEL] * 3), *([point(32, [2 * LEVEL] * 3)] if n >= 4 else [])) for n in range(8)
    ]
    first, second = trend(made).points
    assert [value.statistics is None for value in first.values] == [False] * 8
    assert [value.reason for value in second.values[:4]] == ["not in this run"] * 4
    assert len(second.measured) == 4


def test_few_runs_are_judged_as_compare_does() -> None:
    """Below six numbers no level is claimed: a run differs from the one before, or it does not."""
    assert FEWEST_RUNS == 6
    made = nights([LEVEL, LEVEL, 0.9 * LEVEL, 0.9 * LEVEL], noise=0.0)
    found = trend(made).points[0]
    differs = [compare([made[n], made[n + 1]]).points[0].others[0].is_different for n in range(len(made) - 1)]
    assert [change.run for change in found.changes] == [n + 1 for n, is_so in enumerate(differs) if is_so]
    assert 2 in changes_at(found)
    assert {change.by for change in found.changes} == {"compare"}
    assert found.levels == ()
    three = [night(n, point(16, [value] * 3)) for n, value in enumerate((LEVEL, 0.5 * LEVEL))]
    assert trend(three).points[0].changes == ()  # three repetitions have no interval


def test_one_run_has_no_trend_and_is_no_error() -> None:
    """The first night of a timer must not fail."""
    found = trend(nights([LEVEL])).points[0]
    assert found.judged_by == "nothing"
    assert found.changes == ()


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (point(16, [LEVEL] * 3, goal={"duration": "2s"}), "goal: duration not set against 2s"),
        (
            point(16, [LEVEL] * 3, plan_options={"source_ports": "fixed"}),
            "plan option source ports not set against fixed",
        ),
        (point(16, [LEVEL] * 3, testbed="lab2"), "testbed: name lab against lab2"),
    ],
)
def test_points_that_were_not_measured_alike_are_refused_or_kept_apart(other: object, words: str) -> None:
    """A line that mixes two questions answers neither."""
    made = [night(n, point(16, [LEVEL] * 3)) for n in range(3)]
    made += [night(n, other) for n in range(3, 6)]  # type: ignore[arg-type]
    with raises("analysis.not-alike") as refused:
        trend(made)
    assert words in refused.value.what
    assert "--anyway" in refused.value.next_step
    found = trend(made, anyway=True)
    assert [[value.run for value in each.measured] for each in found.points] == [[0, 1, 2], [3, 4, 5]]
    assert any(words in line for line in found.unlike)
    assert all(not each.changes for each in found.points)


def test_another_machine_is_another_testbed_and_another_kernel_is_not() -> None:
    def of(**dut: str) -> list[object]:
        return [night(0, point(16, [LEVEL])), night(1, point(16, [LEVEL]), testbeds=bed(**dut))]

    with raises("analysis.not-alike", match="cpu_model a CPU .*a faster one"):
        trend(of(cpu_model="a faster one"))  # type: ignore[arg-type]
    found = trend(of(kernel="6.1.0-30"))  # type: ignore[arg-type]
    assert [run.version for run in found.runs] == ["6.1.0-29", "6.1.0-30"]


def test_the_order_is_that_of_time_or_of_versions() -> None:
    """Files come in any order; 6.1.9 is before 6.1.10."""
    kernels = ("6.1.10", "6.1.9", "6.1.9", "5.10.2")
    made = [night(n, point(16, [LEVEL]), testbeds=bed(kernel)) for n, kernel in enumerate(kernels)]
    random.Random(3).shuffle(made)
    assert [run.name for run in trend(made).runs] == [f"night-{n:03}" for n in range(4)]
    by_version = trend(made, over="version")
    assert [run.version for run in by_version.runs] == ["5.10.2", "6.1.9", "6.1.9", "6.1.10"]
    assert [run.name for run in by_version.runs][1:3] == ["night-001", "night-002"]
    assert version_key(None) < version_key("1") < version_key("1.2") < version_key("1.10")


def test_what_differs_between_the_set_ups_is_named_with_a_change() -> None:
    """You should not have to guess whether it was the new kernel."""
    fall = next(change for each, change in example_trend().changes if each.point.plan == "gateway-v6")
    assert [difference.what for difference in fall.differences] == ["testbed: dut.kernel"]


def test_runs_that_cannot_be_put_in_order_are_refused() -> None:
    with raises("analysis.no-run"):
        trend([])
    one = night(0, point(16, [LEVEL]))
    with raises("analysis.run-twice", match="night-000"):
        trend([one, replace(one, path=one.path.with_name("copy.evenhand"))])
    with raises("analysis.run-without-time", match="yesterday"):
        trend([replace(one, created_at="yesterday")])
    with raises("analysis.run-without-time"):
        trend([replace(one, created_at="9999-12-31T23:59:59-12:00")])
    with raises("analysis.run-without-version"):
        trend([record(point(16, [LEVEL]))], over="version")
    with raises("analysis.nothing-to-compare"):
        trend([night(0)])


def test_levels_hold_each_number_once() -> None:
    draw = random.Random(5)
    for count in (1, 5, 6, 17, 40):
        values = [draw.choice((1.0, 2.0, 2.02)) * (1 + draw.gauss(0, 0.01)) for _ in range(count)]
        found = find_levels(values)
        assert sorted([*found.apart, *(i for group in found.groups for i in group)]) == list(range(count))
        assert all(list(group) == sorted(group) for group in found.groups)
    with pytest.raises(ValueError, match="nothing"):
        find_levels([])
