# SPDX-License-Identifier: Apache-2.0
"""The trial that a campaign makes just now: `evenhand status` shows it, and what a killed process left behind
says nothing."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evenhand.base.time_span import TimeSpan
from evenhand.procedure import Began, TrialPhase
from evenhand.report.campaign_status import campaign_document, campaign_lines
from evenhand.run import CampaignHead, RunStore
from evenhand.run.campaign.events import RepetitionBegan, RepetitionEnded, RunningFile, jobs
from evenhand.run.campaign_status import read_status
from evenhand.run.figures import RunningTrial, read_running, running_path, write_running
from evenhand.run.run_file import campaign_locked
from evenhand.spec.file import make_campaign
from evenhand.spec.points import expand

RUNNING = RunningTrial(
    process=os.getpid(),
    point="a throughput 64 1 x 1",
    repetition=2,
    trial=7,
    phase="sending",
    elapsed_s=30.0,
    total_s=120.0,
)
US = f"process {os.getpid()}"


def campaign(path: Path) -> Any:
    """A stored campaign with two points, that nobody measures."""
    suite = {"name": "a", "hosts": [1, 4], "repetitions": 3}
    plan = expand(make_campaign({"name": "small", "suite": [suite]}, where="small.toml", folder=Path()))
    head = CampaignHead(name="small", source="small.toml", seed=1, spec={})
    with RunStore.create(path, command=[], head=head, points=plan.points):
        pass
    return plan


def test_status_shows_point_repetition_trial_percent_and_times(tmp_path: Path) -> None:
    run = tmp_path / "a.evenhand"
    plan = campaign(run)
    job = next(iter(jobs(plan)))
    running = RunningFile(run)
    with campaign_locked(run):
        running.on_event(RepetitionBegan(job=job, stored_trials=0))
        running.on_event(Began(what="trial 7", remaining_s=120.0, number=7))
        running._written_s = float("-inf")  # a second later
        running.on_event(TrialPhase(phase="sending", elapsed_s=30.0, total_s=120.0))
        status = read_status(run)
        (line,) = [line for line in campaign_lines(status, TimeSpan.of(60.0)) if line.startswith("Now: ")]
        assert (
            line
            == f"Now: {job.point.key}, repetition 1, trial 7: sending, 25% of the trial, 30 s elapsed, 90 s"
            " left."
        )
        document = campaign_document(status, TimeSpan.of(60.0))["running"]
        assert (document["point"], document["trial"], document["percent"], document["left_s"]) == (
            job.point.key,
            7,
            25.0,
            90.0,
        )
        running.on_event(RepetitionEnded(job=job, outcome="found", value=1.0, reason=None))
        assert read_status(run).running is None
    assert [path.name for path in tmp_path.iterdir()] == ["a.evenhand"]


def test_it_is_written_once_a_second_however_often_the_engine_says_something(tmp_path: Path) -> None:
    run = tmp_path / "a.evenhand"
    plan = campaign(run)
    running = RunningFile(run)
    running.on_event(RepetitionBegan(job=next(iter(jobs(plan))), stored_trials=0))
    before = running_path(run).read_text()
    for _ in range(20):
        running.on_event(TrialPhase(phase="sending", elapsed_s=1.0, total_s=2.0))
    assert running_path(run).read_text() == before


def test_what_a_killed_process_left_behind_says_nothing(tmp_path: Path) -> None:
    """D11: after kill -9 nobody measures it, or another process does."""
    run = tmp_path / "a.evenhand"
    campaign(run)
    write_running(run, RUNNING)
    assert read_status(run).running is None
    assert campaign_document(read_status(run), TimeSpan.of(0.0))["running"] is None
    write_running(run, replace(RUNNING, process=os.getpid() + 1))
    with campaign_locked(run):
        assert read_status(run).running is None


def test_anybody_sees_the_trial_that_another_user_makes(tmp_path: Path) -> None:
    """A campaign on a lab is root's; its status is anybody's."""
    run = tmp_path / "a.evenhand"
    write_running(run, RUNNING)
    assert read_running(run, f"{US} of user root") is not None
    assert read_running(run, f"{US}1 of user root") is None


@pytest.mark.parametrize("text", ["", "[]", "null", "{", "[" * 50_000, '{"process": 1}', "\x00"])
def test_a_file_that_is_none_of_ours_is_left_alone(tmp_path: Path, text: str) -> None:
    run = tmp_path / "a.evenhand"
    running_path(run).write_text(text, encoding="utf-8")
    assert read_running(run, US) is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("point", 1),
        ("elapsed_s", "1"),
        ("elapsed_s", float("nan")),
        ("total_s", 1e300),
        ("repetition", True),
        ("trial", "7"),
        ("process", None),
    ],
)
def test_a_value_of_another_type_is_refused(tmp_path: Path, key: str, value: object) -> None:
    run = tmp_path / "a.evenhand"
    write_running(run, RUNNING)
    found = read_running(run, US)
    assert found is not None
    assert (found.trial, found.share) == (7, 0.25)
    path = running_path(run)
    path.write_text(json.dumps({**json.loads(path.read_text()), key: value}))
    assert read_running(run, US) is None


def test_a_link_is_neither_read_nor_written_through(tmp_path: Path) -> None:
    run, target = tmp_path / "a.evenhand", tmp_path / "target"
    target.write_text("precious")
    running_path(run).symlink_to(target)
    assert read_running(run, US) is None
    write_running(run, RUNNING)
    assert target.read_text() == "precious"
    assert read_running(run, US) is not None


def test_a_folder_that_cannot_be_written_keeps_no_campaign_from_going_on(tmp_path: Path) -> None:
    write_running(tmp_path / "no-such-folder" / "a.evenhand", RUNNING)
    assert list(tmp_path.iterdir()) == []
