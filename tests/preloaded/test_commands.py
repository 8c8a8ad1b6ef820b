# SPDX-License-Identifier: Apache-2.0
"""A command in a child of the server of preloaded commands is what it is in a process of its own."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.preloaded.commands import evenhand_command, put_on_path

STARTED = (sys.executable, "-m", "evenhand")


@pytest.mark.parametrize("line", ["plan show gateway-v4", "plan show none", "--help", "nonsense --json"])
def test_it_prints_and_ends_as_a_process_of_its_own(line: str, tmp_path: Path) -> None:
    environment = {**os.environ, "COLUMNS": "97"}
    ended, started = (
        subprocess.run(
            [*command, *line.split()],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        for command in (evenhand_command(), STARTED)
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (
        started.returncode,
        started.stdout,
        started.stderr,
    )


def campaign_of_a_hook(folder: Path, hook: str) -> list[str]:
    """A command that runs this in a shell, and then has nothing to measure with."""
    (folder / "a.toml").write_text(
        f"name = 'a'\ntestbed = 'none.toml'\nhooks.before-suite = '{hook}'\n"
        '[[suite]]\nname = "s"\nhosts = 1\n'
    )
    return [*evenhand_command(), "run", "a.toml", "--run", "a.evenhand", "--no-html"]


def test_folder_environment_limits_cpus_and_umask_are_those_of_who_starts_it(tmp_path: Path) -> None:
    hook = "pwd >told; echo $OF_TEST >>told; ulimit -n >>told; umask >>told; nproc >>told"
    (cpu, *_) = sorted(os.sched_getaffinity(0))

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (777, 777))
        os.sched_setaffinity(0, {cpu})
        os.umask(0o27)

    subprocess.run(
        campaign_of_a_hook(tmp_path, hook),
        cwd=tmp_path,
        env={**os.environ, "OF_TEST": "yes"},
        preexec_fn=limit,
        capture_output=True,
        check=False,
    )
    assert (tmp_path / "told").read_text().split() == [str(tmp_path), "yes", "777", "0027", "1"]


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)]
)
def test_signals_reach_it_and_it_dies_with_who_started_it(
    number: signal.Signals, code: int, tmp_path: Path
) -> None:
    pipe = tmp_path / "began"
    os.mkfifo(pipe)
    with subprocess.Popen(
        campaign_of_a_hook(tmp_path, "echo $PPID >began; sleep 600"), cwd=tmp_path, stderr=subprocess.DEVNULL
    ) as process:
        command = int(pipe.read_text())
        process.send_signal(number)
        assert process.wait(60) == code
    descriptor = None
    try:
        descriptor = os.pidfd_open(command)
        signal.pidfd_send_signal(descriptor, 0)
    except ProcessLookupError:
        return  # it has ended already
    finally:
        if descriptor is not None:
            os.close(descriptor)
    for _ in range(600):
        if not Path(f"/proc/{command}").exists():
            return
        subprocess.run(["sleep", "0.1"], check=True)
    raise AssertionError(f"{command} is still there")


def test_a_command_that_a_signal_ends_is_told_as_such(tmp_path: Path) -> None:
    ended = subprocess.run(
        campaign_of_a_hook(tmp_path, "kill -9 $PPID"), cwd=tmp_path, capture_output=True, check=False
    )
    assert ended.returncode == -signal.SIGKILL


def test_it_is_found_on_the_path(tmp_path: Path) -> None:
    put_on_path(tmp_path)
    path = f"{tmp_path}:{os.environ['PATH']}"
    ended = subprocess.run(
        ["sh", "-c", "evenhand plan show gateway-v4 | head -n 1"],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.stdout.startswith("gateway-v4")
