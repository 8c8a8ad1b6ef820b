# SPDX-License-Identifier: Apache-2.0
"""A command of the user's ends with all that it started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from evenhand.base.programs import run_shell_command

PATIENCE_S = 60.0


def is_running(process: int) -> bool:
    """A zombie, which its new parent has not waited for yet, is none."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_what_a_command_started_ends_with_it_when_it_takes_too_long(tmp_path: Path) -> None:
    ended = run_shell_command(f"sleep 1000 & echo $! > {tmp_path}/child; echo waits; wait", timeout_s=1.0)
    assert ended.exit_code is None
    assert ended.output == "waits\n"
    child = int((tmp_path / "child").read_text())
    give_up = time.monotonic() + PATIENCE_S
    while is_running(child) and time.monotonic() < give_up:
        time.sleep(0.01)
    assert not is_running(child)


def test_a_command_tells_its_exit_code_what_it_printed_and_what_it_was_told() -> None:
    ended = run_shell_command('echo "$WORD"; echo err >&2; exit 3', timeout_s=60, environment={"WORD": "hm"})
    assert (ended.exit_code, ended.output) == (3, "hm\nerr\n")
    assert run_shell_command("kill -9 $$", timeout_s=60).exit_code == -9
    assert "PATH" in os.environ
    assert run_shell_command('test -n "$PATH"', timeout_s=60).exit_code == 0


def test_a_second_ctrl_c_leaves_none_of_its_processes(tmp_path: Path) -> None:
    """The first one waits for those that ignore SIGTERM; who is impatient left them behind."""
    path = tmp_path / "pid"
    # In a process of its own, whose handler of SIGINT is Python's.
    program = (
        "import sys; from evenhand.base.programs import run_shell_command\n"
        f"run_shell_command(\"trap '' TERM; echo $$ > {path}; sleep 60 & wait\", timeout_s=60)"
    )
    process = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.DEVNULL)
    try:
        _wait_until(lambda: path.exists() and path.read_text().endswith("\n"))
        group = int(path.read_text())
        for _ in range(2):
            process.send_signal(signal.SIGINT)
            time.sleep(0.3)
        process.wait(30)
        _wait_until(lambda: not _lives(group))
    finally:
        process.kill()
        process.wait()


def _lives(group: int) -> bool:
    """Whether a process of the group runs; one that has ended and waits to be looked after does not."""
    for folder in Path("/proc").iterdir():
        try:
            words = (folder / "stat").read_text().rpartition(")")[2].split() if folder.name.isdigit() else []
        except OSError:
            continue
        if words and int(words[2]) == group and words[0] != "Z":
            return True
    return False


def _wait_until(is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.02)
