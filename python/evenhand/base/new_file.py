# SPDX-License-Identifier: Apache-2.0
"""Files for people: never in the place of one that is there, and never through a link.

In a folder such as /tmp any user may have put a link under the name, and a tester often runs as root.
"""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path
from secrets import token_hex

from evenhand.base.errors import HostError, RequestError


def real_path(path: Path) -> Path:
    """The file behind all links; for links in a circle, a path that leads nowhere. `Path.resolve` of Python
    before 3.13 makes a RuntimeError of them."""
    return Path(os.path.realpath(path))


def check_new(
    path: Path, *, where: str, what: str = "this file already exists, and is not overwritten"
) -> None:
    """RequestError if anything has this name, a link that leads nowhere too; to be asked before the work that
    fills the file."""
    if os.path.lexists(path):
        raise _taken(where, what)


def make_new(
    path: Path, *, where: str, what: str = "this file already exists, and is not overwritten"
) -> int:
    """Make the file, empty; gives its descriptor.

    Raises:
        RequestError: Anything has this name.
        HostError: It cannot be made.
    """
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    except FileExistsError:
        raise _taken(where, what) from None
    except OSError as error:
        raise unwritable(where, error) from error


def write_new(path: Path, content: bytes, *, where: str) -> None:
    """Make the file with this content; none is left behind that has only a part of it. Errors as in
    `make_new`."""
    descriptor = make_new(path, where=where)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise unwritable(where, error) from error


def is_disk_full(error: OSError) -> bool:
    """Whether the disk or this user's quota of it is full: another name in the same folder does not help."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def check_replaceable(path: Path, *, mark: re.Pattern[bytes], where: str) -> None:
    """Errors as in `replace_own`, before the work that makes the content."""
    try:
        _check_own(path, mark=mark, where=where)
        probe = path.with_name(f".evenhand-{token_hex(8)}")
        os.close(os.open(probe, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666))
        probe.unlink()
    except OSError as error:
        raise unwritable(where, error) from error


def replace_own(path: Path, content: bytes, *, mark: re.Pattern[bytes], where: str) -> None:
    """Make the file, or put it in the place of an older one of the same kind; a reader sees the old one or
    the new one, never a part.

    Args:
        mark: Files that may be replaced begin so, and so does the content.

    Raises:
        RequestError: Something else has this name: a file without the mark, a link, a folder.
        HostError: The file cannot be written.
    """
    assert mark.match(content[:_HEAD])
    fresh: Path | None = None
    try:
        _check_own(path, mark=mark, where=where)
        # In the same folder, since a name moves within a file system only.
        new = path.with_name(f".evenhand-{token_hex(8)}")
        descriptor = os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        fresh = new
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        fresh.replace(path)
    except OSError as error:
        raise unwritable(where, error) from error
    finally:
        if fresh is not None:  # after an error; the new name is gone otherwise
            fresh.unlink(missing_ok=True)


_HEAD = 1024


def _check_own(path: Path, *, mark: re.Pattern[bytes], where: str) -> None:
    if os.path.lexists(path) and (path.is_symlink() or not path.is_file() or mark.match(_head(path)) is None):
        raise _taken(where, "this name is already in use, and what has it is not overwritten")


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_HEAD)


def _taken(where: str, what: str) -> RequestError:
    return RequestError(what, code="base.file-exists", where=where, next_step="Name another file.")


def unwritable(where: str, error: OSError) -> HostError:
    """What to say of a file that cannot be written."""
    next_step = (
        "Free some space on its disk, or name a file on another disk."
        if is_disk_full(error)
        else "Name another file."
    )
    return HostError(
        f"this file cannot be written: {error.strerror}",
        code="base.file-not-writable",
        where=where,
        next_step=next_step,
    )
