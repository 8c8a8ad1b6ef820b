# SPDX-License-Identifier: Apache-2.0
"""The programs of a lab that outlive the command that started them, from any process: found, and ended."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from evenhand.lab.vm_access import Access

_PATIENCE_S = 5.0
"""Seconds from SIGTERM until SIGKILL."""


def system_path() -> str:
    """Where the programs of a lab are looked for: a user's PATH need not have the folder of system
    programs."""
    return f"{os.environ.get('PATH', '')}:/usr/local/sbin:/usr/sbin:/sbin"


def processes_with(option: bytes, argument_begins: bytes) -> list[int]:
    """Ids of the processes whose command line contains both: so none is ever forgotten, or mistaken for
    another."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # ended while we looked
            arguments = path.read_bytes().split(b"\0")
            if option in arguments and any(argument.startswith(argument_begins) for argument in arguments):
                found.append(int(path.parent.name))
    return sorted(found)


def machine_processes(name: str) -> list[int]:
    """Ids of the QEMU of this lab."""
    return processes_with(b"-qmp", f"unix:{Access(name).folder}/monitor.sock,".encode())


def end_machine(name: str) -> None:
    """Pull the plug, if there is a machine, and remove its keys. Nothing is not an error."""
    end_processes(lambda: machine_processes(name))
    Access(name).remove()


def end_processes(find: Callable[[], list[int]]) -> None:
    """End all that are found, by force those that do not go."""
    for process in find():
        with suppress(ProcessLookupError):
            descriptor = os.pidfd_open(process)  # whatever gets its number later is not ended
            try:
                if process in find():
                    _end(descriptor, process)
            finally:
                os.close(descriptor)


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
