# SPDX-License-Identifier: Apache-2.0
"""Verdicts from too few repetitions for a test by ranks: what the noise of the whole series allows."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from evenhand.analysis import analyse
from evenhand.analysis.medians import Pool, median_ends, settled
from evenhand.analysis.noise import noise_of, say_more, student_quantile
from tests.analysis.records import noisy, point, record

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))
import false_verdicts as bench

GATEWAY = "gateway-v4"
FPS = 1e5


@pytest.mark.parametrize("plan", bench.PLANS)
@pytest.mark.parametrize(("repetitions", "noise"), [(2, 0.03), (3, 0.05), (4, 0.1), (5, 0.1)])
def test_noise_alone_seldom_makes_a_verdict(plan: str, repetitions: int, noise: float) -> None:
    """SEED-07, SEED-66: a small version of bench/false_verdicts.py. Judged by 5 % alone, a tenth to
    two thirds of such series of two or three repetitions had one."""
    cell = bench.unchanging(plan, 5, repetitions, noise, series=60, seed=1)
    assert max(cell["verdict"], cell["shape"]) <= 3 / 60
    assert sum(cell[kind] for kind in ("verdict", "same", "not_lower", *bench.OPEN)) == pytest.approx(1)


@pytest.mark.parametrize("repetitions", [3, 4, 6])
def test_a_fifth_that_one_pair_hides_is_found_with_few_repetitions(repetitions: int) -> None:
    """SEED-07, SEED-66: noise of 3 %."""
    cell = bench.with_effect(5, repetitions, 0.03, series=40, seed=1)
    assert min(cell["hides"], cell["rise"]) >= 38 / 40


@pytest.mark.parametrize(("repetitions", "noise"), [(2, 0.03), (3, 0.05), (5, 0.03), (8, 0.05)])
def test_a_pair_that_hides_more_than_the_tolerance_is_seldom_called_unbiased(
    repetitions: int, noise: float
) -> None:
    """SEED-07: at the limit itself, where it is hardest."""
    assert bench.unbiased_share(bench.AT_LIMIT, repetitions, noise, series=60, seed=1) <= 4 / 60


@pytest.mark.parametrize("plan", ["gateway-v4", "gateway-v6"])
@pytest.mark.parametrize(("is_bound", "hides"), [(True, "at most 2.7 %"), (False, "at most 4.0 %")])
def test_that_one_pair_hides_little_is_known_before_whether_it_reaches_more(
    plan: str, is_bound: bool, hides: str
) -> None:
    """SEED-07: also where what it reaches is only a lower bound."""
    values = [1.04 * FPS] * 3 if is_bound else [0.99 * FPS, 1.01 * FPS, 1.03 * FPS]
    one = point(1, values, suite="g", plan=plan, maximum=1.04 * FPS if is_bound else math.inf)
    many = point(65534, [0.98 * FPS, FPS, 1.01 * FPS], suite="g", plan=plan)
    (verdict,) = analyse(record(one, many)).bias
    assert verdict.finding == "not_lower"
    assert verdict.sentence.startswith(
        f"Not biased: one address pair hides {hides} of what this DUT forwards"
    )
    assert "Whether it reaches more is not decided: " in verdict.sentence
    # The other way round much less is known.
    (verdict,) = analyse(record(replace(many, point=one.point), replace(one, point=many.point))).bias
    assert verdict.finding == ("unknown" if is_bound else "not_much_lower")


@pytest.mark.parametrize(("points", "repetitions"), [(4, 5), (7, 3)])
@pytest.mark.parametrize("hidden", [0.0, bench.AT_LIMIT, bench.MUCH_HIDDEN])
def test_what_the_points_of_a_round_have_in_common_makes_no_wrong_verdict_and_hides_none(
    hidden: float, points: int, repetitions: int
) -> None:
    """SEED-07: noise of 10 % that a round has in common is taken out: verdicts are those of the 3 % beside
    it."""
    cell = bench.with_common_noise(hidden, points, repetitions, 0.1, series=40, seed=1)
    assert cell["wrong"] <= 3 / 40
    if hidden == 0:
        assert cell["same"] + cell["not_lower"] >= 0.3
        assert cell["unknown"] <= 0.1


def test_as_many_repetitions_as_no_verdict_asks_for_give_one() -> None:
    row = bench.asked_for(0.0, 3, 0.03, series=20, seed=1)
    assert row["asked_share"] > 0.25
    assert row["decided_of_asked"] >= 0.75
    assert row["wrong_share"] <= 1 / 20


@pytest.mark.parametrize("plan", ["gateway-v4", "gateway-v6"])
def test_a_difference_below_the_spread_of_any_point_is_no_bias(plan: str) -> None:
    """SEED-07: three repetitions that lie 8 % apart, and medians 5.5 % apart: seen on a router with one
    CPU."""
    spread = [0.96 * FPS, FPS, 1.04 * FPS]
    one = point(1, [0.945 * value for value in spread], suite="gateway", plan=plan)
    many = point(65534, spread, suite="gateway", plan=plan)
    (verdict,) = analyse(record(one, many)).bias
    assert verdict.finding == "not_much_lower"
    assert verdict.sentence.startswith("Not strongly biased: one address pair hides at most 16.9 %")
    assert "3 repetitions are too few to tell a difference of less than" in verdict.sentence
    assert verdict.more_repetitions is not None
    wanted = 3 + verdict.more_repetitions
    asked = f"about {verdict.more_repetitions} repetitions more of each point ({wanted} in all) would decide"
    assert asked in verdict.sentence
    assert verdict.to_document()["more_repetitions"] == verdict.more_repetitions


def test_the_spread_is_that_of_all_points_of_the_series() -> None:
    """The pair and the last point are quiet, and one between them is not: their difference may be its
    noise."""
    quiet = [
        point(1, [0.9 * FPS] * 3, suite="g", plan=GATEWAY),
        point(64, [FPS] * 3, suite="g", plan=GATEWAY),
    ]
    (verdict,) = analyse(record(*quiet)).bias
    assert verdict.finding == "hides"
    assert verdict.sentence.startswith("Seems biased: one address pair hides 10.0 %")
    noisy_point = point(8, [0.8 * FPS, FPS, 1.1 * FPS], suite="g", plan=GATEWAY)
    analysis = analyse(record(*quiet, noisy_point))
    assert analysis.bias[0].finding in bench.OPEN
    shape = analysis.curves[0].shape
    assert shape is not None
    assert (shape.rise_end, shape.falls_above) == (None, None)
    assert shape.sentences[-1].startswith("Whether 1 x 1 is lower is not known: about")


def test_repetitions_that_lie_close_together_are_enough_for_not_biased() -> None:
    points = [point(hosts, noisy(FPS, 3, 0.01, seed=hosts), suite="g", plan=GATEWAY) for hosts in (1, 64)]
    (verdict,) = analyse(record(*points)).bias
    assert verdict.finding == "same"
    assert "3 repetitions are too few for an interval of the ratio by ranks" in verdict.certainty
    assert "4 degrees of freedom" in verdict.certainty


@pytest.mark.parametrize(
    ("many_fps", "finding"), [(1.5 * FPS, "hides"), (FPS, "same"), (0.5 * FPS, "shows_more")]
)
def test_one_lower_bound_of_three_gives_no_verdict_only_where_the_others_do_not_decide(
    many_fps: float, finding: str
) -> None:
    """SEED-07, MLR-10: wherever the third is, the median is one of the other two, or between them."""
    one = point(1, [FPS, 1.01 * FPS, 2 * FPS], suite="g", plan=GATEWAY, kept={3: 0.4 * FPS})
    assert one.is_at_least
    many = point(64, [many_fps] * 3, suite="g", plan=GATEWAY)
    assert analyse(record(one, many)).bias[0].finding == finding
    apart = point(1, [FPS, 1.2 * FPS, 2 * FPS], suite="g", plan=GATEWAY, kept={3: 0.4 * FPS})
    assert analyse(record(apart, many)).bias[0].finding == (
        "shows_more" if many_fps < FPS else "not_much_lower" if many_fps == FPS else "unknown"
    )
    two = point(1, [FPS, 2 * FPS, 2 * FPS], suite="g", plan=GATEWAY, kept={2: 0.8 * FPS, 3: 0.9 * FPS})
    assert (analyse(record(two, many)).bias[0].finding in bench.OPEN) is (many_fps >= FPS)


def test_lower_bounds_leave_a_median_open_between_two_values_or_without_end() -> None:
    bounds = (False, False, True)
    closed = Pool(values=(3.0, 4.0, 1.0), is_at_least=True, lower_bounds=bounds)
    assert median_ends(settled(closed)) == (3.0, 4.0)
    assert not settled(closed).is_at_least
    for values, which in (((3.0, 1.0, 1.0), (False, True, True)), ((3.0, 3.0, 3.0), (True, True, True))):
        without_end = Pool(values=values, is_at_least=True, lower_bounds=which)
        assert settled(without_end) is without_end


def test_noise_is_pooled_over_points_and_heeds_no_lower_bounds() -> None:
    """By hand: 1 % of two values each way is a variance of 2 / 10,000 with one degree of freedom."""
    points = [
        Pool(values=(99.0, 101.0)),
        Pool(values=(495.0, 505.0, 10.0), lower_bounds=(False, False, True)),
    ]
    noise = noise_of([*points, Pool(values=(7.0,)), Pool(values=(0.0, 0.0)), Pool(values=())])
    assert noise.freedom == 2
    assert noise.spread == pytest.approx(0.02)
    assert noise.deviation == pytest.approx(math.sqrt(2e-4))
    assert noise.limit((2, 2), 0.01) == pytest.approx(student_quantile(0.99, 2) * math.sqrt(2e-4))
    assert noise.limit((1000, 1000), 0.01) == noise.spread
    huge = noise_of([Pool(values=(1.7e308, 1.6e308, 1.7e308)), Pool(values=(math.inf, 1.0))])
    assert huge.freedom == 2
    assert huge.spread == pytest.approx(1 / 17)
    unknown = noise_of([Pool(values=(7.0,))])
    assert (unknown.freedom, unknown.limit((1, 1), 0.01), unknown.reach((1, 1))) == (0, 0.0, 0.0)
    assert say_more(1, None, unknown) == "at least 4 repetitions of each point would show the noise"


@pytest.mark.parametrize(
    ("probability", "freedom", "quantile"),
    [
        (0.975, 1, 12.7062),
        (0.975, 2, 4.30265),
        (0.95, 4, 2.13185),
        (0.9995, 7, 5.40788),
        (0.975, 30, 2.04227),
    ],
)
def test_quantiles_of_student_are_those_of_the_tables(
    probability: float, freedom: int, quantile: float
) -> None:
    assert student_quantile(probability, freedom) == pytest.approx(quantile, rel=1e-5)
