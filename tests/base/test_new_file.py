# SPDX-License-Identifier: Apache-2.0
"""Runs, pages and previews are new files: what is there stays, and nothing is written through a link
(SEED-80)."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from evenhand.base.new_file import check_new, is_disk_full, unwritable, write_new
from evenhand.cli.run_options import run_file
from evenhand.run import RunStore, read_run
from tests.cli.running import run_here
from tests.errors import raises


def as_run(path: Path) -> None:
    with RunStore.create(path, command=["evenhand"]):
        pass


def as_page(path: Path) -> None:
    write_new(path, b"<html>", where="--html")


def as_preview(path: Path) -> None:
    """Asks before it starts the engine for nothing."""
    check_new(path, where="--output")


WRITERS = pytest.mark.parametrize("write", [as_run, as_page, as_preview])


@WRITERS
def test_what_is_there_is_never_overwritten(write: Callable[[Path], None], tmp_path: Path) -> None:
    file, link, dangling, loop = (tmp_path / name for name in ("file", "link", "dangling", "loop"))
    file.write_text("kept")
    link.symlink_to(file)
    dangling.symlink_to(tmp_path / "elsewhere")
    loop.symlink_to(loop)
    for path in (file, link, dangling, loop, tmp_path):
        with raises("base.file-exists"):
            write(path)
    assert file.read_text() == "kept"
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("write", [as_run, as_page])
def test_a_file_that_cannot_be_made_is_the_hosts_fault(write: Callable[[Path], None], tmp_path: Path) -> None:
    with raises("base.file-not-writable"):
        write(tmp_path / "no" / "folder")


def test_a_run_is_stored_under_any_name(tmp_path: Path) -> None:
    """Also where it has a meaning in the addresses that SQLite is given."""
    for name in ("a?mode=memory.evenhand", "b#c.evenhand", "100%41.evenhand", "with space.evenhand"):
        as_run(tmp_path / name)
        with sqlite3.connect(f"{(tmp_path / name).as_uri()}?mode=ro", uri=True) as connection:
            assert connection.execute("SELECT count(*) FROM run").fetchone() == (1,)
    as_run(tmp_path / "plain.evenhand")
    assert read_run(tmp_path / "plain.evenhand").finished_at is not None


@pytest.mark.parametrize("leftover", ["-journal", "-wal", "-shm"])
def test_what_sqlite_would_take_for_a_part_of_a_run_is_refused(leftover: str, tmp_path: Path) -> None:
    """A journal that somebody put there would be rolled back into the new run."""
    (tmp_path / f"a.evenhand{leftover}").write_text("")
    with raises("base.file-exists", match=f"a.evenhand{leftover}"):
        as_run(tmp_path / "a.evenhand")
    assert not (tmp_path / "a.evenhand").exists()


def test_a_page_is_looked_at_before_the_demo_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not after two minutes of trials."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "page.html").symlink_to(tmp_path / "elsewhere")

    def fail(*arguments: object, **options: object) -> None:
        raise AssertionError("the demo has begun")

    monkeypatch.setattr("evenhand.cli.demo.reference_demo", fail)
    monkeypatch.setattr("evenhand.cli.demo.find_engine", lambda engine: engine)
    for line in (("--html", "page.html", "--no-run"), ("--run", "page.evenhand")):
        ended = run_here(["demo", *line], capsys)
        assert (ended.code, ended.error.code, ended.error.where) == (
            2,
            "base.file-exists",
            "--html page.html",
        )


def test_a_run_without_a_name_finds_one_that_is_free_for_its_page_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    first = run_file("demo", None, False)
    assert first is not None
    first.with_suffix(".html").symlink_to(tmp_path / "elsewhere")
    second = run_file("demo", None, False)
    assert second is not None
    assert not os.path.lexists(second.with_suffix(".html"))


def test_a_preview_is_a_new_file(tmp_path: Path) -> None:
    from evenhand.cli.plan_frames import _write

    (tmp_path / "frames.csv").symlink_to(tmp_path / "elsewhere")
    with raises("base.file-exists"):
        _write(b"frames", tmp_path / "frames.csv")
    assert not (tmp_path / "elsewhere").exists()
    _write(b"frames", tmp_path / "new.csv")
    assert (tmp_path / "new.csv").read_bytes() == b"frames"


@pytest.mark.parametrize(
    ("number", "step"),
    [
        (errno.ENOSPC, "Free some space on its disk"),
        (errno.EDQUOT, "Free some space"),
        (errno.EACCES, "Name another file."),
    ],
)
def test_advice_helps_against_what_is_wrong(number: int, step: str) -> None:
    """Another name on the same full disk is no help."""
    assert unwritable("a.csv", OSError(number, os.strerror(number))).next_step.startswith(step)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_is_told_as_one() -> None:
    """By the kernel: /dev/full takes no octet."""
    with (
        pytest.raises(OSError, match="No space left") as refused,
        open("/dev/full", "wb", buffering=0) as full,
    ):
        full.write(b"x")
    assert is_disk_full(refused.value)
