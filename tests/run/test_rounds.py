# SPDX-License-Identifier: Apache-2.0
"""Rounds as a run file tells of them."""

from __future__ import annotations

from dataclasses import asdict, replace

import pytest

from evenhand.report.campaign_status import campaign_document, campaign_lines
from evenhand.run.campaign_record import PointState
from evenhand.run.campaign_status import CampaignStatus, PointStatus
from evenhand.run.point_document import point_of_document
from tests.analysis.records import point, record


def status(*finished: int, rounds: int = 5) -> CampaignStatus:
    """Of points of ten repetitions in rounds."""
    points = tuple(
        PointStatus(
            point=replace(point(n, [1.0] * 10).point, rounds=rounds),
            state=PointState.MEASURED if done == 10 else PointState.BEGUN,
            reason=None,
            finished=done,
            valueless_reasons=(),
            values=(1.0,) * done,
            lower_bounds=(False,) * done,
            at_tester_limit=0,
            measured_s=1.0,
            under_way_s=0.0,
            trials=0,
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
    assert line in campaign_lines(status(*finished), 0.0)
    told = campaign_document(status(*finished), 0.0)["round"]
    assert (
        line
        == f"Round {told['round']} of {told['rounds']} (direct): {told['points_done']} of {told['points']}"
        " points."
    )


def test_status_tells_of_no_round_where_there_is_none() -> None:
    assert status(10, 10).round is None
    assert status(3, 0, rounds=1).round is None


def test_points_of_files_from_before_there_were_rounds_are_read_as_one_block() -> None:
    document = asdict(point(1, [1.0, 2.0]).point)
    assert point_of_document({**document, "rounds": 2}).rounds == 2
    del document["rounds"]
    assert point_of_document(document).rounds == 1
    for wrong in (0, "2", True, 10**9):
        with pytest.raises(ValueError, match="is not a point"):
            point_of_document({**document, "rounds": wrong})
