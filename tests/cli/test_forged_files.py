# SPDX-License-Identifier: Apache-2.0
"""Files that are no runs, or were made into something else, beside a sound one: `trend` and `compare` refuse
them with what is wrong, wait for none of them, and change none."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.running import Ended, run_here
from tests.run.foreign import rich_record, write_record

Run = Callable[..., Ended]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_record(tmp_path_factory.mktemp("sound") / "sound.evenhand", rich_record())


@pytest.fixture
def evenhand(capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*arguments: str | Path) -> Ended:
        return run_here(arguments, capsys)

    return run


def fifo(path: Path, sound: Path) -> None:
    os.mkfifo(path)


def circle(path: Path, sound: Path) -> None:
    path.symlink_to(path)


def cut(path: Path, sound: Path) -> None:
    path.write_bytes(sound.read_bytes()[: sound.stat().st_size // 2])


def text(path: Path, sound: Path) -> None:
    path.write_text("not a database\n" * 100)


def altered(statement: str) -> Callable[[Path, Path], None]:
    """The sound one, after this statement."""

    def make(path: Path, sound: Path) -> None:
        shutil.copy(sound, path)
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.executescript(statement)

    return make


def beside(suffix: str) -> Callable[[Path, Path], None]:
    """The sound one, with something beside it that SQLite would take for a part of it."""

    def make(path: Path, sound: Path) -> None:
        shutil.copy(sound, path)
        path.with_name(path.name + suffix).mkdir()

    return make


ENDLESS = (
    "ALTER TABLE trials RENAME TO kept; CREATE VIEW trials AS"
    " WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM x) SELECT n AS id FROM x"
)
FORGED: list[tuple[str, Callable[[Path, Path], None], str]] = [
    ("fifo", fifo, "run.not-a-file"),
    ("circle", circle, "run.no-such-file"),
    ("cut", cut, "run.not-a-run"),
    ("text", text, "run.not-a-run"),
    ("endless view", altered(ENDLESS), "run.not-a-run"),
    ("trigger", altered("CREATE TRIGGER t AFTER UPDATE ON run BEGIN DELETE FROM run; END"), "run.not-a-run"),
    ("blobs", altered("UPDATE repetitions SET value = x'ff00'"), "run.not-a-run"),
    ("journal", beside("-journal"), "run.not-a-run"),
    ("log", beside("-wal"), "run.not-a-run"),
]


@pytest.mark.parametrize("verb", ["trend", "compare"])
@pytest.mark.parametrize(
    ("make", "code"), [(made, code) for _, made, code in FORGED], ids=[f[0] for f in FORGED]
)
def test_a_forged_file_is_refused_and_named(
    evenhand: Run, sound: Path, tmp_path: Path, verb: str, make: Callable[[Path, Path], None], code: str
) -> None:
    forged = tmp_path / "forged.evenhand"
    make(forged, sound)
    before = forged.read_bytes() if code == "run.not-a-run" else b""
    ended = evenhand(verb, sound, forged)
    assert ended.code == 2, ended.failure
    assert ended.error.code == code
    assert ended.error.where == str(forged)
    assert ended.error.next_step
    if before:
        assert forged.read_bytes() == before
