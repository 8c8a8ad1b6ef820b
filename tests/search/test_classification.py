# SPDX-License-Identifier: Apache-2.0
"""What trials say about a load for a goal: the rule of RFC 9971, by itself and beside the package's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from MLRsearch import MeasurementResult
from MLRsearch.target_spec import TargetSpec
from MLRsearch.target_stat import TargetStat

from evenhand.search import LoadClass, MlrGoal, Observation, classify, conditional_loss_ratio, relevant_bounds

L, U, UNDECIDED = LoadClass.LOWER, LoadClass.UPPER, LoadClass.UNDECIDED


def make_goal(final_s: float, sum_s: float, loss_ratio: float, exceed_ratio: float) -> MlrGoal:
    return MlrGoal(
        name="goal",
        final_duration_s=final_s,
        duration_sum_s=sum_s,
        loss_ratio=loss_ratio,
        exceed_ratio=exceed_ratio,
        initial_duration_s=min(1.0, final_s),
    )


RFC2544, TST009 = make_goal(60, 60, 0, 0), make_goal(60, 120, 0, 0.5)
ONE_SECOND, TWENTY_PERCENT = make_goal(1, 120, 0.005, 0.5), make_goal(60, 60, 0.005, 0.2)
POINTS = (
    (59, Observation(1, 0), (UNDECIDED, UNDECIDED, UNDECIDED, UNDECIDED)),
    (1, Observation(1, 0.01), (U, UNDECIDED, UNDECIDED, UNDECIDED)),
    (59, Observation(1, 0.01), (U, UNDECIDED, UNDECIDED, U)),
    (1, Observation(1, 0), (U, UNDECIDED, L, U)),
    (1, Observation(60, 0.001), (U, UNDECIDED, L, U)),
    (1, Observation(60, 0), (U, L, L, U)),
)
"""So many more trials at the load, and what it then is for the four goals."""


@pytest.mark.parametrize("point", range(1, len(POINTS) + 1))
def test_the_six_points_of_the_rfc_are_classified_by_its_own_rule(point: int) -> None:
    """MLR-15, MLR-07, MLR-06: for "20 % exceed" the RFC prints Lower Bound at points 5 and 6, where its own
    rule says Upper Bound: 45 s and 45 s of excess in 105 s and 165 s are 42.857 and 27.273 percent, more than
    the 20 that may be."""
    trials = [trial for times, trial, _ in POINTS[:point] for _ in range(times)]
    assert (
        tuple(classify(goal, trials) for goal in (RFC2544, TST009, ONE_SECOND, TWENTY_PERCENT))
        == POINTS[point - 1][2]
    )


def test_the_rfcs_printed_ratios_are_above_its_own_limit() -> None:
    """MLR-15: the numbers that it prints beside the two verdicts refute them."""
    excess_s = 60 - 60 * TWENTY_PERCENT.exceed_ratio / (1 - TWENTY_PERCENT.exceed_ratio)
    ratios = [excess_s / (excess_s + full_length_s) for full_length_s in (60, 120)]
    assert ratios == pytest.approx([0.42857, 0.27273], abs=1e-5)
    assert min(ratios) > TWENTY_PERCENT.exceed_ratio


def test_a_tenth_of_a_percent_is_low_loss_for_half_a_percent() -> None:
    """MLR-15: RFC 9971, C.4.3 calls the trial with 0.1 % high-loss against a goal of 0.5 %."""
    assert classify(TWENTY_PERCENT, [Observation(60, 0.001)]) is L


durations = st.sampled_from([0.5, 1.0, 5.0, 30.0, 60.0])
observations = st.lists(
    st.builds(Observation, durations, st.sampled_from([0.0, 0.001, 0.005, 0.01, 0.5, 1.0])), max_size=40
)
goals = st.builds(
    lambda final_s, times, loss, exceed: make_goal(final_s, final_s * times, loss, exceed),
    durations,
    st.sampled_from([1, 2, 21]),
    st.sampled_from([0.0, 0.005, 0.02]),
    st.sampled_from([0.0, 0.2, 0.5, 0.9]),
)


def package_stat(goal: MlrGoal, trials: list[Observation]) -> TargetStat:
    target = TargetSpec(
        loss_ratio=goal.loss_ratio,
        exceed_ratio=goal.exceed_ratio,
        discrete_width=None,
        trial_duration=goal.final_duration_s,
        duration_sum=goal.duration_sum_s,
        expansion_coefficient=2,
        fail_fast=False,
        preceding=None,
    )
    stat = TargetStat(target)
    for trial in trials:
        lost = round(trial.loss_ratio * 10**6)
        stat.add(
            MeasurementResult(
                intended_duration=trial.duration_s, intended_load=1.0, offered_count=10**6, loss_count=lost
            )
        )
    return stat


@given(goal=goals, trials=observations)
def test_the_package_classifies_alike(goal: MlrGoal, trials: list[Observation]) -> None:
    """MLR-07: two programs from one rule. The package steers a search, ours judges it: if they differed, a
    search would end too early."""
    optimistic, pessimistic = package_stat(goal, trials).estimates()
    expected = UNDECIDED if optimistic != pessimistic else (L if optimistic else U)
    assert classify(goal, trials) is expected


@given(goal=goals, trials=observations)
def test_the_conditional_loss_of_a_lower_bound_is_within_the_goal(
    goal: MlrGoal, trials: list[Observation]
) -> None:
    """MLR-09: and the same as the package's. It says nothing about other loads."""
    if classify(goal, trials) is L:
        assert conditional_loss_ratio(goal, trials) == package_stat(goal, trials).pessimistic_loss_ratio
        assert conditional_loss_ratio(goal, trials) <= goal.loss_ratio


def test_conditional_throughput_is_a_quantile_and_not_a_mean() -> None:
    """MLR-09: no loss and 0.1 %, 60 s each: TST009 tolerates one of two, so 1 Mfps stay 1,000,000. What was
    not measured counts as lost."""
    trials = [Observation(60, 0.001), Observation(60, 0)]
    assert 1_000_000 * (1 - conditional_loss_ratio(TST009, trials)) == 1_000_000
    assert conditional_loss_ratio(make_goal(60, 120, 0.005, 0), trials) == 0.001
    assert conditional_loss_ratio(make_goal(60, 240, 0.005, 0), trials) == 1
    assert conditional_loss_ratio(RFC2544, [Observation(1, 0)]) == 1


def test_the_relevant_lower_bound_lies_below_every_upper_bound() -> None:
    """MLR-08: with loss inversion the largest lower bound is not it."""
    assert relevant_bounds({1.0: L, 2.0: UNDECIDED, 3.0: U, 4.0: L, 5.0: U}) == (1.0, 3.0)
    assert relevant_bounds({1.0: U, 2.0: L}) == (None, 1.0)
    assert relevant_bounds({1.0: L, 2.0: L}) == (2.0, None)
    assert relevant_bounds({}) == (None, None)
