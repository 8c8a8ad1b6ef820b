# SPDX-License-Identifier: Apache-2.0
"""Station 7: the lines of an engine, read in a thread of their own, with limits: what an engine writes may
fill neither this machine's memory nor an hour. Some answer what was asked beside the request that runs: a
stop, its links."""

from __future__ import annotations

import json
import os
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from evenhand.base.errors import EngineError, EvenhandError, HostError
from evenhand.base.programs import ENGINE, find_program
from evenhand.base.validation.hostile_json import read_json
from evenhand.trial.reply_check import check_response

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


HALTED = "a signal has stopped its process"
LONGEST_HALT_S = 2.0
"""An engine that was stopped for less may go on: what the halt did to a trial, its counts say."""
LOOK_EVERY_S = 0.25
_STOPPED = "T"


class Halt:
    """For how long a process has been stopped, as it is seen by those who wait for it."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._seconds = 0.0

    def pass_by(self, seconds: float) -> None:
        """Look again, so long after the last time."""
        self._seconds = self._seconds + seconds if is_halted(self._pid) else 0.0

    def is_as_long_as(self, seconds: float) -> bool:
        return self._seconds >= seconds


def is_halted(pid: int) -> bool:
    """Whether that process is stopped, or one that it has started: the engine may have a wrapper."""
    return any(_state(each) == _STOPPED for each in (pid, *_descendants(pid)))


def signal_group(pid: int, number: signal.Signals) -> None:
    """Send a signal to all processes of a group; nothing if it is gone."""
    with suppress(ProcessLookupError):
        os.killpg(pid, number)


def take_line(
    lines: EngineLines,
    pid: int,
    request_name: str,
    timeout_s: float,
    on_silence: Callable[[float], None] | None = None,
) -> bytes | None:
    """See `EngineLines.take`. EngineError if a signal has stopped the process that writes them.

    Args:
        on_silence: Called now and then with how long nothing has come; it may raise why.
    """
    began_s = time.monotonic()
    until_s = began_s + timeout_s
    halt = Halt(pid)
    while True:
        left_s = until_s - time.monotonic()
        try:
            return lines.take(min(left_s, LOOK_EVERY_S))
        except queue.Empty:
            if left_s <= LOOK_EVERY_S:
                raise
        if on_silence is not None:
            on_silence(time.monotonic() - began_s)
        halt.pass_by(LOOK_EVERY_S)
        if halt.is_as_long_as(LONGEST_HALT_S):
            raise EngineError(
                f"a signal has stopped the engine's process ({pid})",
                code="trial.engine-halted",
                where=request_name,
                next_step="Find out what sends SIGSTOP to it (a debugger, a batch system, kill -STOP), then"
                " start again.",
            )


def ended_error(exit_code: int | None, last_words: str, request_name: str) -> EvenhandError:
    """The error for an engine that ended in the middle of a request.

    Args:
        exit_code: As `Popen.returncode`; None if it runs, but writes no more.
        last_words: What follows "the engine ended with exit code 1".
    """
    killed_by = signal.Signals(-exit_code).name if exit_code is not None and exit_code < 0 else ""
    if killed_by == signal.SIGXFSZ.name:
        return HostError(
            "the engine was ended because it may not create files as large as it needs",
            code="trial.file-size-limit",
            where="ulimit -f",
            next_step="Raise the limit for this shell: ulimit -f unlimited. The engine's memory is such"
            " a file.",
        )
    if killed_by == signal.SIGKILL.name:
        return EngineError(
            f"the engine ended by {killed_by}",
            code="trial.engine-ended",
            where=request_name,
            next_step="Something else on this machine killed it: `dmesg` says whether the kernel did, for"
            " want of memory.",
        )
    how = f"by {killed_by}" if killed_by else f"with exit code {exit_code}"
    if exit_code is None:
        how = "its output, but is still running"
    return EngineError(
        f"the engine ended {how}{last_words}",
        code="trial.engine-ended",
        where=request_name,
        next_step="Please report this with the engine's last lines.",
    )


def _state(pid: int) -> str:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return "".join(stat.rpartition(")")[2].split()[:1])


def _descendants(pid: int) -> Iterator[int]:
    try:
        found = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8").split()
    except OSError:
        return
    for child in map(int, found):
        yield child
        yield from _descendants(child)


CHECKOUT_ENGINE = ENGINE.checkout


def find_engine(
    option: Path | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    checkout_engine: Path = CHECKOUT_ENGINE,
) -> Path:
    """The engine named by `--engine`, else by EVENHAND_ENGINE, else the checkout's, else the one on PATH.

    Raises:
        HostError: There is none, or the one that was named cannot be run.
    """
    return find_program(replace(ENGINE, checkout=checkout_engine), option, environment=environment)


Document = dict[str, Any]


class AskedBeside:
    """Replies that somebody else waits for than whoever reads them, by the ids of their requests. For any
    thread."""

    def __init__(self, error_of: Callable[[Any], EvenhandError]) -> None:
        """
        Args:
            error_of: The error for a fault of the engine's.
        """
        self._error_of = error_of
        self._answers: dict[int, tuple[str, Future[Document]]] = {}

    def expect(self, request_id: int, name: str, answer: Future[Document]) -> None:
        """The answer gets the reply to this request."""
        self._answers[request_id] = (name, answer)

    def take(self, reply: Document) -> bool:
        """Hand over a reply, or the error that it is; False if nobody asked for it beside another request."""
        identity = reply.get("id")
        asked = self._answers.pop(identity, None) if type(identity) is int else None
        if asked is None:
            return False
        name, answer = asked
        try:
            if "fault" in reply:
                raise self._error_of(reply["fault"])
            if reply.get("response") != name:
                raise violated(f"the engine answered {reply.get('response')!r:.80}", name)
            try:
                check_response(name, reply)
            except (KeyError, TypeError, ValueError) as error:
                raise violated(f"the engine's answer violates the contract: {error}", name) from error
        except EvenhandError as error:
            answer.set_exception(error)
        else:
            answer.set_result(reply)
        return True
