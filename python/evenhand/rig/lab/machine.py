# SPDX-License-Identifier: Apache-2.0
"""The QEMU of a lab, from any process: found, and ended."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

from evenhand.rig.lab.vm_access import Access

_PATIENCE_S = 5.0
"""After SIGTERM, until SIGKILL."""


def machine_processes(name: str) -> list[int]:
    """Ids of the QEMU of this lab. Known by what stands in its command line, so that none is ever forgotten
    or mistaken for another."""
    monitor = f"unix:{Access(name).folder}/monitor.sock,".encode()
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # ended while we looked
            arguments = path.read_bytes().split(b"\0")
            if b"-qmp" in arguments and any(argument.startswith(monitor) for argument in arguments):
                found.append(int(path.parent.name))
    return sorted(found)


def end_machine(name: str) -> None:
    """Pull the plug, if there is a machine, and remove its keys. Nothing is not an error."""
    for process in machine_processes(name):
        with suppress(ProcessLookupError):
            descriptor = os.pidfd_open(process)  # whatever gets its number later is not ended
            try:
                if process in machine_processes(name):
                    _end(descriptor, process)
            finally:
                os.close(descriptor)
    Access(name).remove()


def _end(descriptor: int, process: int) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        signal.pidfd_send_signal(descriptor, number)
        give_up = time.monotonic() + _PATIENCE_S
        while time.monotonic() < give_up:
            if not _is_alive(process):
                return
            time.sleep(0.02)


def _is_alive(process: int) -> bool:
    """A zombie is not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False
