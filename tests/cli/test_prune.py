# SPDX-License-Identifier: Apache-2.0
"""`evenhand prune`: what it says, and that it asks for a limit. tests/run/test_folder.py has what may go."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.running import Ended
from tests.run.goldens import copy_recorded

Run = Callable[..., Ended]


@pytest.fixture
def runs() -> Path:
    """Two runs of a day that is over, and a file that is none."""
    folder = Path("runs")
    folder.mkdir()
    for version in (4, 6):
        copy_recorded(f"campaign-v{version}", folder / f"v{version}.evenhand")
    (folder / "notes.evenhand").write_text("no run")
    return folder


def test_without_a_limit_nothing_is_deleted(evenhand: Run, runs: Path) -> None:
    ended = evenhand("prune", runs)
    assert ended.code == 2
    assert ended.error.code == "cli.missing-option"
    assert "--days 90" in ended.error.next_step
    assert len(list(runs.iterdir())) == 3


def test_a_dry_run_says_what_would_go_and_the_same_goes_then(evenhand: Run, runs: Path) -> None:
    dry = evenhand("prune", runs, "--size", "0.001MB", "--dry-run")
    assert dry.code == 0
    assert "Would delete 1 run" in dry.out
    assert len(list(runs.iterdir())) == 3
    ended = evenhand("prune", runs, "--size", "0.001MB")
    assert ended.code == 0
    assert "Deleted 1 run" in ended.out
    assert "Not touched: notes.evenhand" in ended.out
    assert len(list(runs.iterdir())) == 2


def test_the_document_names_each_file(evenhand: Run, runs: Path) -> None:
    document = evenhand("prune", runs, "--size", "0.001MB", "--dry-run", "--json").json
    assert document["dry_run"] is True
    assert len(document["deleted"]) == 1
    assert document["runs"] == 1
    assert [each["file"] for each in document["not_runs"]] == ["notes.evenhand"]


@pytest.mark.parametrize("size", ["20", "20GiB", "-1GB"])
def test_a_size_has_its_unit(evenhand: Run, runs: Path, size: str) -> None:
    ended = evenhand("prune", runs, f"--size={size}")
    assert ended.code == 2
    assert ended.error.where == "--size"
    assert "20GB" in ended.error.next_step
