# SPDX-License-Identifier: Apache-2.0
"""Locks: held until the last process that has them ends, by whatever user, and never by a file that was left
behind."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from evenhand.base import locks
from evenhand.base.locks import Resource, holding
from tests.errors import raises

PORT = Resource(key="interface 1 eth1", label="interface eth1")
NOBODY = 65534
ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be two users")
_HOLDER = """
import os, sys
from pathlib import Path
from evenhand.base import locks
from evenhand.base.errors import HostError
user, root, shared = int(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])
if user != os.geteuid():
    os.setgroups([]); os.setresgid(user, user, user); os.setresuid(user, user, user)
os.environ.pop("XDG_RUNTIME_DIR", None)
locks.ROOT_FOLDER, locks.SHARED_FOLDERS = root, (shared,)
try:
    held = [locks.Resource(key="interface 1 eth1", label="interface eth1")]
    with locks.holding(held, where="lab.toml", next_step="Wait."):
        print("held", flush=True)
        sys.stdin.readline()
except HostError as error:
    print(error.what, flush=True)
"""


@pytest.fixture(autouse=True)
def folders(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, Path]]:
    """Folders of this test alone: (root's, that of all). Other users get into them."""
    folder = Path(tempfile.mkdtemp(prefix="locks-"))
    folder.chmod(0o755)
    root, shared = folder / "root", folder / "shared"
    root.mkdir(mode=0o755)
    shared.mkdir()
    shared.chmod(0o1777)
    monkeypatch.setattr(locks, "ROOT_FOLDER", root)
    monkeypatch.setattr(locks, "SHARED_FOLDERS", (shared,))
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    yield root, shared
    shutil.rmtree(folder)


@contextmanager
def other_process(
    folders: tuple[Path, Path], user: int | None = None
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process that tries to hold the port, and what came of it."""
    process = subprocess.Popen(
        [sys.executable, "-c", _HOLDER, str(os.geteuid() if user is None else user), *map(str, folders)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield process, process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()


def hold() -> ExitStack:
    with ExitStack() as stack:
        stack.enter_context(holding([PORT], where="lab.toml", next_step="Wait."))
        return stack.pop_all()


def test_what_one_process_holds_another_one_does_not_get_and_is_told_who_has_it(
    folders: tuple[Path, Path],
) -> None:
    with hold(), other_process(folders) as (_, said):
        assert said == f"interface eth1 is in use by process {os.getpid()}"
    with other_process(folders) as (_, said):
        assert said == "held"
    with hold():
        pass


def test_a_process_excludes_itself_too() -> None:
    with hold(), raises("base.in-use", match=f"process {os.getpid()}"):
        hold()
    with hold():
        pass


def test_a_file_that_was_left_behind_blocks_nobody(folders: tuple[Path, Path]) -> None:
    with other_process(folders) as (process, said):
        assert said == "held"
        process.kill()
        process.wait()
    with hold():
        pass


def test_the_engine_holds_on_for_a_tester_that_was_killed() -> None:
    """The lock is the open file's: who inherited it has it still."""
    with holding([PORT], where="", next_step="") as descriptors:
        engine = subprocess.Popen(["sleep", "60"], pass_fds=descriptors)
        path = next(locks._own_folder().iterdir())
        copy = path.with_suffix(".kept")
        copy.hardlink_to(path)  # as if this process had been killed, and had not removed it
    copy.rename(path)
    path.write_text("4194304")  # no process has this id
    try:
        with raises("base.in-use", match="engine of process 4194304;"):
            hold()
    finally:
        engine.kill()
        engine.wait()
    with hold():
        pass


@pytest.mark.root
@ROOT
def test_users_see_each_others_locks(folders: tuple[Path, Path]) -> None:
    with hold(), other_process(folders, NOBODY) as (_, said):
        assert said == f"interface eth1 is in use by process {os.getpid()} of user root"
    with other_process(folders, NOBODY) as (process, said):
        assert said == "held"
        with raises("base.in-use", match=f"process {process.pid} of user nobody"):
            hold()
        with other_process(folders, NOBODY - 1) as (_, seen):
            assert seen == f"interface eth1 is in use by process {process.pid} of user nobody"
    with hold():
        pass


@pytest.mark.root
@ROOT
def test_nobody_can_take_replace_or_pretend_another_users_lock(folders: tuple[Path, Path]) -> None:
    """A folder under somebody's name that is not theirs says nothing, and links are not followed."""
    root, shared = folders
    fake = shared / f"evenhand-{NOBODY - 1}"
    fake.mkdir()  # root's, with another user's name
    (fake / PORT.file_name).touch()
    with locks.lock_file(fake / PORT.file_name), hold():
        own = root / PORT.file_name
        assert own.stat().st_mode & 0o777 == 0o600
        assert root.stat().st_mode & 0o022 == 0
    victim = root.parent / "victim"
    victim.write_text("kept")
    (root / PORT.file_name).symlink_to(victim)
    with raises("base.not-lockable"):
        hold()
    assert victim.read_text() == "kept"
    (root / PORT.file_name).unlink()
    root.chmod(0o777)
    with raises("base.no-lock-folder"):
        hold()


def put(path: Path, what: str) -> None:
    """Something that is not a file."""
    match what:
        case "link":
            (path.parent / "target").write_text("kept")
            path.symlink_to(path.parent / "target")
        case "dangling link":
            path.symlink_to(path.parent / "nothing")
        case "folder":
            path.mkdir()
        case "FIFO":
            os.mkfifo(path)
        case "socket":
            with socket.socket(socket.AF_UNIX) as server:
                server.bind(str(path))


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("link", "a link to .*/target"),
        ("dangling link", "a link to .*/nothing"),
        ("folder", "a folder"),
        ("FIFO", "a FIFO"),
        ("socket", "a socket"),
    ],
)
def test_what_is_in_the_place_of_a_lock_is_named_and_stays(what: str, said: str) -> None:
    """`Too many levels of symbolic links. Make that folder writable` helped nobody."""
    path = locks._own_folder() / PORT.file_name
    put(path, what)
    with raises("base.not-lockable", match=f"interface eth1 cannot be locked: {said} is in") as refused:
        hold()
    assert refused.value.where == str(path)
    assert (
        refused.value.next_step
        == f"Remove it, then try again: {'rmdir' if what == 'folder' else 'rm'} {path}"
    )
    assert os.path.lexists(path)
    if what == "link":
        assert (path.parent / "target").read_text() == "kept"
    assert locks.locker(path) == "(unknown)"  # and nobody waits for a FIFO
    assert locks.holder_of(PORT) is None
    if what == "folder":
        path.rmdir()
    else:
        path.unlink()
    with hold():
        pass


@pytest.mark.root
@ROOT
def test_a_lock_that_root_left_in_a_users_folder_is_named(folders: tuple[Path, Path]) -> None:
    """As after a command under sudo that kept the user's environment."""
    own = folders[1] / f"evenhand-{NOBODY}"
    own.mkdir(mode=0o755)
    os.chown(own, NOBODY, NOBODY)
    (own / PORT.file_name).touch(mode=0o600)
    with other_process(folders, NOBODY) as (_, said):
        assert said == "interface eth1 cannot be locked: its lock is a file of user root"


@pytest.mark.root
@ROOT
def test_what_keeps_a_user_from_a_folder_for_locks_is_said(folders: tuple[Path, Path]) -> None:
    root, shared = folders
    (shared / f"evenhand-{NOBODY}").mkdir()
    with other_process(folders, NOBODY) as (_, said):
        assert said == (
            "there is no folder for locks that belongs only to this user:"
            f" {shared}/evenhand-{NOBODY} belongs to user root"
        )
    root.rmdir()
    for what, words in (("link", "is a link to"), ("FIFO", "is a FIFO")):
        put(root, what)
        with raises("base.no-lock-folder", match=words):
            hold()
        root.unlink()
    root.mkdir()
    root.chmod(0o777)
    with raises("base.no-lock-folder", match=r"can be written by others \(mode 0777\)"):
        hold()


def test_a_lock_is_waited_for_as_long_as_it_may_take(folders: tuple[Path, Path]) -> None:
    path = folders[0].parent / "waited.lock"
    with locks.lock_file(path), pytest.raises(BlockingIOError), locks.lock_file_within(path, 0.05):
        pass
    with ExitStack() as stack:
        stack.enter_context(locks.lock_file(path))
        timer = threading.Timer(0.2, stack.close)
        timer.start()
        with locks.lock_file_within(path, 30.0):
            assert locks.locker(path) == str(os.getpid())
        timer.join()
