# SPDX-License-Identifier: Apache-2.0
"""Rounds as a run file tells of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from evenhand.base.time_span import TimeSpan
from evenhand.report.campaign_status import campaign_document, campaign_lines
from evenhand.run.campaign_record import PointState
from evenhand.run.campaign_status import CampaignStatus, PointStatus
from evenhand.run.point_document import check_point
from tests.analysis.records import point, record


def status(*finished: int, rounds: int = 5) -> CampaignStatus:
    """The status of points of ten repetitions in rounds."""
    points = tuple(
        PointStatus(
            point=replace(point(n, [1.0] * 10).point, rounds=rounds),
            state=PointState.MEASURED if done == 10 else PointState.BEGUN,
            reason=None,
            finished=done,
            remarks=(),
            ended_early=False,
            values=(1.0,) * done,
            lower_bounds=(False,) * done,
            at_tester_ceiling=0,
            undecided=0,
            measured_s=1.0,
            under_way_s=0.0,
            trial_count=0,
        )
        for n, done in enumerate(finished, 1)
    )
    return CampaignStatus(
        path=record().path,
        name="a",
        source="a.toml",
        spec={},
        created_at="",
        finished_at=None,
        worker=None,
        running=None,
        points=points,
        verdicts={},
        notes=(),
    )


@pytest.mark.parametrize(
    ("finished", "line"),
    [
        ((0, 0, 0), "Round 1 of 5 (direct): 0 of 3 points."),
        ((2, 1, 0), "Round 1 of 5 (direct): 1 of 3 points."),
        ((4, 6, 4), "Round 3 of 5 (direct): 1 of 3 points."),
        ((10, 10, 8), "Round 5 of 5 (direct): 2 of 3 points."),
    ],
)
def test_status_tells_which_round_goes_on(finished: tuple[int, ...], line: str) -> None:
    assert line in campaign_lines(status(*finished), TimeSpan.of(0.0))
    told = campaign_document(status(*finished), TimeSpan.of(0.0))["round"]
    assert (
        line
        == f"Round {told['round']} of {told['rounds']} (direct): {told['points_done']} of {told['points']}"
        " points."
    )


def test_status_tells_of_no_round_where_there_is_none() -> None:
    assert status(10, 10).round is None
    assert status(3, 0, rounds=1).round is None


def bounded(of: CampaignStatus, *points: tuple[int, int]) -> CampaignStatus:
    """The same, with so many lower bounds of each point, and how many of them are the tester's."""
    return replace(
        of,
        points=tuple(
            replace(
                each,
                lower_bounds=(True,) * bounds + (False,) * (len(each.values) - bounds),
                at_tester_ceiling=of_tester,
                undecided=of_tester,
            )
            for each, (bounds, of_tester) in zip(of.points, points, strict=True)
        ),
    )


def test_status_tells_why_some_numbers_are_lower_bounds() -> None:
    """MLR-10: also of those that the tester has nothing to do with."""
    told = " ".join(
        campaign_lines(bounded(status(10, 10, 1, 10), (3, 3), (10, 0), (1, 1), (0, 0)), TimeSpan.of(0.0))
    )
    assert "n=1: 3 of its 10 numbers are lower bounds, because the tester could not keep" in told
    assert "n=2: all of its 10 numbers are lower bounds, because the highest load that was tried" in told
    assert "n=3: its only number is a lower bound, because the tester could not keep a higher load" in told
    assert "n=4" not in told
    assert "Every number" not in told


@pytest.mark.parametrize(
    ("of_tester", "why"),
    [(10, "the tester could not keep"), (9, "the highest load that was tried passed, or")],
)
def test_status_tells_once_that_every_number_is_a_lower_bound(of_tester: int, why: str) -> None:
    """No point says where the DUT's limit is: whoever reads the table must know that first."""
    told = [
        line
        for line in campaign_lines(bounded(status(10, 10), (10, 10), (10, of_tester)), TimeSpan.of(0.0))
        if "lower bound" in line
    ]
    assert len(told) == 1
    assert told[0].startswith(f"Every number is a lower bound: {why}")


def test_nobody_is_told_to_repeat_what_is_being_measured() -> None:
    for points in (((10, 10), (10, 10)), ((3, 3), (10, 0))):
        found = replace(bounded(status(10, 10), *points), finished_at="2026-03-02T09:00:00Z")
        interrupted = replace(found, finished_at=None)
        assert "--again" not in " ".join(campaign_lines(interrupted, TimeSpan.of(9.0))), "it is resumed first"
        told = " ".join(campaign_lines(found, TimeSpan.of(0.0)))
        assert told.count("give it idle CPUs") == told.count("--again") == 1
        going_on = replace(found, worker="process 7", finished_at=None)
        assert "--again" not in " ".join(campaign_lines(going_on, TimeSpan.of(9.0)))


def test_rounds_of_a_stored_point_are_checked() -> None:
    stored = point(1, [1.0, 2.0]).point
    check_point(replace(stored, rounds=2))
    wrongs: tuple[Any, ...] = (0, "2", True, 10**9, None)
    for wrong in wrongs:
        with pytest.raises(ValueError, match="is not a point"):
            check_point(replace(stored, rounds=wrong))
