# SPDX-License-Identifier: Apache-2.0
"""A campaign that is killed at any moment goes on as if it had not been."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from evenhand.run import PointState, read_record
from tests.run.campaign.small_campaign import essence, small, write_campaign

FORKING = Path(__file__).with_name("forking.py")
BEGIN = ("run", "small.toml", "--run", "run.evenhand")
MOST_REQUESTS = 12
"""Between two kills: three open the tester, and each trial is one."""
AFTER_A_REQUEST_S = 0.03
"""About as long as a trial and its storing take here."""


class Starter:
    """Starts command lines in one folder, one at a time."""

    def __init__(self, folder: Path, process: subprocess.Popen[str]) -> None:
        self.folder = folder
        self._process = process

    def start(self, *arguments: str) -> int:
        """The id of its process."""
        assert self._process.stdin is not None
        self._process.stdin.write(
            json.dumps({"arguments": arguments, "log": str(self.folder / "log")}) + "\n"
        )
        self._process.stdin.flush()
        return self._next()

    def wait(self) -> int:
        """For its end; the exit code, or the signal as a negative number."""
        return self._next()

    def run(self, *arguments: str) -> None:
        """To its end, which must be a good one."""
        self.start(*arguments)
        code = self.wait()
        assert code == 0, (self.folder / "log").read_text()

    def requests(self) -> list[str]:
        """That all engines of this folder got so far."""
        path = self.folder / "requests.jsonl"
        return path.read_text().splitlines() if path.exists() else []

    def _next(self) -> int:
        assert self._process.stdout is not None
        return int(self._process.stdout.readline())


@contextmanager
def starting(
    folder: Path, loaded: Sequence[str] = ("run", "evenhand.cli.progress.campaign")
) -> Iterator[Starter]:
    """`loaded`: arguments of forking.py."""
    environment = {
        **os.environ,
        "EVENHAND_ENGINE": str(folder / "engine"),
        "XDG_STATE_HOME": str(folder / "state"),
    }
    with subprocess.Popen(
        [sys.executable, FORKING, *loaded],
        cwd=folder,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield Starter(folder, process)


def is_there(child: int) -> bool:
    """False of one that has ended, and of which the kernel keeps no more than how."""
    with suppress(OSError):  # a user who is not root may not look at what such a process had open
        return Path(f"/proc/{child}/fd/0").exists()
    return False


def kill_and_resume(starter: Starter, *options: str, kills: int) -> None:
    """At random moments: while it opens the tester, in a trial, while it writes, between repetitions."""
    chance = random.Random(kills)
    for number in range(kills):
        wanted = len(starter.requests()) + chance.randint(1, MOST_REQUESTS)
        child = starter.start(
            *BEGIN, *options, *(["--resume"] if (starter.folder / "run.evenhand").exists() else [])
        )
        while len(starter.requests()) < wanted and is_there(child):
            time.sleep(0.002)
        time.sleep(chance.uniform(0, AFTER_A_REQUEST_S))
        os.kill(child, signal.SIGKILL)  # not reaped before `wait`
        code = starter.wait()
        assert code == -signal.SIGKILL, (
            f"it ended before kill {number + 1}: {(starter.folder / 'log').read_text()}"
        )
    starter.run(*BEGIN, *options, "--resume")


def assert_killed_is_as_unkilled(tmp_path: Path, *options: str, kills: int, repetitions: int) -> None:
    killed, unkilled = tmp_path / "killed", tmp_path / "unkilled"
    requested = {}
    for folder in (unkilled, killed):
        folder.mkdir()
        write_campaign(folder, small(repetitions))
        with starting(folder) as starter:
            if folder is killed:
                kill_and_resume(starter, *options, kills=kills)
            else:
                starter.run(*BEGIN, *options)
            requested[folder] = sum(json.loads(line)["request"] == "trial" for line in starter.requests())
    expected, found = (read_record(folder / "run.evenhand") for folder in (unkilled, killed))
    assert found.finished_at is not None
    assert {point.state for point in found.points} == {PointState.MEASURED}
    assert found.notes == ()
    assert essence(found) == essence(expected)
    # What was on its way when the process died was not measured yet: for each kill one trial at most is asked
    # for again.
    assert requested[unkilled] <= requested[killed] <= requested[unkilled] + kills
    assert len(found.commands) > kills // 2  # some died before they had opened the file


@pytest.mark.thorough
def test_a_campaign_killed_eight_times_equals_the_unkilled_one(tmp_path: Path) -> None:
    """D11: nothing that was measured is lost, and nothing is measured twice. Half of the time would go into
    pages."""
    assert_killed_is_as_unkilled(tmp_path, "--no-html", kills=8, repetitions=2)


@pytest.mark.slow
def test_a_campaign_killed_a_hundred_times_equals_the_unkilled_one(tmp_path: Path) -> None:
    """D11: with the page that is written meanwhile."""
    assert_killed_is_as_unkilled(tmp_path, kills=100, repetitions=25)
