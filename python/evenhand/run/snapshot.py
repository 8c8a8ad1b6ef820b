# SPDX-License-Identifier: Apache-2.0
"""Station 9: a run file as it is at one moment, copied into memory unless it is large. The file, and what
lies beside it, are never changed.

Run files come by mail. SQLite itself is careful with a database that is broken, but what lies beside one it
trusts: it rolls a journal back into the file, deletes the "super-journal" that the journal names, whatever
file that is, and makes files of its own for a write-ahead log. So none of these is left to it in the folder
where the file lies. A memory copy also keeps no lock while a reader thinks: who measures and writes at the
same time is never made to wait.
"""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import stat
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from evenhand.base.errors import EvenhandError, HostError, RequestError
from evenhand.base.folders import temporary_folder
from evenhand.run.run_file import SUFFIX

MAX_FILE_BYTES = 2**30
"""Largest size of a file that is copied into memory, and of its journal: some 35,000 trials."""
MAX_BYTES_IN_PLACE = 2**32
"""Largest size of a file that is read where it lies."""
COPIED_BYTES = 2**24
"""Largest size of a file that `open_as_it_is` copies."""
_NEXT = f"Name a run file (*{SUFFIX})."
_MAGIC = b"SQLite format 3\0"
_NO_FILE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
_HEADER_BYTES = 100
_ROLLBACK_JOURNAL = b"\1\1"
"""Octets 18 and 19 of the header; 2 is a write-ahead log."""
_JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")
_BUSY_S = 5.0
_ATTEMPTS = 5


def not_a_run(path: Path, why: str) -> RequestError:
    """What is said of every file that is none."""
    return RequestError(
        f"this file is not a run of Evenhand: {why}", code="run.not-a-run", where=str(path), next_step=_NEXT
    )


def copy_to_memory(path: Path) -> sqlite3.Connection:
    """The database as it was when it was last committed. A journal that a killed writer left is rolled back,
    in a copy of both.

    Not for a process that is within a transaction on the same file: as with every reader but SQLite's own,
    its lock would be lost.

    Raises:
        RequestError: There is no such file, or it is not a database that Evenhand can have written.
        HostError: It cannot be read, or it is being written for longer than a reader waits.
    """
    return _open(path, _Sizes(most=MAX_FILE_BYTES, most_copied=MAX_FILE_BYTES))


def open_as_it_is(path: Path) -> sqlite3.Connection:
    """The same, but a large database is not copied: it is the file itself, in a transaction that writers wait
    for."""
    return _open(path, _Sizes(most=MAX_BYTES_IN_PLACE, most_copied=COPIED_BYTES))


@dataclass(frozen=True, slots=True)
class _Sizes:
    """In octets."""

    most: int
    most_copied: int

    def check(self, path: Path, size: int) -> None:
        if size > self.most:
            raise not_a_run(path, f"it has {size} octets, but at most {self.most} are read")


def _open(path: Path, sizes: _Sizes) -> sqlite3.Connection:
    try:
        path = _find(path)
        _check_header(path, sizes)
        if os.path.lexists(_beside(path, "-wal")):
            raise not_a_run(path, f"there is a {path.name}-wal beside it, which Evenhand never creates")
        try:
            return _take(path, "ro", sizes)
        except sqlite3.OperationalError as error:
            if getattr(error, "sqlite_errorcode", None) != sqlite3.SQLITE_READONLY_ROLLBACK:
                raise
        return _take_rolled_back(path, sizes)
    except sqlite3.OperationalError as error:
        raise HostError(
            f"this file cannot be read: {error}",
            code="run.file-not-readable",
            where=str(path),
            next_step="If it is being written, try again; otherwise check its permissions.",
        ) from error
    except (sqlite3.Error, ValueError) as error:
        raise not_a_run(path, str(error)) from error
    except EvenhandError:
        raise
    except OSError as error:
        raise HostError(
            f"this file cannot be read: {error.strerror}",
            code="run.file-not-readable",
            where=str(path),
            next_step="Check its permissions.",
        ) from error


def _find(path: Path) -> Path:
    """The file itself, where the name is a link. What is not an ordinary file is refused: a FIFO would never
    end."""
    try:
        found = path.resolve(strict=True)
        mode = found.stat().st_mode
    except (
        OSError,
        RuntimeError,
        ValueError,
    ) as error:  # RuntimeError: links in a circle, before Python 3.13; ValueError: a NUL
        if isinstance(error, OSError) and error.errno not in _NO_FILE:
            raise
        raise RequestError(
            "this file does not exist", code="run.no-such-file", where=str(path), next_step=_NEXT
        ) from None
    if not stat.S_ISREG(mode):
        raise RequestError(
            "this is not a regular file", code="run.not-a-file", where=str(path), next_step=_NEXT
        )
    return found


def _check_header(path: Path, sizes: _Sizes) -> None:
    with path.open("rb") as file:
        header = file.read(_HEADER_BYTES)
        size = os.fstat(file.fileno()).st_size
    if len(header) < _HEADER_BYTES or not header.startswith(_MAGIC):
        raise not_a_run(path, "it is not a database")
    if header[18:20] != _ROLLBACK_JOURNAL:
        raise not_a_run(path, "it has a write-ahead log, which Evenhand never uses")
    sizes.check(path, size)


def _take(path: Path, mode: str, sizes: _Sizes) -> sqlite3.Connection:
    """`mode`: ro, or rw to have a journal rolled back. As a URI, quoted: a name with #, ? or % is that
    name."""
    journal = _beside(path, "-journal")
    if os.path.lexists(journal) and not stat.S_ISREG(journal.lstat().st_mode):
        raise not_a_run(path, f"{journal.name} beside it is not a regular file")
    # Trials of a large file are read later, by whichever thread shows them.
    source = sqlite3.connect(
        f"{path.as_uri()}?mode={mode}",
        uri=True,
        isolation_level=None,
        timeout=_BUSY_S,
        check_same_thread=False,
    )
    with ExitStack() as stack:
        stack.callback(source.close)
        # The lock first: `backup` would wait for it for ever.
        source.execute("BEGIN")
        (pages,) = source.execute("PRAGMA page_count").fetchone()
        (page_octets,) = source.execute("PRAGMA page_size").fetchone()
        sizes.check(path, pages * page_octets)
        if pages * page_octets > sizes.most_copied:
            stack.pop_all()
            return source
        memory = sqlite3.connect(":memory:", isolation_level=None)
        try:
            source.backup(memory)
        except BaseException:
            memory.close()
            raise
    return memory


def _take_rolled_back(path: Path, sizes: _Sizes) -> sqlite3.Connection:
    """A writer was killed. It rolls back itself when it goes on; a reader does it in copies."""
    journal = _beside(path, "-journal")
    for _ in range(_ATTEMPTS):
        with temporary_folder() as folder:
            before = _stamp(journal)
            copies = [folder / f"run{SUFFIX}", folder / f"run{SUFFIX}-journal"]
            for original, copy in zip((path, journal), copies, strict=True):
                with original.open("rb") as file:
                    sizes.check(path, os.fstat(file.fileno()).st_size)
                    with copy.open("xb") as target:
                        shutil.copyfileobj(file, target)
            # Half of it may have been rolled back by then: rolling back the whole once more makes the same of
            # it.
            if before is not None and before == _stamp(journal):
                _check_journal(path, copies[1], sizes)
                return _take(copies[0], "rw", sizes)
    raise HostError(
        "this file is being written continuously",
        code="run.file-being-written",
        where=str(path),
        next_step="Try again.",
    )


def _stamp(journal: Path) -> tuple[int, int, int] | None:
    try:
        facts = journal.lstat()
    except FileNotFoundError:
        return None
    return facts.st_ino, facts.st_size, facts.st_mtime_ns


def _check_journal(path: Path, journal: Path, sizes: _Sizes) -> None:
    """Refused: one that names a super-journal, which SQLite would open and delete, and one that would make
    the file grow without end."""
    content = journal.read_bytes()
    if content.endswith(_JOURNAL_MAGIC):
        raise not_a_run(path, f"{path.name}-journal beside it belongs to more than one file")
    pages, page_octets = (int.from_bytes(content[at : at + 4], "big") for at in (16, 24))
    sizes.check(path, pages * page_octets)


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)
