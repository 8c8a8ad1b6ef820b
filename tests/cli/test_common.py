# SPDX-License-Identifier: Apache-2.0
"""Commands in notes can be copied where the program is not on PATH, as in a clone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from evenhand.cli import common


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    common.program.cache_clear()
    common.program_with_sudo.cache_clear()
    monkeypatch.delenv("SUDO_USER", raising=False)


@pytest.mark.parametrize(
    ("typed", "is_on_path", "command"),
    [
        (".venv/bin/evenhand", False, ".venv/bin/evenhand"),
        ("/opt/my tools/evenhand", False, "'/opt/my tools/evenhand'"),
        (".venv/bin/evenhand", True, "evenhand"),
        ("evenhand", False, "evenhand"),
        ("/usr/lib/python3/evenhand/__main__.py", False, "evenhand"),
        ("/usr/bin/pytest", False, "evenhand"),
        ("", False, "evenhand"),
    ],
)
def test_the_program_is_named_as_it_was_started(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, typed: str, is_on_path: bool, command: str
) -> None:
    if is_on_path:
        (tmp_path / "evenhand").write_text("#!/bin/sh\n")
        (tmp_path / "evenhand").chmod(0o755)
    monkeypatch.setattr(sys, "argv", [typed])
    monkeypatch.setenv("PATH", str(tmp_path))
    assert common.program() == command


def test_only_commands_are_changed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "argv", ["bin/evenhand"])
    monkeypatch.setenv("PATH", str(tmp_path))
    assert (
        common.as_commands_here(
            "Evenhand; see x.evenhand or /tmp/evenhand run; sudo evenhand run a; evenhand 0.1.0"
        )
        == "Evenhand; see x.evenhand or /tmp/evenhand run; sudo bin/evenhand run a; evenhand 0.1.0"
    )


def test_who_needed_sudo_is_told_it_and_sudo_finds_the_program(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What stands on a user's PATH alone, sudo does not find."""
    (tmp_path / "evenhand").write_text("#!/bin/sh\n")
    (tmp_path / "evenhand").chmod(0o755)
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "evenhand")])
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(common, "_PATH_OF_SUDO", "/nowhere")
    assert common.as_commands_here("evenhand check; sudo evenhand run a") == (
        f"evenhand check; sudo {tmp_path}/evenhand run a"
    )
    monkeypatch.setenv("SUDO_USER", "person")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert common.as_commands_here("evenhand run --resume a") == f"sudo {tmp_path}/evenhand run --resume a"
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert common.as_commands_here("evenhand run --resume a") == "evenhand run --resume a"


def test_an_error_of_a_clone_can_be_followed(tmp_path: Path) -> None:
    program = Path(sys.executable).with_name("evenhand")
    ended = subprocess.run(
        [program, "run"],
        cwd=tmp_path,
        env={**os.environ, "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 2
    commands = [line for line in ended.stderr.splitlines() if "evenhand " in line]
    assert commands
    assert all(f"{program} " in line for line in commands)
