# SPDX-License-Identifier: Apache-2.0
"""A command line in this process, with an engine that plays a part."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.running import TESTBED, Ended, run_here
from tests.preloaded.commands import scripted_engine_command


@pytest.fixture
def evenhand(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ended]:
    """Run a command line."""

    def run(*arguments: str | Path) -> Ended:
        return run_here(arguments, capsys)

    return run


@pytest.fixture
def engine_playing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Make EVENHAND_ENGINE an engine that plays this part, and keeps what it is asked in
    engine-requests.jsonl."""

    def play(part: str) -> Path:
        path = tmp_path / "engine"
        started, requests = tmp_path / "engine-was-started", tmp_path / "engine-requests.jsonl"
        path.write_text(
            f'#!/bin/sh\ntouch "{started}"\n'
            f'exec {shlex.join(scripted_engine_command())} "{part}" "{requests}"\n'
        )
        path.chmod(0o755)
        monkeypatch.setenv("EVENHAND_ENGINE", str(path))
        return path

    return play


@pytest.fixture
def testbed(tmp_path: Path) -> Path:
    """A testbed file that is accepted."""
    path = tmp_path / "testbed.toml"
    path.write_text(TESTBED)
    return path


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs are stored in the current folder; that must not be the checkout."""
    monkeypatch.chdir(tmp_path)
