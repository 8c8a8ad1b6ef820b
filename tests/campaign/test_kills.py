# SPDX-License-Identifier: Apache-2.0
"""A campaign that is killed at any moment goes on as if it had not been."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from evenhand.series import PointState, read_record
from tests.campaign.small_campaign import essence, write_campaign

MOST_STARTS = 400
LONGEST_S = 120.0


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "EVENHAND_ENGINE": str(folder / "engine"), "XDG_STATE_HOME": str(folder / "state")}
    return subprocess.Popen(
        [sys.executable, "-m", "evenhand", "run", *arguments], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip


def run_to_end(folder: Path, *arguments: str) -> str:
    process = start(folder, *arguments)
    out, err = process.communicate(timeout=LONGEST_S)
    assert process.returncode == 0, err
    return out + err


def trials_in(run: Path) -> int:
    with suppress(Exception):
        return sum(len(s.trials) for p in read_record(run).points for r in p.repetitions for s in r.searches)
    return 0


def requested_trials(folder: Path) -> int:
    return sum('"trial"' in line for line in (folder / "requests.jsonl").read_text().splitlines())


def kill_and_resume(folder: Path, *, kills: int, seed: int) -> None:
    """At random moments after it has begun to measure: in a trial, in a write, between repetitions."""
    chance = random.Random(seed)
    run = folder / "run.evenhand"
    begin = ("small.toml", "--run", "run.evenhand")
    killed = 0
    while killed < kills:
        process = start(folder, *begin, *(["--resume"] if run.exists() else []))
        # Starting up takes longest of all; what counts are the moments after it.
        requests, before = (
            folder / "requests.jsonl",
            (folder / "requests.jsonl").stat().st_size if (folder / "requests.jsonl").exists() else 0,
        )
        while process.poll() is None and (not requests.exists() or requests.stat().st_size == before):
            time.sleep(0.002)
        with suppress(subprocess.TimeoutExpired):
            process.wait(chance.uniform(0, 0.25))
        if process.poll() is not None:
            assert process.returncode == 0, process.communicate()[1]
            break
        process.send_signal(signal.SIGKILL)
        process.communicate()
        killed += 1
    assert killed >= min(kills, 5), "it was over before it was killed often enough to say anything"
    run_to_end(folder, *begin, "--resume")


def assert_killed_is_as_unkilled(tmp_path: Path, *, kills: int) -> None:
    killed, unkilled = tmp_path / "killed", tmp_path / "unkilled"
    for folder in (killed, unkilled):
        folder.mkdir()
        write_campaign(folder)
    run_to_end(unkilled, "small.toml", "--run", "run.evenhand")
    kill_and_resume(killed, kills=kills, seed=kills)
    expected, found = (read_record(folder / "run.evenhand") for folder in (unkilled, killed))
    assert found.finished_at is not None
    assert {point.state for point in found.points} == {PointState.MEASURED}
    assert essence(found) == essence(expected)
    assert trials_in(killed / "run.evenhand") == trials_in(unkilled / "run.evenhand")
    # A trial that was on its way when the process died was not yet measured: at most one for each kill is asked for again.
    assert requested_trials(killed) <= requested_trials(unkilled) + kills
    assert len(found.commands) > 1


def test_a_campaign_killed_twenty_times_equals_the_unkilled_one(tmp_path: Path) -> None:
    """D11: nothing that was measured is lost, and nothing is measured twice."""
    assert_killed_is_as_unkilled(tmp_path, kills=20)


@pytest.mark.slow
def test_a_campaign_killed_a_hundred_times_equals_the_unkilled_one(tmp_path: Path) -> None:
    """D11."""
    assert_killed_is_as_unkilled(tmp_path, kills=100)
