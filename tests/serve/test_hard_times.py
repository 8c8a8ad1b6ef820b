# SPDX-License-Identifier: Apache-2.0
"""What a folder may do while it is shown: it has 10,000 runs, its disk is full, its files are replaced while
they are read, its runs end between two looks, and some are what no process of ours has written."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sqlite3
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from evenhand.run.run_file import campaign_locked
from evenhand.serve import index as index_module
from evenhand.serve.following import FollowedFolder, Follower
from evenhand.serve.index import RunIndex, RunState, cache_path, read_facts, stamp_of
from tests.run.goldens import copy_recorded
from tests.serve.served import Served, recorded_folder
from tests.serve.simulated_run import measure

MANY = 10_000
MOST_OCTETS = 200_000
NEEDS_MOUNT = pytest.mark.skipif(os.geteuid() != 0, reason="to mount a small file system needs root")
ANSWERS = {200, 400, 404, 503}


def test_a_page_of_ten_thousand_runs_reads_none_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a hundred are in a page, and with an index no file is opened."""
    first = copy_recorded("campaign-v4", tmp_path / "00000.evenhand")
    for number in range(1, MANY):
        os.link(first, tmp_path / f"{number:05d}.evenhand")
    facts, stamp = read_facts(first, 0.0), stamp_of(first.stat())
    cache = tmp_path / "index.json"
    made = RunIndex(folder=tmp_path, cache=cache)
    made._known = {f"{number:05d}.evenhand": (stamp, facts) for number in range(MANY)}
    made.save()
    monkeypatch.setattr(index_module, "read_facts", lambda path, _: pytest.fail(f"{path} is read"))
    found = RunIndex(folder=tmp_path, cache=cache)
    assert found.refresh()
    assert (len(found.entries), found.unread) == (MANY, 0)
    mine = Served.over(found)
    page = mine.get("/?page=100")
    assert page.text.count('name="run"') == 100
    assert "10,000 runs" in page.text
    assert "page 100 of 100" in page.text
    assert len(page.body) < MOST_OCTETS


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system with one run, and no room for anything else."""
    folder = tmp_path / "full"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", folder], check=True)
    recorded_folder(folder, ["campaign-v6"])
    with suppress(OSError), (folder / "filler").open("wb", buffering=0) as filler:
        while True:
            filler.write(b"x" * 4096)
    yield folder
    subprocess.run(["umount", folder], check=True)


@NEEDS_MOUNT
def test_on_a_full_disk_everything_is_shown_and_nothing_is_left(
    full_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the index nor a page needs room, whether the disk is that of the runs or of the cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(full_disk))
    index = RunIndex.of(full_disk)
    index.refresh(is_forced=True)
    index.save()
    mine = Served.over(index)
    for page in ("/", "/run/campaign-v6.evenhand", "/metrics", "/run/campaign-v6.evenhand/download/run"):
        assert mine.get(page).status == 200, page
    assert not [path for path in (full_disk / "evenhand").rglob("*") if path.is_file()]
    assert not cache_path(full_disk).exists()


@NEEDS_MOUNT
def test_a_copy_that_has_no_room_is_not_half_there(
    full_disk: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    followed = FollowedFolder.of("ssh:nowhere:runs", "evenhand")
    followed.copies.parent.mkdir(parents=True)
    followed.copies.symlink_to(full_disk)
    content = (full_disk / "campaign-v6.evenhand").read_bytes()
    with pytest.raises(OSError, match="No space") as refused:
        Follower(followed)._keep("new.evenhand", 1, content, len(content))
    assert refused.value.errno == errno.ENOSPC
    assert [path.name for path in full_disk.glob("*.evenhand")] == ["campaign-v6.evenhand"]
    assert not (full_disk / ".new.evenhand.part").exists()


@pytest.mark.parametrize("is_at_once", [True, False])
def test_a_file_that_is_replaced_while_it_is_read_is_one_or_the_other(
    tmp_path: Path, is_at_once: bool
) -> None:
    """By another file at once, or written over from its beginning: a page is that of a whole run, or says why
    it cannot be shown."""
    folder = tmp_path / "runs"
    folder.mkdir()
    sources = [copy_recorded(name, tmp_path / name) for name in ("campaign-v4", "campaign-v6")]
    path = folder / "a.evenhand"
    shutil.copy(sources[0], path)
    mine, over = Served.of(folder), threading.Event()

    def replace() -> None:
        while not over.wait(0.002):
            for source in sources:
                if is_at_once:
                    os.replace(shutil.copy(source, tmp_path / "part"), path)
                else:
                    shutil.copy(source, path)

    replacing = threading.Thread(target=replace)
    replacing.start()
    whole = 0
    try:
        for _ in range(5):
            mine.look()
            for page in ("/run/a.evenhand", "/api/runs/a.evenhand/export", "/metrics"):
                answer = mine.get(page)
                assert answer.status in ANSWERS, answer.text
                if page.startswith("/api") and answer.status == 200:
                    versions = {point["plan"] for point in answer.document["points"]}
                    assert len(versions) == 1
                    whole += 1
    finally:
        over.set()
        replacing.join()
    shutil.copy(sources[1], path)
    mine.look()
    assert mine.get("/api/runs/a.evenhand/export").status == 200
    assert whole or not is_at_once


def test_the_last_words_of_a_run_are_heard_though_they_come_between_two_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is never shown as killed because its file was looked at just before it ended."""
    path = copy_recorded("campaign-cut-short", tmp_path / "a.evenhand")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE sessions SET finished_at = NULL")
    path.touch()
    found = RunIndex(folder=tmp_path)
    with campaign_locked(path):
        found.refresh(is_forced=True)
    assert found.entries["a.evenhand"].state is RunState.RUNNING
    done = measure(tmp_path / "done")

    def has_ended(*_: object) -> bool:
        if done.exists():
            done.replace(path)
        return False

    monkeypatch.setattr(index_module, "is_being_measured", has_ended)
    found.refresh()
    assert [entry.state for entry in found.entries.values()] == [RunState.FINISHED]


def text(path: Path, sound: Path) -> None:
    path.write_text("not a database\n" * 100)


def cut(path: Path, sound: Path) -> None:
    path.write_bytes(sound.read_bytes()[: sound.stat().st_size // 2])


def noise(path: Path, sound: Path) -> None:
    content = bytearray(sound.read_bytes())
    content[5000:9000] = bytes(range(256)) * 16
    path.write_bytes(content[: sound.stat().st_size])


def altered(statement: str) -> Callable[[Path, Path], None]:
    """The sound one, after this statement."""

    def make(path: Path, sound: Path) -> None:
        shutil.copy(sound, path)
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.executescript(statement)

    return make


@pytest.mark.parametrize(
    "forge",
    [
        text,
        cut,
        noise,
        altered("DROP TABLE trials"),
        altered("UPDATE trials SET document = '{}'"),
        altered("UPDATE trials SET document = 'null', intended_fps = 1e308"),
        altered("UPDATE points SET frame_size = 'x'"),
        altered("UPDATE repetitions SET value = -1e308, result = '[]'"),
        altered("UPDATE run SET created_at = '9999-99-99', host = '[]'"),
        altered("UPDATE searches SET setup = '[' || hex(zeroblob(50000))"),
        altered("CREATE TRIGGER t AFTER INSERT ON trials BEGIN DELETE FROM trials; END"),
        altered("DELETE FROM run"),
    ],
)
def test_what_was_forged_is_refused_on_every_page_and_shown_as_unreadable_at_most(
    tmp_path: Path, forge: Callable[[Path, Path], None]
) -> None:
    sound = copy_recorded("campaign-v4", tmp_path / "sound.evenhand")
    forge(tmp_path / "forged.evenhand", sound)
    mine = Served.of(tmp_path)
    assert mine.get("/").status == 200
    assert {"sound.evenhand", "forged.evenhand"} == set(mine.index.entries)
    for page in (
        "/run/forged.evenhand",
        "/run/forged.evenhand/report",
        "/run/forged.evenhand/trial/1",
        "/api/runs/forged.evenhand",
        "/api/runs/forged.evenhand/charts",
        "/api/runs/forged.evenhand/status",
        "/run/forged.evenhand/download/csv",
        "/run/forged.evenhand/download/run",
        "/compare?run=sound.evenhand&run=forged.evenhand&anyway=1",
        "/trend?run=sound.evenhand&run=forged.evenhand&anyway=1",
    ):
        answer = mine.get(page)
        assert answer.status in ANSWERS, answer.text
        if page.startswith("/api") and answer.status != 200:
            assert json.loads(answer.body)["error"]["next"], page
    assert mine.get("/metrics").text.endswith("# EOF\n")
    assert mine.get("/run/sound.evenhand").status == 200
