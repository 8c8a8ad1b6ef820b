# SPDX-License-Identifier: Apache-2.0
"""A point that a worker measures: what its file has is sent, and stored in the campaign's file."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from evenhand.plan import make_plan
from evenhand.procedure.record import SearchRecord
from evenhand.run import HookRun, RepetitionEnd, RunStore, read_record, snapshot
from evenhand.run.remote_point import (
    RemotePoint,
    check_remote_point,
    point_file,
    remote_point_of,
    store_remote_point,
)
from evenhand.run.store import CampaignHead
from evenhand.search import SearchHead, ThroughputGoal, TrialFinished, find_throughput
from evenhand.search.model import SearchEvent
from evenhand.spec.file import make_campaign
from evenhand.spec.points import expand
from evenhand.spec.request import Point
from evenhand.trial import SimulatedMeasurer

GOAL = ThroughputGoal(max_fps=1e6, duration_s=1, final_duration_s=2)
HEAD = SearchHead(
    label="s",
    kind="throughput",
    plan=make_plan("gateway_v4").to_contract(),
    frame_size=64,
    seed=1,
    setup={},
    goal=GOAL,
)


def only_point() -> Point:
    suite = {"name": "a", "hosts": [1], "repetitions": 2}
    (point,) = expand(make_campaign({"name": "x", "suite": [suite]}, where="x")).points
    return point


def measured_of(point: Point) -> tuple[RemotePoint, int]:
    """One repetition that has ended and one that was cut short; and how many trials each has."""
    with point_file(point) as store:
        folder = store.path.parent
        testbed = store.add_testbed("bench", {"tester": {"kernel": "6"}})
        store.add_hook(
            HookRun(when="before_point", command="true", exit_code=0, output="", duration_s=0.1),
            point=point,
            suite=None,
        )
        for number in (1, 2):
            recorder = store.begin(point, number, seed=number, testbed=testbed)
            recorder.add_versions({"engine": "9"})
            with recorder.search(HEAD) as writer:

                def keep(event: SearchEvent, writer: SearchRecord = writer) -> None:
                    if isinstance(event, TrialFinished):
                        writer.add_trial(event.trial)

                result = find_throughput(SimulatedMeasurer(limit_fps=640_000), GOAL, on_progress=keep)
            if number == 1:
                writer.finish(result)
                value = result.throughput_fps
                end = RepetitionEnd(outcome="found", value=value, result=result.to_document(), reason=None)
                store.end(recorder, end)
        store.end_point(point, "the DUT has gone")
        remote = remote_point_of(store, point, testbed="there")
    assert not folder.exists()
    return pickle.loads(pickle.dumps(remote)), len(result.trials)


@pytest.mark.parametrize("copied_bytes", [0, snapshot.COPIED_BYTES], ids=["large file", "small file"])
def test_all_of_a_point_arrives_however_large_its_file_is(
    copied_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D11. Trials of a large file are read when they are asked for; what is sent has them all."""
    point = only_point()
    monkeypatch.setattr(snapshot, "COPIED_BYTES", copied_bytes)
    remote, trial_count = measured_of(point)
    assert (remote.testbed, remote.facts) == ("there", {"tester": {"kernel": "6"}})
    assert remote.versions == {"engine": "9"}
    assert remote.reason == "the DUT has gone"
    path = tmp_path / "a.evenhand"
    head = CampaignHead(name="x", source="x.toml", seed=1, spec={})
    with RunStore.create(path, command=["evenhand", "run"], head=head, points=[point]) as store:
        store_remote_point(store, check_remote_point(remote, point, [1, 2]))
    record = read_record(path)
    (found,) = record.points
    assert record.testbeds == {"there": {"tester": {"kernel": "6"}}}
    assert [hook.when for hook in found.hooks] == ["before_point"]
    assert [(each.number, each.seed, each.outcome, each.testbed) for each in found.repetitions] == [
        (1, 1, "found", "there"),
        (2, 2, "cut_short", "there"),
    ]
    assert [len(each.trials) for each in found.repetitions] == [trial_count, trial_count]
    assert found.values == (remote.repetitions[0].value,)
