# SPDX-License-Identifier: Apache-2.0
"""A verb keeps its running trial beside its run file, so that whoever looks at the folder sees it."""

from __future__ import annotations

from pathlib import Path

import pytest

from evenhand.base.locks import holder_of
from evenhand.cli.conditions import written_beside
from evenhand.procedure import ProcedureEvent
from evenhand.run import RunStore
from evenhand.run.campaign.events import RunningFile
from evenhand.run.figures import read_running, running_path
from evenhand.run.run_file import campaign_resource
from tests.serve.test_live import started


def test_a_verbs_trial_is_beside_its_run_as_long_as_it_measures(tmp_path: Path) -> None:
    path, events = tmp_path / "a.evenhand", list[ProcedureEvent]()
    with RunStore.create(path, command=["evenhand", "throughput"]) as store:
        with written_beside(store, "throughput", events.append) as take:
            take(started(3, 5e5))
            found = read_running(path, holder_of(campaign_resource(path)))
            assert found is not None
            assert (found.point, found.trial, found.rate_fps, found.left_of_all_s) == (
                "throughput",
                3,
                5e5,
                9,
            )
        assert not running_path(path).exists()
    assert len(events) == 1


def test_without_a_run_nothing_is_written(tmp_path: Path) -> None:
    events: list[ProcedureEvent] = []
    with written_beside(None, "throughput", events.append) as take:
        take(started(1, 1.0))
    assert len(events) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_mistake_in_what_is_written_ends_no_measurement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: RunningFile, event: ProcedureEvent) -> None:
        raise ValueError("a bug")

    monkeypatch.setattr(RunningFile, "on_event", fail)
    events: list[ProcedureEvent] = []
    with (
        RunStore.create(tmp_path / "a.evenhand", command=["evenhand"]) as store,
        written_beside(store, "throughput", events.append) as take,
    ):
        take(started(1, 1.0))
    assert len(events) == 1
