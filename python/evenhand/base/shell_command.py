# SPDX-License-Identifier: Apache-2.0
"""A command of the user's: it has a time, and a group of processes that ends with it."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import IO

from evenhand.base.signals import uninterrupted

MOST_OUTPUT_OCTETS = 64 * 1024
"""Octets of a command's output that are kept; what comes after is read and thrown away."""
TERMINATE_S = 2.0
"""Seconds between SIGTERM and SIGKILL."""
DRAIN_S = 1.0
"""Seconds to read on after the command has ended: a daemon that it started may keep its output open for
ever."""
_CUT = "\n[... cut after 64 KiB]"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandEnd:
    """How a command ended."""

    exit_code: int | None
    """Negative: minus the signal that ended it. None: it took too long, and was ended."""
    output: str
    """All that it printed, errors among it."""
    duration_s: float
    """Seconds until it had ended."""


def run_shell_command(
    command: str, *, timeout_s: float, environment: Mapping[str, str] | None = None
) -> CommandEnd:
    """Run it with /bin/sh, with what `environment` adds to this process's own, and wait for its end.

    A command that takes longer is ended, with all that it started; so it is by Ctrl-C or SIGTERM, which go on
    from here.
    """
    began = time.monotonic()
    output = bytearray()
    process: subprocess.Popen[bytes] | None = None
    exit_code: int | None = None
    try:
        # Who presses Ctrl-C before the process is known here would leave it behind.
        with uninterrupted():
            process = subprocess.Popen(
                ["/bin/sh", "-c", command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, **(environment or {})},
            )
            assert process.stdout is not None
            reader = threading.Thread(target=_read, args=(process.stdout, output), daemon=True)
            reader.start()
        exit_code = process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        assert process is not None
        _end(process)
    except BaseException:
        if process is not None:
            _end(process)
        raise
    duration_s = time.monotonic() - began
    reader.join(DRAIN_S)
    text = bytes(output[:MOST_OUTPUT_OCTETS]).decode(errors="replace") + (
        _CUT if len(output) > MOST_OUTPUT_OCTETS else ""
    )
    return CommandEnd(exit_code=exit_code, output=text, duration_s=duration_s)


def _read(stream: IO[bytes], output: bytearray) -> None:
    # One octet more than is kept shows that there was more.
    while chunk := stream.read1(65536):  # type: ignore[attr-defined]
        output += chunk[: MOST_OUTPUT_OCTETS + 1 - len(output)]


def _end(process: subprocess.Popen[bytes]) -> None:
    """The whole group, also where its first process has ended already, and where a second Ctrl-C comes
    meanwhile."""
    try:
        with suppress(ProcessLookupError, subprocess.TimeoutExpired):
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(TERMINATE_S)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()
