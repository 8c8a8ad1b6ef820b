# SPDX-License-Identifier: Apache-2.0
"""Temporary folders: of a router that runs, with its sockets, and others. What killed processes left behind
is removed by the next."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from ipaddress import ip_interface
from pathlib import Path
from typing import Any

from evenhand.base.errors import HostError

PREFIX = "evenhand-"
LOCK = "in-use"
"""A file that its owner holds a lock on. The kernel drops the lock of a killed process by itself."""
SHORT_FOLDERS = (Path("/tmp"), Path("/dev/shm"))
"""Used where TMPDIR does not suit sockets: a home, a build's or a job's folder may be long."""
_LONGEST_SOCKET_OCTETS = 107
_LONGEST_NAME_OCTETS = 44
"""Length of a folder's name made here, with its slashes, and of a socket's name in it. `ssh` adds 17 octets
to its socket's."""
_IN_A_DEVICE = re.compile(r"[^-][^\s,=()\[\]\\'\"]*")
"""Paths that DPDK's device strings can contain."""


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder of this process alone, until the block ends. Sockets in it have paths that the kernel and DPDK
    accept.

    Raises:
        HostError: There is no place for one.
    """
    parent = _parent()
    _sweep(parent)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
    descriptor = None
    try:
        # Locked before it has its name: a sweeper never sees it free.
        unnamed = folder / f"{LOCK}.new"
        descriptor = os.open(unnamed, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        unnamed.rename(folder / LOCK)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if descriptor is not None:
            os.close(descriptor)


def _parent() -> Path:
    wanted = Path(tempfile.gettempdir())
    for parent in (wanted, *SHORT_FOLDERS):
        is_short = len(os.fsencode(parent)) + _LONGEST_NAME_OCTETS <= _LONGEST_SOCKET_OCTETS
        if is_short and _IN_A_DEVICE.fullmatch(str(parent)) and os.access(parent, os.W_OK | os.X_OK):
            return parent
    raise HostError(
        f"the path of {wanted} is too long for sockets, or has characters that DPDK does not accept in one",
        code="base.temporary-path-unusable",
        where="TMPDIR",
        next_step="Set TMPDIR to a folder with a short, plain path.",
    )


def _sweep(parent: Path) -> None:
    """Remove folders of this user whose lock no one holds. Without a lock file it is not known whose a folder
    is: it stays."""
    with os.scandir(parent) as entries:
        folders = [
            Path(e.path) for e in entries if e.name.startswith(PREFIX) and e.is_dir(follow_symlinks=False)
        ]
    for folder in folders:
        with suppress(
            OSError
        ):  # another sweeper was faster, or it is another user's, or someone holds the lock
            if folder.lstat().st_uid != os.geteuid():
                continue
            descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder)
            finally:
                os.close(descriptor)


def state_file(name: str) -> Path:
    """The file of this name in $XDG_STATE_HOME/evenhand, by default below ~/.local/state."""
    state = os.environ.get("XDG_STATE_HOME")
    return (Path(state) if state else Path(os.path.expanduser("~/.local/state"))) / "evenhand" / name


def read_state(path: Path, *, version: int, key: str) -> Any:
    """The value under this key of a document of this version; None if it is not there, or cannot be read."""
    try:
        if not path.is_file():  # a FIFO would be waited for
            return None
        document = json.loads(path.read_text(encoding="utf-8"))
        return document[key] if document["version"] == version else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def replace_state(path: Path, document: Any) -> None:
    """Whole or not at all, also when two commands end at once. OSError if it cannot be written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}-")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(document, file)
        os.replace(name, path)
    except OSError:
        os.unlink(name)
        raise


AS_WRITTEN = "facts"
"""The key of what the user writes to be published: a slash in it does not mark a folder."""
_PART = re.compile(r"(?:(?<=[,=])|^)[^,=]*(?<!\bGNU)/[^,]*")
"""What has a slash, from the start, a comma or an equals sign to the next comma: a whole text, or a value in
a device's arguments. The slash of GNU/Linux does not mark a folder."""
_FOLDER = re.compile(r"(?<!\bGNU)/")
_PREFIX = re.compile(r"(?<![\w./])[0-9a-fA-F:.]{1,45}(/)[0-9]{1,3}(?![\w./])")
_SHARE = re.compile(r"[0-9]{1,3}/[0-9]{1,3}")
"""Share of two plans in a mix."""


def without_folders(value: Any) -> Any:
    """The value, with every text in it, however deep, cut to file names: `socket=/tmp/evenhand-x/left.sock`
    to `socket=left.sock`.

    Addresses with a prefix length have a slash too, and stay, also in `siit@2001:db8::/40`; and a share,
    90/10.
    """
    match value:
        case str():
            return _PART.sub(lambda part: _cut(part[0]), value)
        case dict():
            return {key: item if key == AS_WRITTEN else without_folders(item) for key, item in value.items()}
        case list() | tuple():
            return [without_folders(item) for item in value]
        case _:
            return value


_QUOTED = re.compile(r"'((?:~|\.{1,2})?/[^'\n]*)'")
_WORD = re.compile(r"[^\s'\"()<>\[\]{},;=|]+")
_IN_FOLDER = re.compile(r"(?:~[^/]*|\.{1,2})?/.*[^/].*|(?!.*://).*\.[A-Za-z][A-Za-z0-9]{0,9}(?::\d+)*")
_OF_THE_KERNEL = ("/proc/", "/sys/")


def sentence_without_folders(text: str) -> str:
    """A sentence, such as the reason of an error or what a program printed, with each path in it cut to its
    file name. A path is what begins with a slash, `~`, `./` or `../`, and any other word with a slash whose
    end looks like a file's (`customers/acme/mine.toml`): `and/or` stays, and so do the kernel's own files,
    which are the same on every host."""
    text = _QUOTED.sub(lambda found: f"'{_cut(found[1])}'", text)
    return _WORD.sub(lambda found: _cut_word(found[0]), text)


def _cut_word(word: str) -> str:
    path = word.rstrip(".:!?")
    if "/" not in path or path.startswith(_OF_THE_KERNEL) or not _IN_FOLDER.fullmatch(path):
        return word
    return f"{_cut(path)}{word[len(path) :]}"


def _cut(text: str) -> str:
    """What is behind the last slash of a folder."""
    if _SHARE.fullmatch(text):
        return text
    of_prefixes = {found.start(1) for found in _PREFIX.finditer(text) if _is_prefix(found[0])}
    text = text.rstrip("/")
    return text[max((s.end() for s in _FOLDER.finditer(text) if s.start() not in of_prefixes), default=0) :]


def _is_prefix(text: str) -> bool:
    try:
        ip_interface(text)
    except ValueError:
        return False
    return True
