# SPDX-License-Identifier: Apache-2.0
"""A folder of runs that is kept small: what goes, and what must never go."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from evenhand.report.page import MARK
from evenhand.run.folder import FolderLimits, Pruning, newest, prune, runs_in
from evenhand.run.run_file import campaign_locked
from tests.errors import raises
from tests.run.goldens import copy_recorded

NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)
PAGE = b'<!DOCTYPE html>\n<meta name="generator" content="Evenhand 0.1.0">'
Add = Callable[..., Path]


@pytest.fixture
def add(tmp_path: Path) -> Add:
    """A run that was begun so many days ago."""

    def put(days: float, *, version: int = 4, is_finished: bool = True, has_page: bool = False) -> Path:
        path = tmp_path / f"{days:07.2f}-days.evenhand"
        copy_recorded(f"campaign-v{version}", path)
        when = (NOW - timedelta(days=days)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(
                "UPDATE run SET created_at = ?, finished_at = ?", (when, when if is_finished else None)
            )
        if has_page:
            path.with_suffix(".html").write_bytes(PAGE)
        return path

    return put


def pruned(folder: Path, limits: FolderLimits, *, is_dry: bool = False) -> Pruning:
    return prune(folder, limits, page_mark=MARK, now=NOW, is_dry=is_dry)


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("version", [4, 6])
def test_runs_that_are_too_old_go_with_their_pages(tmp_path: Path, add: Add, version: int) -> None:
    old = add(100, version=version, has_page=True)
    young = add(2, version=version, has_page=True)
    dry = pruned(tmp_path, FolderLimits(days=90), is_dry=True)
    assert [each.path for each in dry.gone] == [old]
    assert len(left(tmp_path)) == 4
    done = pruned(tmp_path, FolderLimits(days=90))
    assert [(each.path, each.page) for each in done.gone] == [(old, old.with_suffix(".html"))]
    assert left(tmp_path) == [young.with_suffix(".evenhand").name, young.with_suffix(".html").name]
    assert (done.runs, done.octets) == (1, sum(path.stat().st_size for path in tmp_path.iterdir()))


def test_the_oldest_go_until_the_folder_is_small_enough(tmp_path: Path, add: Add) -> None:
    paths = [add(days) for days in (4, 3, 2, 1)]
    size = paths[0].stat().st_size
    done = pruned(tmp_path, FolderLimits(octets=2 * size))
    assert [each.path for each in done.gone] == paths[:2]
    assert done.octets <= 2 * size


def test_the_latest_runs_stay_whatever_the_limits_are(tmp_path: Path, add: Add) -> None:
    """Whoever did not measure for months has not lost everything."""
    paths = [add(days) for days in (400, 300, 200)]
    pruned(tmp_path, FolderLimits(days=1, octets=1))
    assert left(tmp_path) == [paths[2].name]
    more = [add(days) for days in (400, 300)]
    pruned(tmp_path, FolderLimits(days=1, least=2))
    assert left(tmp_path) == sorted([paths[2].name, more[1].name])


def test_what_is_not_a_run_of_ours_is_never_touched(tmp_path: Path, add: Add) -> None:
    """By its content, not by its name."""
    add(1)
    kept = {
        "notes.evenhand": b"my notes",
        "empty.evenhand": b"",
        "report.html": PAGE,
        "other.txt": b"text",
        ".hidden.evenhand": b"hidden",
    }
    for name, content in kept.items():
        (tmp_path / name).write_bytes(content)
    foreign = tmp_path / "foreign.evenhand"
    with closing(sqlite3.connect(foreign)) as connection, connection:
        connection.execute("CREATE TABLE run (id INTEGER PRIMARY KEY, created_at TEXT)")
    below = tmp_path / "below"
    below.mkdir()
    copy_recorded("campaign-v4", below / "old.evenhand")
    outside = tmp_path.parent / f"{tmp_path.name}-outside.evenhand"
    copy_recorded("campaign-v4", outside)
    (tmp_path / "link.evenhand").symlink_to(outside)
    before = left(tmp_path)
    done = pruned(tmp_path, FolderLimits(days=1, octets=1))
    assert done.gone == []
    assert sorted(each.path.name for each in done.not_runs) == [
        "empty.evenhand",
        "foreign.evenhand",
        "notes.evenhand",
    ]
    assert left(tmp_path) == before
    assert outside.exists()
    assert (below / "old.evenhand").exists()


def test_a_page_that_somebody_else_wrote_stays(tmp_path: Path, add: Add) -> None:
    old = add(100)
    add(1)
    old.with_suffix(".html").write_text("<!DOCTYPE html> my own notes on that night")
    pruned(tmp_path, FolderLimits(days=90))
    assert not old.exists()
    assert old.with_suffix(".html").exists()


def test_a_run_that_has_not_finished_stays_unless_asked_for(tmp_path: Path, add: Add) -> None:
    """It may be one that is being measured, or is to be resumed."""
    old = add(100, is_finished=False)
    add(1)
    done = pruned(tmp_path, FolderLimits(days=90))
    assert [(each.path, each.reason) for each in done.held] == [(old, "it has not finished")]
    assert old.exists()
    pruned(tmp_path, FolderLimits(days=90, is_unfinished_kept=False))
    assert not old.exists()


def test_a_run_that_is_locked_stays(tmp_path: Path, add: Add) -> None:
    old = add(100, is_finished=False)
    add(1)
    with campaign_locked(old):
        done = pruned(tmp_path, FolderLimits(days=90, is_unfinished_kept=False))
    assert done.held[0].reason == f"it is in use by process {os.getpid()}"
    assert old.exists()


def test_a_run_that_a_process_has_open_stays(tmp_path: Path, add: Add) -> None:
    """The run of a single verb has no lock between two trials, but its file is open."""
    old = add(100, is_finished=False)
    add(1)
    program = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('SELECT 1 FROM run').fetchall();"
    )
    program += " print('open', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", program, str(old)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdin is not None
        assert writer.stdout.readline() == "open\n"
        done = pruned(tmp_path, FolderLimits(days=90, is_unfinished_kept=False))
        assert done.held[0].reason == f"process {writer.pid} has it open"
        assert old.exists()
        writer.stdin.close()
    pruned(tmp_path, FolderLimits(days=90, is_unfinished_kept=False))
    assert not old.exists()


def test_a_run_with_a_journal_beside_it_stays(tmp_path: Path, add: Add) -> None:
    """It belongs to the file: whoever deletes one makes the other worthless."""
    old = add(100)
    add(1)
    journal = old.with_name(f"{old.name}-journal")
    journal.write_bytes(b"")
    done = pruned(tmp_path, FolderLimits(days=90))
    assert [each.path for each in done.held] == [old]
    assert old.exists()
    assert journal.exists()


def test_a_folder_that_is_none_is_refused(tmp_path: Path) -> None:
    with raises("run.no-such-folder"):
        pruned(tmp_path / "nowhere", FolderLimits(days=1))
    with raises("run.folder-not-readable"):
        runs_in(tmp_path / "nowhere")


def test_the_newest_are_those_that_were_begun_last(tmp_path: Path, add: Add) -> None:
    """Copying changes the time of a file, not when its run was begun."""
    paths = [add(days) for days in (1, 3, 2)]
    os.utime(paths[1])
    (tmp_path / "notes.evenhand").write_text("no run")
    assert newest(runs_in(tmp_path), 2) == [paths[2], paths[0]]
