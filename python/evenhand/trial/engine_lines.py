# SPDX-License-Identifier: Apache-2.0
"""Station 7: the lines of an engine, read in a thread of their own, with limits: what an engine writes may
fill neither this host's memory nor an hour."""

from __future__ import annotations

import json
import queue
import threading
from typing import IO, Any

from evenhand.base.errors import EngineError
from evenhand.base.validation.hostile_json import read_json

MOST_LINE_OCTETS = 64 << 20
"""Octets of one line. The longest that an engine has to write is a trial's result with as many tags as can be
asked for, of about half this length."""
MOST_WAITING = 16
"""Lines that wait to be read; an engine that writes more waits itself, and so writes no event while it
does."""
STORED = frozenset({"trial", "judge"})
"""Requests whose answers go to a run file."""
LONGEST_WORDS = 4096
"""Octets of a line for people that are kept."""


class EngineLines:
    """The lines that an engine writes to one stream. The stream is read until it ends or breaks a limit."""

    def __init__(self, stream: IO[bytes]) -> None:
        # Queues written in C: a signal that ends a wait for one leaves no lock of Python's half taken.
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._room: queue.SimpleQueue[None] = queue.SimpleQueue()  # an item for each line that may still wait
        for _ in range(MOST_WAITING):
            self._room.put(None)
        self._is_closed = False
        self.is_too_long = False
        """Whether the stream ended here because of a line without an end."""
        self._thread = threading.Thread(target=self._read, args=(stream,), daemon=True)
        self._thread.start()

    def take(self, timeout_s: float) -> bytes | None:
        """The next line; None at the end, also when asked again. queue.Empty if none comes in time."""
        line = self._lines.get(timeout=max(0.0, min(timeout_s, threading.TIMEOUT_MAX)))
        if line is None:
            self._lines.put(None)
        else:
            self._room.put(None)
        return line

    def close(self, wait_s: float) -> None:
        """Nobody takes lines any more: the engine is not held up by them."""
        self._is_closed = True
        self._thread.join(wait_s)

    def _read(self, stream: IO[bytes]) -> None:
        while line := stream.readline(MOST_LINE_OCTETS):
            if len(line) == MOST_LINE_OCTETS and not line.endswith(b"\n"):
                self.is_too_long = True
                break
            if line.strip():
                self._keep(line)
        self._keep(None)
        while self.is_too_long and stream.read(1 << 16):
            pass  # or the engine could not end

    def _keep(self, line: bytes | None) -> None:
        while not self._is_closed:
            try:
                self._room.get(timeout=0.1)
            except queue.Empty:
                continue
            self._lines.put(line)
            return


def parse_line(line: bytes, request_name: str) -> dict[str, Any]:
    """EngineError if that is not a JSON document, for whatever reason."""
    try:
        document = read_json(line.decode(), is_stored=request_name in STORED)
    except json.JSONDecodeError as error:
        raise violated(f"the engine wrote a line that is not JSON: {shown(line)}", request_name) from error
    except ValueError as error:
        raise violated(
            f"the engine wrote a line that is not JSON, or beyond its bounds ({error!s:.120}): {shown(line)}",
            request_name,
        ) from error
    if not isinstance(document, dict):
        raise violated(f"the engine wrote a line that is not a document: {shown(line)}", request_name)
    return document


def shown(line: bytes) -> str:
    """Its beginning, for people."""
    return repr(line[:200].decode(errors="replace"))


def violated(what: str, request_name: str) -> EngineError:
    """What an engine did that the contract does not allow."""
    return EngineError(
        what,
        code="trial.contract-violated",
        where=request_name,
        next_step="Install the engine of the same version again. If it happens again, report it with this"
        " message.",
    )
