# SPDX-License-Identifier: Apache-2.0
"""A point that is measured on several testbeds, of which one measures nothing more of it."""

from __future__ import annotations

from pathlib import Path

from evenhand.run import RunStore, read_record
from evenhand.run.campaign_status import read_status
from evenhand.run.store import CampaignHead
from evenhand.spec.file import make_campaign
from evenhand.spec.points import expand


def test_what_ends_on_one_testbed_goes_on_on_the_others_and_is_repeated(tmp_path: Path) -> None:
    suite = {"name": "a", "hosts": [1], "repetitions": 2}
    file = {"name": "x", "on-each-testbed": ["here", "there"], "suite": [suite]}
    plan = expand(make_campaign(file, where="x"))
    (point,) = plan.points
    path, command = tmp_path / "a.evenhand", ["evenhand", "run"]
    head = CampaignHead(name="x", source="x.toml", seed=1, spec=dict(plan.spec))
    with RunStore.create(path, command=command, head=head, points=plan.points) as store:
        store.end_numbers(point, tuple(plan.numbers_on(point, "there")), "there", "the hook failed")
        assert store.ended_points() == frozenset()
        assert store.finished_repetitions() == {(point.key, 3), (point.key, 4)}
    (status,) = read_status(path).points
    assert (status.left_again, status.ended_early) == (4, True)
    (found,) = read_record(path).points
    assert [(each.number, each.testbed, each.reason) for each in found.repetitions] == [
        (3, "there", "the hook failed"),
        (4, "there", "the hook failed"),
    ]
    with RunStore.resume(path, command=command) as store:
        assert store.reopen_points() == 2
        assert store.finished_repetitions() == frozenset()
