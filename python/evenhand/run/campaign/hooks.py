# SPDX-License-Identifier: Apache-2.0
"""Campaign: the user's own commands before and after a point or a suite. Each has a time, and a group of
processes that ends with it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import IO

from evenhand.base.units import format_duration
from evenhand.run.campaign_record import HookRun
from evenhand.spec.point import Point

MOST_OUTPUT_OCTETS = 64 * 1024
"""Of a command are kept; what comes after is read and thrown away."""
TERMINATE_S = 2.0
"""Between SIGTERM and SIGKILL."""
DRAIN_S = 1.0
"""After the command has ended: a daemon that it started may keep its output open for ever."""
MOST_SHOWN = 600
"""Characters of what a failed command printed."""
_ERROR = re.compile(r"(?:\S+: )?(?:error|fatal)\b", re.IGNORECASE)
"""`Error: ...`, as this and other programs begin; `fatal: ...`; `ssh: error ...`."""
_CUT = "\n[... cut after 64 KiB]"


def run_hook(command: str, *, when: str, timeout_s: float, environment: Mapping[str, str]) -> HookRun:
    """Run it with /bin/sh, with what `environment` adds to this process's own, and wait for its end.

    A command that takes longer is ended, with all that it started; so it is by Ctrl-C or SIGTERM, which go on
    from here.
    """
    began = time.monotonic()
    process = subprocess.Popen(
        ["/bin/sh", "-c", command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        env={**os.environ, **environment},
    )
    assert process.stdout is not None
    output = bytearray()
    reader = threading.Thread(target=_read, args=(process.stdout, output), daemon=True)
    reader.start()
    exit_code: int | None = None
    try:
        exit_code = process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        _end(process)
    except BaseException:
        _end(process)
        raise
    reader.join(DRAIN_S)
    text = bytes(output[:MOST_OUTPUT_OCTETS]).decode(errors="replace") + (
        _CUT if len(output) > MOST_OUTPUT_OCTETS else ""
    )
    return HookRun(
        when=when, command=command, exit_code=exit_code, output=text, duration_s=time.monotonic() - began
    )


def why_failed(hook: HookRun, timeout_s: float) -> str | None:
    """For people; None if it ended with 0."""
    if hook.exit_code == 0:
        return None
    name = hook.when.replace("_", "-")
    if hook.exit_code is None:
        return f"the hook {name} did not end within {format_duration(timeout_s)}, and was stopped"
    ended = (
        f"ended with exit code {hook.exit_code}"
        if hook.exit_code > 0
        else f"was terminated by {signal.Signals(-hook.exit_code).name}"
    )
    said = _what_it_said(hook.output)
    return f"the hook {name} {ended}" + (f": {said}" if said else "")


def _what_it_said(output: str) -> str:
    """From the first line that begins with "Error" on, since what to do next stands behind it; without one
    the last line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    begin = next((number for number, line in enumerate(lines) if _ERROR.match(line)), len(lines) - 1)
    text = " ".join(lines[max(begin, 0) :])
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]} ..."


def environment_of_suite(points: Sequence[Point]) -> dict[str, str]:
    """What a hook is told of a suite: its name, its plan, and the hash type that all its points have; empty
    where they have several, or the file does not say."""
    hash_types = {point.hash_type for point in points}
    return {
        "EVENHAND_SUITE": points[0].suite,
        "EVENHAND_PLAN": points[0].plan,
        "EVENHAND_HASH_TYPE": (hash_types.pop() or "") if len(hash_types) == 1 else "",
    }


def environment_of(point: Point) -> dict[str, str]:
    """What a hook is told of its point."""
    return {
        "EVENHAND_SUITE": point.suite,
        "EVENHAND_POINT": point.key,
        "EVENHAND_PROCEDURE": point.procedure,
        "EVENHAND_PLAN": point.plan,
        "EVENHAND_HASH_TYPE": point.hash_type or "",
        "EVENHAND_HOSTS_LEFT": str(point.hosts[0]),
        "EVENHAND_HOSTS_RIGHT": str(point.hosts[1]),
        "EVENHAND_NETWORKS_LEFT": str(point.networks[0]),
        "EVENHAND_NETWORKS_RIGHT": str(point.networks[1]),
        "EVENHAND_FRAME_SIZE": str(point.frame_size),
    }


def _read(stream: IO[bytes], output: bytearray) -> None:
    # One octet more than is kept tells that there was more.
    while chunk := stream.read1(65536):  # type: ignore[attr-defined]
        output += chunk[: MOST_OUTPUT_OCTETS + 1 - len(output)]


def _end(process: subprocess.Popen[bytes]) -> None:
    """The whole group, also where its first process has ended already."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(TERMINATE_S)
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
