# SPDX-License-Identifier: Apache-2.0
"""stdout and stderr that report when they cannot be written: a pipe whose reader has gone, a full disk, a
closed descriptor.

Python, Rich and Typer each have an answer of their own to such an error, and all of them end with 1, which is
an answer of `plan prove`.
"""

from __future__ import annotations

import errno
import io
import os
import sys

from evenhand.base.errors import OutputError

BROKEN_PIPE = 141
"""Exit code that a shell reports of a program that SIGPIPE ended."""


class _Out(io.FileIO):
    """No OSError leaves it, so no one else takes it for theirs."""

    is_dropped = False
    """What still comes is thrown away."""

    def write(self, content: object, /) -> int | None:  # type: ignore[override]
        if self.is_dropped:
            return memoryview(content).nbytes  # type: ignore[arg-type]
        try:
            return super().write(content)  # type: ignore[arg-type]
        except OSError as error:
            raise OutputError(
                f"the output cannot be written: {error.strerror}",
                code="cli.output-not-writable",
                where="stdout",
                next_step="Free some space there, or send the output elsewhere. The files of --run and other"
                " options are complete.",
                is_closed_pipe=error.errno == errno.EPIPE,
            ) from error


class _Notes(io.FileIO):
    """Progress and notes: no result is lost because no one reads them."""

    def write(self, content: object, /) -> int | None:  # type: ignore[override]
        try:
            return super().write(content)  # type: ignore[arg-type]
        except OSError:
            return memoryview(content).nbytes  # type: ignore[arg-type]


def guard() -> None:
    """Put both in place of Python's."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            # Closed by whoever called: without this the next file that is opened, a run say, would have the
            # number, and be written into.
            os.open(os.devnull, os.O_RDONLY)
    sys.stdout = _text(_Out(1, "wb", closefd=False))
    sys.stderr = _text(_Notes(2, "wb", closefd=False))


def drop() -> None:
    """What stdout still holds has no place to go: at its end Python would try it once more, and from 3.13 on
    show a trace."""
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    if isinstance(raw, _Out):
        raw.is_dropped = True
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115  (until the process ends)


def _text(raw: io.FileIO) -> io.TextIOWrapper:
    """Escapes what the terminal's encoding lacks."""
    old = sys.stderr if raw.fileno() == 2 else sys.stdout
    encoding = getattr(old, "encoding", None) or "utf-8"
    is_notes = raw.fileno() == 2
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=encoding,
        errors="backslashreplace",
        line_buffering=is_notes or raw.isatty(),
        write_through=is_notes,
    )
