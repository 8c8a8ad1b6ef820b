# SPDX-License-Identifier: Apache-2.0
"""Threaded NAPI: the DUT forwards in kernel threads of its own, on a CPU of its own.

Without it the kernel forwards inside the tester's own system call, and the tester's CPU is the DUT's.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

from evenhand.base.errors import HostError

MOST_URGENT = -20
"""Nice value of the engine and of the DUT's threads."""


def make_urgent(pid: int) -> None:
    """Give this process or thread the precedence that the engine takes.

    With autogroups a nice value counts within its session only, so a session that this process leads gets one
    too, as the engine's does.

    Raises:
        OSError: It has ended, or we may not.
    """
    os.setpriority(os.PRIO_PROCESS, pid, MOST_URGENT)
    if os.getsid(pid) == pid:
        with suppress(OSError):  # a kernel without autogroups
            Path(f"/proc/{pid}/autogroup").write_text(str(MOST_URGENT))


PROCESSES = Path("/proc")


def pin_napi(interface: str, cpu: int) -> None:
    """Give the interface NAPI threads and pin them to `cpu`. Call inside the interface's namespace.

    `interface` must be up, have its XDP program (which makes the NAPI instance) and be unique on the host,
    since the threads are known by `napi/<interface>-<id>`. Taking the interface down and up again undoes it.

    Raises:
        HostError: No threaded NAPI in this kernel, or its threads cannot be seen or pinned.
    """
    switch = Path("/sys/class/net") / interface / "threaded"
    try:
        switch.write_text("1")
    except OSError as error:
        raise HostError(
            f"no threaded NAPI: {error.strerror}",
            code="rig.no-threaded-napi",
            where=interface,
            next_step="The lab needs Linux 5.17 or later (Debian 12 has 6.1).",
        ) from error
    threads = napi_threads(interface)
    if switch.read_text().strip() != "1" or not threads:
        raise HostError(
            "the kernel's NAPI threads of this interface are not visible",
            code="rig.napi-not-visible",
            where=interface,
            next_step="Run on the host itself or in its PID namespace (docker run --pid=host), on Linux 5.17"
            " or later.",
        )
    for thread in threads:
        try:
            os.sched_setaffinity(thread, {cpu})
            # The DUT should lose frames for want of speed, not because the host's housekeeping ran instead.
            make_urgent(thread)
        except OSError as error:
            raise HostError(
                f"NAPI thread {thread} cannot be pinned to CPU {cpu}: {error.strerror}",
                code="rig.napi-not-pinned",
                where=interface,
                next_step="Choose an online CPU for the DUT.",
            ) from error
        if os.sched_getaffinity(thread) != {cpu}:
            raise HostError(
                f"NAPI thread {thread} does not stay on CPU {cpu}",
                code="rig.napi-not-pinned",
                where=interface,
                next_step="Choose another DUT CPU.",
            )


def napi_threads(interface: str) -> list[int]:
    """Process ids of the interface's NAPI kernel threads, which any namespace sees."""
    # The whole name: that of another lab may begin with that of this one.
    name = re.compile(re.escape(f"napi/{interface}-".encode()) + rb"\d+\n?")
    threads = []
    # Reads all processes of this machine, before each search: without an object for each path.
    for process in os.listdir(PROCESSES):
        if not process.isdecimal():
            continue
        try:
            with open(f"{PROCESSES}/{process}/comm", "rb") as comm:
                if name.fullmatch(comm.read()):
                    threads.append(int(process))
        except (FileNotFoundError, ProcessLookupError):
            continue  # ended while we looked
    return sorted(threads)
