# SPDX-License-Identifier: Apache-2.0
"""Keeps the NICs of a virtual machine receiving: a process beside it, which ends with it.

QEMU hashes in software: what it reads from queue j of a tap may belong into queue i of the guest's NIC. If
that one is full, it reads queue j of the tap no more until the guest puts buffers into *its* queue j, and
where no frame comes into that one, never: after one overload the NIC is stuck until the machine is started
anew (seen with QEMU 7.2). To say that a link is up, which it is, makes QEMU go on with all queues of a NIC,
and tells the guest nothing.

This file is a program too, and needs nothing but the standard library, so that it starts at once.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TextIO

LOOK_AGAIN_S = 0.01
"""The queue of a tap has room for 1,000 frames, which is 10 ms at 100 kfps."""


def keep_receiving(monitor: str, nics: Sequence[str], cpu: int) -> bool:
    """Start the process, on this CPU. Whether it found the machine.

    Args:
        monitor: Path of a monitor of QEMU's (QMP) that nobody else uses.
        nics: Ids of the netdevs.
    """
    command = [sys.executable, "-I", "-S", __file__, str(cpu), monitor, *nics]
    silence = subprocess.DEVNULL
    ended = subprocess.run(
        command, stdin=silence, stdout=silence, stderr=silence, start_new_session=True, cwd="/", check=False
    )
    return ended.returncode == 0


def _ask(connection: socket.socket, answers: TextIO, command: str, **arguments: object) -> None:
    """Give QEMU a command, and wait for its answer. OSError if the machine has ended."""
    connection.sendall(json.dumps({"execute": command, "arguments": arguments}).encode() + b"\n")
    while line := answers.readline():
        if {"return", "error"} & json.loads(line).keys():  # and no event
            return
    raise ConnectionResetError


def _main(cpu: str, monitor: str, *nics: str) -> None:
    os.sched_setaffinity(0, {int(cpu)})
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(monitor)
        answers = connection.makefile("r", encoding="utf-8")
        answers.readline()  # its greeting
        _ask(connection, answers, "qmp_capabilities")
        if os.fork():  # whoever started this waits no longer
            return
        with suppress(OSError):
            while True:
                for nic in nics:
                    _ask(connection, answers, "set_link", name=nic, up=True)
                time.sleep(LOOK_AGAIN_S)


if __name__ == "__main__":
    _main(*sys.argv[1:])
