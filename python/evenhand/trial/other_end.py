# SPDX-License-Identifier: Apache-2.0
"""Station 7: whether the process at the other end of a memif takes connections. One that hangs, or that a
signal has stopped, leaves a few waiting; the driver of the next one waits in the kernel until it goes on, and
the engine with it."""

from __future__ import annotations

import os
import select
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from evenhand.base.errors import HostError

TAKEN_WITHIN_S = 10.0
"""As long as the engine waits for the answer of one that has taken its connection."""
GREETED_WITHIN_S = 0.3
"""A server greets whoever connects; DPDK's own does not survive one that has gone before that."""
_LISTENS = 0x10000
"""The flag __SO_ACCEPTCON in /proc/net/unix."""


def looking_at_other_ends(request: Mapping[str, Any], kill: Callable[[], None]) -> Callable[[float], None]:
    """`check_other_ends` for an engine that was asked to open its ports.

    Args:
        kill: Ends the engine, which waits in the kernel then and hears nothing.
    """

    def look(waited_s: float) -> None:
        try:
            check_other_ends(request.get("ports") or {}, waited_s)
        except HostError:
            kill()
            raise

    return look


def check_other_ends(ports: Mapping[str, Any], waited_s: float) -> None:
    """While the ports are being opened: whether one of them waits for an end that takes no connection.

    Args:
        ports: Those of the request `open`.
        waited_s: For so long the engine has said nothing.

    Raises:
        HostError: One does; names the process that listens there.
    """
    if waited_s < TAKEN_WITHIN_S:
        return
    for side, port in ports.items():
        device = str(port.get("device"))
        path = _socket_of_client(device)
        if path is not None and not _takes_connections(path):
            shown = path.replace("\0", "@")
            raise HostError(
                f"{device}: {_listener(path)} listens on {shown}, but has not taken a connection within"
                f" {TAKEN_WITHIN_S:.0f} s",
                code="trial.other-end-hangs",
                where=f"{side}.device",
                next_step="See whether a signal has stopped that process, or it hangs; start it again then.",
            )


def _socket_of_client(device: str) -> str | None:
    """Where the memif connects to, as the kernel has it; None for anything else."""
    name, *arguments = device.split(",")
    values = dict(argument.partition("=")[::2] for argument in arguments)
    if not name.startswith("net_memif") or values.get("role", "client") not in ("client", "slave"):
        return None
    path = values.get("socket", "/run/memif.sock")
    return path if values.get("socket-abstract", "yes") == "no" else f"\0{path}"


def _takes_connections(path: str) -> bool:
    """False if more wait there already than it lets wait. What does not listen at all is another matter."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
        client.setblocking(False)
        try:
            client.connect(path)
        except BlockingIOError:
            return False
        except OSError:
            return True
        select.select([client], [], [], GREETED_WITHIN_S)
    return True


def _listener(path: str) -> str:
    """`process 12 (evenhand-router)`, or `another process` if it cannot be seen from here."""
    for inode in _listening(path.replace("\0", "@", 1)):
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if any(os.readlink(file) == f"socket:[{inode}]" for file in (folder / "fd").iterdir()):
                    return f"process {folder.name} ({(folder / 'comm').read_text().strip()})"
    return "another process"


def _listening(name: str) -> Iterator[str]:
    """Inodes of the sockets that listen under this name."""
    with suppress(OSError):
        for line in Path("/proc/net/unix").read_text(errors="replace").splitlines()[1:]:
            words = line.split(maxsplit=7)
            if len(words) == 8 and words[7] == name and int(words[3], 16) & _LISTENS:
                yield words[6]
