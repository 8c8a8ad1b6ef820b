# SPDX-License-Identifier: Apache-2.0
"""A command of the user's ends with all that it started."""

from __future__ import annotations

import os
import time
from pathlib import Path

from evenhand.base.shell_command import run_shell_command

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
