# SPDX-License-Identifier: Apache-2.0
"""Two testers never share a lab or a port: the second one is refused before it touches anything, and so is
who takes the lab away."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from evenhand.cli.main import main
from evenhand.lab import lab_down, lab_status, lab_up
from evenhand.plan import make_plan
from tests.errors import raises
from tests.preloaded.commands import evenhand_command
from tests.wire.wire_session import LENIENT_OPTIONS

pytestmark = [pytest.mark.wire, pytest.mark.root]
SENDING_S = 5
READY_S = 40


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "evenhand", *map(str, arguments)]


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    line = [*evenhand_command(), *map(str, arguments)]
    return subprocess.run(line, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture
def lab_name() -> Iterator[str]:
    name = f"w{os.getpid() % 10_000_000}"
    lab_up(make_plan("gateway_v4"), name=name)
    yield name
    lab_down(name, force=True)


@contextmanager
def trial_running(name: str, where: Path, *, seconds: int = SENDING_S) -> Iterator[subprocess.Popen[str]]:
    """A trial of some seconds on this lab, from the moment on at which its ports are open."""
    with (where / "stdout").open("w") as out, (where / "stderr").open("w") as err:
        process = subprocess.Popen(
            command(
                "trial",
                f"lab:{name}",
                "--rate",
                "2kfps",
                "--duration",
                f"{seconds}s",
                "--waits",
                "short",
                "--loss-ratio",
                "10%",
                *LENIENT_OPTIONS,
                "--json",
            ),
            stdout=out,
            stderr=err,
            text=True,
        )
        try:
            deadline = time.monotonic() + READY_S
            while not engine_of(process) and time.monotonic() < deadline:
                time.sleep(0.05)
            time.sleep(2)  # its ports are open then, and frames are on their way
            assert process.poll() is None, (where / "stderr").read_text()
            yield process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
            process.wait(60)


def engine_of(process: subprocess.Popen[str]) -> list[int]:
    """Children of the process that are the engine, or on their way to be."""
    found = subprocess.run(
        ["pgrep", "-P", str(process.pid)], capture_output=True, text=True, check=False
    ).stdout
    return [int(pid) for pid in found.split()]


def verdict_of(process: subprocess.Popen[str], where: Path) -> str | None:
    """None if it ended with an error before there was a trial."""
    process.wait(60)
    document = json.loads((where / "stdout").read_text())
    if document["error"] is not None:
        assert document["error"]["code"] == 3, document
        return None
    return str(document["trial"]["verdict"])


SECOND_TESTERS = {
    "trial": ["--rate", "1kfps"],
    "throughput": ["--maximum-rate", "1kfps", "--no-run"],
    "learn": [],
    "check": ["--watch", "0"],
}


@pytest.mark.thorough
@pytest.mark.two_cpus  # on one, the first tester leaves nothing to the second
def test_second_testers_on_a_lab_are_refused_and_the_first_ones_trial_stays_what_it_was(
    lab_name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """SEED-80, MLR-14: opened a second time, a port gives the first tester's frames to the other one, which
    looked like 73 % of loss."""
    for seconds in (SENDING_S, 12 * SENDING_S):
        with trial_running(lab_name, tmp_path, seconds=seconds) as first:
            # In this process, which has loaded all that they need: a command of its own may come too late on
            # a busy machine.
            ended = {
                verb: (main([verb, f"lab:{lab_name}", *rate]), capsys.readouterr().err)
                for verb, rate in SECOND_TESTERS.items()
            }
            if first.poll() is not None:
                continue  # it was over before all of them had come, which says nothing
            for verb, (code, said) in ended.items():
                assert code == 3, f"{verb}: {said}"
                assert f"the lab {lab_name!r} is in use by process {first.pid}" in said
                assert "Next:" in said
            assert verdict_of(first, tmp_path) != "FAIL"
            return
    raise AssertionError("no second tester came in a minute")


@pytest.mark.thorough
def test_a_lab_is_not_taken_away_under_a_trial_unless_that_is_forced(lab_name: str, tmp_path: Path) -> None:
    with trial_running(lab_name, tmp_path, seconds=SENDING_S) as first:
        for take_away in (lambda: lab_down(lab_name), lambda: lab_up(make_plan("gateway_v6"), name=lab_name)):
            with raises("base.in-use", match=f"process {first.pid}"):
                take_away()
        assert lab_status(lab_name) is not None
        assert verdict_of(first, tmp_path) != "FAIL"
    assert lab_down(lab_name)


@pytest.mark.thorough
@pytest.mark.two_cpus
def test_a_lab_that_is_taken_away_by_force_spoils_the_trial_and_the_dut_is_not_charged_with_it(
    lab_name: str, tmp_path: Path
) -> None:
    with trial_running(lab_name, tmp_path, seconds=SENDING_S) as first:
        assert lab_down(lab_name, force=True)
        # On a busy host its ports may not be open yet: then there is no trial at all, and nobody is charged.
        assert verdict_of(first, tmp_path) in ("INVALID", None)
    assert lab_status(lab_name) is None


@pytest.mark.thorough
def test_a_tester_that_is_killed_blocks_nobody(lab_name: str, tmp_path: Path) -> None:
    """The kernel drops the lock with the last process that has it: the tester, or the engine that is still
    closing its ports."""
    with trial_running(lab_name, tmp_path) as first:
        first.kill()
        first.wait()
    deadline = time.monotonic() + READY_S
    while (
        second := run("learn", f"lab:{lab_name}", "--wait", "0.2s", "--direction", "forward", "--hosts", "1")
    ).returncode == 3:
        assert "in use" in second.stderr, second.stderr
        assert time.monotonic() < deadline, second.stderr
    assert second.returncode == 0, second.stderr
