# SPDX-License-Identifier: Apache-2.0
"""Exchange: a text file of another tester's, which anyone may have sent: read within bounds, and never more
than read."""

from __future__ import annotations

import os
import stat
import unicodedata
from pathlib import Path

from evenhand.base.errors import RequestError

_SHOWN = 60
# Categories of characters that are not for people, or would turn the order of a line.
_NO_TEXT = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


def read_foreign(path: Path, *, most_octets: int, what: str) -> str:
    """The text of the file, with line ends of one kind.

    Args:
        most_octets: A longer file is refused, before it is read.
        what: What the file should be, such as "siitperf.conf".

    Raises:
        RequestError: It cannot be read, is not a plain file, is too long, or is not UTF-8 text.
    """
    try:
        # Without O_NONBLOCK the opening of a pipe would wait for its writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
        with os.fdopen(descriptor, "rb") as file:
            is_regular = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
            content = file.read(most_octets + 1) if is_regular else b""
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise RequestError(
            f"this file cannot be read: {reason}",
            code="exchange.file-not-readable",
            where=shown(str(path)),
            next_step=f"Name a {what}.",
        ) from error
    refuse_if(
        (
            not is_regular,
            RequestError(
                "this is not a regular file",
                code="exchange.not-a-file",
                where=str(path),
                next_step=f"Name a {what}.",
            ),
        ),
        (
            len(content) > most_octets,
            RequestError(
                f"this file is larger than {most_octets:,} octets",
                code="exchange.file-too-large",
                where=str(path),
                next_step=f"Name a {what}; such files are smaller.",
            ),
        ),
    )
    try:
        text = content.decode().removeprefix("\ufeff").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise RequestError(
            "this file is not UTF-8 text",
            code="exchange.not-text",
            where=str(path),
            next_step=f"Name a {what}.",
        ) from error
    for number, line in enumerate(text.split("\n"), 1):
        if any(unicodedata.category(character) in _NO_TEXT for character in line if character != "\t"):
            raise RequestError(
                "the file contains characters that text files do not have",
                code="exchange.not-text",
                where=f"{path}, line {number}",
                next_step="Remove them, or name another file.",
            )
    return text


def refuse_if(*checks: tuple[object, RequestError]) -> None:
    """Raise the first of these errors whose condition holds."""
    for holds, error in checks:
        if holds:
            raise error


def shown(text: str) -> str:
    """As much of a stranger's text as fits into an error, with nothing that acts on a terminal."""
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "...")
