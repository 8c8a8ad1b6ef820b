# SPDX-License-Identifier: Apache-2.0
"""Station 7: how the process of an engine ended, and whether a signal (SIGSTOP) has stopped it: then it
answers nothing, and does not end."""

from __future__ import annotations

import os
import queue
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from evenhand.base.errors import EngineError, EvenhandError, HostError
from evenhand.trial.engine_lines import EngineLines

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


def take_line(lines: EngineLines, pid: int, request_name: str, timeout_s: float) -> bytes | None:
    """See `EngineLines.take`. EngineError if a signal has stopped the process that writes them."""
    until_s = time.monotonic() + timeout_s
    halt = Halt(pid)
    while True:
        left_s = until_s - time.monotonic()
        try:
            return lines.take(min(left_s, LOOK_EVERY_S))
        except queue.Empty:
            if left_s <= LOOK_EVERY_S:
                raise
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
            next_step="Something else on this host killed it: `dmesg` says whether the kernel did, for"
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
