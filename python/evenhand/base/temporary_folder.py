# SPDX-License-Identifier: Apache-2.0
"""Temporary folders: of a router that runs, with its sockets, and others. What killed processes left behind
is removed by the next."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX = "evenhand-"
LOCK = "in-use"
"""A file that its owner holds a lock on. The kernel drops the lock of a killed process by itself."""


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder that nobody else has, until the block ends."""
    _sweep()
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
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


def _sweep() -> None:
    """Remove folders of this user whose lock nobody holds. Without a lock file it is not known whose a folder
    is: it stays."""
    with os.scandir(tempfile.gettempdir()) as entries:
        folders = [
            Path(e.path) for e in entries if e.name.startswith(PREFIX) and e.is_dir(follow_symlinks=False)
        ]
    for folder in folders:
        with suppress(
            OSError
        ):  # another sweeper was faster, or it is another user's, or somebody holds the lock
            if folder.lstat().st_uid != os.geteuid():
                continue
            descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder)
            finally:
                os.close(descriptor)
