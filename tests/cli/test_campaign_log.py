# SPDX-License-Identifier: Apache-2.0
"""What `evenhand run` says of a campaign while it goes on: the same as `evenhand status` reads from the
file."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from evenhand.base.locks import InUseError
from evenhand.cli import lab as lab_verb
from evenhand.cli.lab import _show_changes
from evenhand.cli.progress.campaign import CampaignDisplay
from evenhand.lab.limits import RaisedLimit
from evenhand.procedure import Measured
from evenhand.run.campaign import runner
from evenhand.run.campaign import time_left as times
from evenhand.run.campaign.events import Job, Place, PointBegan, RepetitionBegan, RepetitionEnded
from evenhand.run.campaign.time_left import time_left
from evenhand.run.campaign_status import CampaignStatus, PointStatus
from evenhand.spec.request import Point, PointRequest, read_point
from evenhand.trial import SimulatedMeasurer
from tests.cli.running import Ended
from tests.run.campaign.small_campaign import small, write_campaign
from tests.run.test_rounds import status

PLACE = Place(round=1, rounds=5, point=2, point_count=3)


def in_the_file(**changes: Any) -> CampaignStatus:
    """Three points, of which two have repetitions."""
    return replace(status(3, 1, 0), **changes)


def said(*events: Any, files: list[CampaignStatus]) -> str:
    """By a display that finds these in the file, one after the other, and the last one from then on."""
    text = io.StringIO()

    def read() -> CampaignStatus:
        return files.pop(0) if len(files) > 1 else files[0]

    with CampaignDisplay(Console(file=text, width=200), read) as display:
        for event in events:
            display.on_campaign_event(event)
    return text.getvalue()


def job_of(found: CampaignStatus, index: int = 1) -> Job:
    return Job(point=found.points[index].point, repetition=2, seed=1, place=PLACE)


def ended(job: Job) -> RepetitionEnded:
    return RepetitionEnded(job=job, outcome="found", value=1e5, reason=None)


def test_a_repetition_that_goes_on_loses_no_trial_of_the_count() -> None:
    """Some of the trials that it had may not be asked for again: a ceiling is known by now."""
    before = in_the_file(verdicts={"PASS": 4, "FAIL": 3, "INVALID": 2})
    after = in_the_file(verdicts={"PASS": 6, "FAIL": 3, "INVALID": 2})
    trial = SimulatedMeasurer(limit_fps=1e6).measure(1.0, 1e5)
    job = job_of(before)
    told = said(
        RepetitionBegan(job=job, stored_trials=3),
        *(Measured(what="trial", result=trial) for _ in range(4)),
        ended(job),
        files=[before, after],
    )
    assert "repetition 2 resumes after 3 stored trials" in told
    assert "11 trials in total (6 PASS, 3 FAIL, 2 INVALID)" in told


def test_the_log_says_the_time_left_that_status_says() -> None:
    before = in_the_file()
    after = replace(
        status(3, 2, 0), points=tuple(replace(p, measured_s=77.0) for p in status(3, 2, 0).points)
    )
    job = job_of(before)
    told = said(RepetitionBegan(job=job, stored_trials=0), ended(job), files=[before, after])
    left = time_left(after.points)
    assert f"; {left.words} left" in told
    assert time_left(after.points, testbed_count=2).middle_s == pytest.approx(left.middle_s / 2)


def test_what_a_point_should_take_is_found_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A display asks for it twice a second, of every point, and reads the file anew after each repetition."""
    read: list[Point] = []

    def counted(point: Point) -> PointRequest:
        read.append(point)
        return read_point(point)

    def longer(status: PointStatus) -> PointStatus:
        goal = {**status.point.goal, "final-duration": "20s"}
        return replace(status, point=replace(status.point, goal=goal))

    monkeypatch.setattr(times, "read_point", counted)
    for known in (times._expected, times._ceiling):
        known.cache_clear()
    points = in_the_file().points
    first = time_left(points)
    assert read
    read.clear()
    assert [time_left(in_the_file().points) for _ in range(3)] == [first] * 3
    assert read == []
    assert time_left(map(longer, points)).middle_s > first.middle_s, "a key may stand for another goal"


def test_a_round_names_its_suite_where_there_are_several() -> None:
    one = in_the_file()
    point = one.points[1].point
    assert f"round 1 of 5, point 2 of 3: {point.key}" in said(
        PointBegan(point=point, place=PLACE), files=[one]
    )
    other = replace(one.points[0], point=replace(one.points[0].point, suite="gateway"))
    several = replace(one, points=(other, *one.points[1:]))
    told = said(PointBegan(point=point, place=PLACE), files=[several])
    assert told.startswith("direct, round 1 of 5, point 2 of 3: ")


def test_a_lab_in_use_is_refused_before_any_time_is_told(
    evenhand: Callable[..., Ended],
    engine_playing: Callable[[str], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @contextmanager
    def leased(**_: Any) -> Iterator[None]:
        raise InUseError(
            "the lab is in use by process 7", code="base.in-use", where="lab:linux", next_step="Wait."
        )
        yield

    engine_playing("simulated-640000--512")
    write_campaign(tmp_path, small(1))
    monkeypatch.setattr(runner, "rig_of", lambda text: SimpleNamespace(leased=leased))
    refused = evenhand("run", "small.toml", "--run", "run.evenhand", "--no-html")
    assert refused.code == 3
    assert refused.error.code == "base.in-use"
    assert "Expected time" not in refused.err
    assert not (tmp_path / "run.evenhand").exists()


def test_what_all_labs_changed_names_the_commands_for_each_that_is_up(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is shown once for all labs, not once for each."""
    limit = RaisedLimit(name="net.ipv4.neigh.default.gc_thresh3", before=1024, now=200000)
    monkeypatch.setattr(lab_verb, "raised_limits", lambda: [limit])
    up = SimpleNamespace()
    shown: list[str] = []
    monkeypatch.setattr(lab_verb, "lab_status", lambda name: up)
    monkeypatch.setattr(lab_verb, "_show_lab", lambda lab, name: shown.append(name))
    lab_verb.status(None)
    told = capsys.readouterr().out
    assert shown == ["linux", "vm"]
    assert told.count("Changed outside the namespaces") == 1
    assert "(evenhand lab down linux, evenhand lab down vm)" in " ".join(told.split())
    _show_changes()
    assert "evenhand lab down" not in capsys.readouterr().out
