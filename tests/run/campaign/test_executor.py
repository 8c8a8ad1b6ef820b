# SPDX-License-Identifier: Apache-2.0
"""The seam to other executors: what they are handed can be pickled; and the time that is left is learnt."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from evenhand.base.time_span import TimeSpan
from evenhand.run.campaign.dut_setup import lab_wish_of
from evenhand.run.campaign.events import jobs
from evenhand.run.campaign.measure import PointOrder
from evenhand.run.campaign.time_left import TimeLeft, time_of
from evenhand.spec.file import make_campaign
from evenhand.spec.points import expand

CAMPAIGN = {
    "name": "seam",
    "testbed": "reference",
    "reference": {"elements": 4, "rate": "10kfps"},
    "suite": [
        {
            "name": "a",
            "hosts": [1, 4],
            "repetitions": 2,
            "maximum-rate": "100kfps",
            "hooks": {"before-point": "true"},
        }
    ],
}
NARROW = {
    **CAMPAIGN,
    "suite": [{"name": "a", "hosts": [1, 4], "repetitions": 2, "procedure": "latency", "rate": "1kfps"}],
}
"""Its repetitions take one time, whatever the DUT is like."""


def test_an_order_can_be_pickled() -> None:
    plan = expand(make_campaign(CAMPAIGN, where="test", folder=Path()))
    order = PointOrder(
        point=plan.points[0],
        jobs=tuple(job for job in jobs(plan) if job.point == plan.points[0]),
        hooks=plan.suite_hooks["a"],
        testbed="reference",
        reference=plan.reference,
        lab_wish=lab_wish_of(plan.points),
    )
    assert pickle.loads(pickle.dumps(order)) == order


def test_the_time_left_is_learnt_from_what_points_really_took() -> None:
    plan = expand(make_campaign(NARROW, where="test", folder=Path()))
    one, many = plan.points
    left = TimeLeft()
    expected = left.left([(one, 2), (many, 2)])
    assert expected.middle_s == pytest.approx(time_of(one).middle_s + time_of(many).middle_s)
    # The expectation counts as one repetition that it was right for.
    left.learn(one, 3 * time_of(one).middle_s, repetitions=2)
    assert left.left([(many, 2)]).middle_s == pytest.approx((2 * 3 + 1) / 3 * time_of(many).middle_s)
    left.learn(one, 30 * time_of(one).middle_s, repetitions=20)
    assert left.left([(many, 2)]).middle_s == pytest.approx(3 * time_of(many).middle_s, rel=0.05)


def test_a_repetition_that_takes_longer_than_expected_says_so_before_it_has_ended() -> None:
    """On a busy host the first repetition of a campaign took five times as long, and for all that time the
    end seemed to be as near as at the start."""
    plan = expand(make_campaign(NARROW, where="test", folder=Path()))
    one, many = plan.points
    left, one_s = TimeLeft(), time_of(one).middle_s / 2
    half = left.left([(one, 2)], under_way=[(one, one_s / 2)])
    assert half.middle_s == pytest.approx(1.5 * one_s)
    late = left.left([(one, 2), (many, 2)], under_way=[(one, 5 * one_s)])
    assert late.middle_s == pytest.approx(3 * one_s + 3 * time_of(many).middle_s)
    assert left.left([(one, 2)]).middle_s == pytest.approx(2 * one_s)


def test_where_nobody_can_know_the_time_the_first_repetition_tells_it() -> None:
    plan = expand(make_campaign(CAMPAIGN, where="test", folder=Path()))
    one, many = plan.points
    left = TimeLeft()
    assert left.left([(one, 1)]) == time_of(one).times(0.5)
    assert left.left([(one, 1)]).is_wide
    left.learn(one, time_of(one).most_s / 2)
    assert left.left([(one, 2)]).words == TimeSpan.of(time_of(one).most_s).words
    assert left.left([(many, 2)]).middle_s == pytest.approx(time_of(one).most_s, rel=0.05)
