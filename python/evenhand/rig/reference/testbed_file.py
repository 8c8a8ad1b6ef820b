# SPDX-License-Identifier: Apache-2.0
"""The testbed file of a router that runs: there as long as the router is, and never in the place of another
file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

from evenhand.base.errors import HostError, RequestError

DEFAULT_NAME = "reference-router.toml"


def check_place(path: Path | None) -> None:
    """RequestError if the file that the user named cannot become a new one; to be asked before a router
    starts."""
    if path is None:
        return
    if path.exists() or path.is_symlink():
        raise _taken(path)
    if not path.parent.is_dir():
        raise RequestError(
            f"the folder {path.parent} does not exist",
            code="rig.no-such-folder",
            where=str(path),
            next_step="Name a file in an existing folder.",
        )


@contextmanager
def written_testbed(path: Path | None, text: str, *, say: Callable[[str], None]) -> Iterator[Path]:
    """Write the file, and remove it at the end if it still is what was written.

    Args:
        path: What the user named. None: DEFAULT_NAME in this folder, or the next one like it that is free.
        say: Gets a line for people where the file has another name than usual, or stays.

    Raises:
        RequestError: The named file is there already.
        HostError: The file cannot be written.
    """
    file = _write(path, text)
    if path is None and file.name != DEFAULT_NAME:
        say(f"{DEFAULT_NAME} already exists and is not changed; the testbed file of this router is {file}.")
    try:
        yield file
    finally:
        # Another router's file has other sockets, so what is equal is ours.
        content = None
        with suppress(OSError):
            content = file.read_bytes()
        if content == text.encode():
            file.unlink(missing_ok=True)
        elif content is not None:
            say(
                f"{file} has been changed since this router wrote it, and is kept; the"
                " router that it names has ended."
            )


def _write(path: Path | None, text: str) -> Path:
    stem, suffix = Path(DEFAULT_NAME).stem, Path(DEFAULT_NAME).suffix
    names = (
        [path]
        if path is not None
        else (Path(DEFAULT_NAME if n == 1 else f"{stem}-{n}{suffix}") for n in count(1))
    )
    for file in names:
        try:
            descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        except FileExistsError:
            continue
        except OSError as error:
            raise _unwritable(file, error) from error
        try:
            with os.fdopen(descriptor, "wb") as opened:
                opened.write(text.encode())
        except OSError as error:
            file.unlink(missing_ok=True)
            raise _unwritable(file, error) from error
        return file
    assert path is not None
    raise _taken(path)


def _taken(path: Path) -> RequestError:
    return RequestError(
        "this file already exists, and is not overwritten",
        code="rig.file-exists",
        where=f"--testbed {path}",
        next_step="Name another file.",
    )


def _unwritable(path: Path, error: OSError) -> HostError:
    return HostError(
        f"the testbed file cannot be written: {error.strerror}",
        code="rig.file-not-writable",
        where=str(path),
        next_step="Give another name with --testbed.",
    )
