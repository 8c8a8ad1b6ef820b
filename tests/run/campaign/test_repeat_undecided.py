# SPDX-License-Identifier: Apache-2.0
"""Repetitions that the tester could not decide are made once more at the end of a campaign, if it says so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from evenhand.procedure import Note
from evenhand.rig import LeasedLab
from evenhand.run import RunStore, read_record
from evenhand.run.campaign.events import OnCampaignEvent
from evenhand.run.campaign.measure import PointOrder
from evenhand.run.campaign.runner import CampaignRunner
from evenhand.run.campaign_record import CUT_SHORT, TESTER_CEILING
from evenhand.run.store import CampaignHead, RepetitionEnd
from evenhand.spec.file import make_campaign
from evenhand.spec.points import CampaignPlan, expand
from evenhand.spec.request import Point


class Played:
    """An executor that measures nothing: it says of the first repetitions that the tester could not decide
    them, or of the first ones of each of the points, whenever they are made."""

    def __init__(self, undecided: int, *, points: int = 0) -> None:
        self.undecided, self.points = undecided, points

    def run(
        self,
        orders: Iterable[PointOrder],
        keeper: RunStore,
        on_event: OnCampaignEvent,
        *,
        lab: LeasedLab | None = None,
    ) -> Iterator[Point]:
        for order in orders:
            for job in order.jobs:
                recorder = keeper.begin(order.point, job.repetition, seed=1, testbed="x")
                is_first = job.repetition == 1 and order.point.number < self.points
                outcome = TESTER_CEILING if self.undecided > 0 or is_first else "found"
                self.undecided -= 1
                value = None if outcome == TESTER_CEILING else 1e5
                keeper.end(recorder, RepetitionEnd(outcome=outcome, value=value, result=None, reason=None))
            yield order.point


def plan_of(repeats: bool) -> CampaignPlan:
    suite = {"name": "a", "hosts": [1, 4, 16], "repetitions": 2}
    file = {"name": "x", "testbed": "reference", "repeat-undecided": repeats, "suite": [suite]}
    return expand(make_campaign(file, where="x"))


@pytest.mark.parametrize(
    ("undecided", "repeats", "made_again"), [(2, True, 2), (3, True, 0), (2, False, 0), (0, True, 0)]
)
def test_few_that_the_tester_could_not_decide_are_made_once_more(
    tmp_path: Path, undecided: int, repeats: bool, made_again: int
) -> None:
    """Two of six are a third; more of them another try would hardly change."""
    path, plan, said = tmp_path / "a.evenhand", plan_of(repeats), list[str]()
    head = CampaignHead(name="x", source="x.toml", seed=1, spec=dict(plan.spec))
    with RunStore.create(path, command=["evenhand", "run"], head=head, points=plan.points) as store:
        CampaignRunner(
            plan=plan,
            store=store,
            executor=Played(undecided),
            testbed="reference",
            on_event=lambda event: said.append(event.text) if isinstance(event, Note) else None,
        ).run()
    record = read_record(path)
    assert record.finished_at is not None
    outcomes = [each.outcome for point in record.points for each in point.repetitions]
    assert outcomes.count(CUT_SHORT) == made_again
    assert outcomes.count(TESTER_CEILING) == undecided - made_again
    assert len(outcomes) == 6 + made_again
    assert any("made once more" in text for text in said) == bool(made_again)


def test_what_cannot_be_decided_the_second_time_stays_undecided(tmp_path: Path) -> None:
    path, plan = tmp_path / "a.evenhand", plan_of(True)
    head = CampaignHead(name="x", source="x.toml", seed=1, spec=dict(plan.spec))
    with RunStore.create(path, command=["evenhand", "run"], head=head, points=plan.points) as store:
        CampaignRunner(plan=plan, store=store, executor=Played(0, points=2), testbed="reference").run()
        assert store.reopen_undecided() == 0
    outcomes = [each.outcome for point in read_record(path).points for each in point.repetitions]
    assert (outcomes.count(TESTER_CEILING), outcomes.count(CUT_SHORT)) == (2, 2)
