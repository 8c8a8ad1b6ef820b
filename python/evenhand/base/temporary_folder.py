# SPDX-License-Identifier: Apache-2.0
"""Temporary folders: of a router that runs, with its sockets, and others. What killed processes left behind
is removed by the next."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

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
