# SPDX-License-Identifier: Apache-2.0
"""Files for people: never in the place of one that is there, and never through a link.

In a folder such as /tmp any user may have put a link under the name, and a tester often runs as root.
"""

from __future__ import annotations

import os
from pathlib import Path

from evenhand.errors import HostError, RequestError


def check_new(path: Path, *, where: str, what: str = "this file exists already, and is not overwritten") -> None:
    """RequestError if anything has this name, a link that leads nowhere too; to be asked before the work that fills the file."""
    if os.path.lexists(path):
        raise _taken(where, what)


def make_new(path: Path, *, where: str, what: str = "this file exists already, and is not overwritten") -> int:
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
        raise _unwritable(where, error) from error


def write_new(path: Path, content: bytes, *, where: str) -> None:
    """Make the file with this content; none is left behind that has only a part of it. Errors as in `make_new`."""
    descriptor = make_new(path, where=where)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise _unwritable(where, error) from error


def _taken(where: str, what: str) -> RequestError:
    return RequestError(what, where=where, next_step="Name another file.")


def _unwritable(where: str, error: OSError) -> HostError:
    return HostError(f"this file cannot be written: {error.strerror}", where=where, next_step="Name another file.")
