# SPDX-License-Identifier: Apache-2.0
"""Testbed: who uses a device of this host in another network namespace: the host's own, if this process is in
a container or in `ip netns exec`.

A namespace shows its own interfaces only, and its /sys does, too; but a device is one and the same for all.
So every namespace that can be entered is asked, and a device whose interface is in none of them is not known.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

_CLONE_NEWNET = 0x40000000
MOST_NAMESPACES = 1000
"""A host of containers may have some hundred."""
NAMED = Path("/run/netns")
Result = TypeVar("Result")


@dataclass(slots=True)
class DeviceUse:
    """The kernel's devices that have an interface in a namespace that was asked: `0000:01:00.0`,
    `virtio2`."""

    seen: set[str] = field(default_factory=set)
    elsewhere: dict[str, str] = field(default_factory=dict)
    """Those whose interface is in another namespace, and its name."""
    in_the_way: dict[str, str] = field(default_factory=dict)
    """Those that carry a default route, and why that is."""


def other_namespaces(proc: Path = Path("/proc")) -> Iterator[Path]:
    """A path of each network namespace that is known here, but this process's own: of every process that can
    be seen, and of those that `ip netns` has named."""
    known = set()
    with suppress(OSError):
        known.add(_identity(proc / "self/ns/net"))
    named = sorted(NAMED.iterdir()) if NAMED.is_dir() else []
    processes = (proc / name / "ns/net" for name in os.listdir(proc) if name.isdecimal())
    for path in (*named, *processes):
        with suppress(OSError):
            identity = _identity(path)
            if identity not in known and len(known) < MOST_NAMESPACES:
                known.add(identity)
                yield path


def _identity(path: Path) -> tuple[int, int]:
    facts = path.stat()
    return facts.st_dev, facts.st_ino


def in_namespace(path: Path, work: Callable[[], Result]) -> Result:
    """Do this in a thread that has entered the namespace. OSError if it cannot be entered, and whatever the
    work raises."""
    found: list[Result] = []
    failed: list[BaseException] = []

    def enter() -> None:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                if ctypes.CDLL(None, use_errno=True).setns(descriptor, _CLONE_NEWNET) != 0:
                    number = ctypes.get_errno()
                    raise OSError(number, os.strerror(number))
            finally:
                os.close(descriptor)
            found.append(work())
        except BaseException as error:
            failed.append(error)

    # A thread of its own: it cannot be used again, since it stays there.
    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return found[0]
