# SPDX-License-Identifier: Apache-2.0
"""Network namespaces: make, remove, and run Python code inside one without leaving the process."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from evenhand.base.errors import HostError
from evenhand.base.lazy_import import lazy_import

if TYPE_CHECKING:
    import pyroute2
else:
    pyroute2 = lazy_import("pyroute2")

NAMESPACE_DIRECTORY = Path("/run/netns")
"""Where `ip netns` looks, so that `ip netns exec` works on a lab."""

_CLONE_NEWNS = 0x00020000
_CLONE_NEWNET = 0x40000000
_MS_REC = 1 << 14
_MS_PRIVATE = 1 << 18
_libc = ctypes.CDLL(None, use_errno=True)

Result = TypeVar("Result")


def namespace_path(namespace: str) -> Path:
    """File that represents the namespace."""
    return NAMESPACE_DIRECTORY / namespace


def make_namespace(namespace: str) -> None:
    """Make an empty network namespace. HostError if the kernel or the permissions do not allow it."""
    with host_errors(
        "create a network namespace",
        where=namespace,
        next_step="The container or host must allow CAP_SYS_ADMIN.",
    ):
        pyroute2.netns.create(namespace)


def remove_namespace(namespace: str) -> None:
    """Remove the name; the namespace dies with its last process. Does nothing if it is not there."""
    if namespace_path(namespace).exists():
        with host_errors("remove the network namespace", where=namespace):
            pyroute2.netns.remove(namespace)


def run_inside(namespace: str, work: Callable[[], Result]) -> Result:
    """Call `work` in a new thread that lives in the namespace, and hand back what it returns or raises.

    The thread has its own mount namespace with the namespace's /sys, because sysfs shows the interfaces of
    whoever mounted it. /proc/sys/net, netlink and new sockets follow the thread too; a socket made there
    stays in the namespace. A thread is used and not a child process: nothing to pickle, and nothing to fork
    during a running progress display.

    Raises:
        OSError: There is no such namespace, or no permission to enter it.
    """

    def enter_and_work() -> Result:
        descriptor = os.open(namespace_path(namespace), os.O_RDONLY | os.O_CLOEXEC)
        try:
            _call("unshare", _CLONE_NEWNS)
            _call("setns", descriptor, _CLONE_NEWNET)
        finally:
            os.close(descriptor)
        _call("mount", b"none", b"/", None, ctypes.c_ulong(_MS_REC | _MS_PRIVATE), None)
        _call("mount", b"sysfs", b"/sys", b"sysfs", ctypes.c_ulong(0), None)
        return work()

    # A pool of one, never used again: the thread cannot leave its namespaces, so it must end.
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix=namespace) as pool:
        return pool.submit(enter_and_work).result()


@contextmanager
def host_errors(doing: str, *, where: str = "", next_step: str = "") -> Iterator[None]:
    """Turn what the kernel refuses into a HostError that says what was tried."""
    try:
        yield
    except pyroute2.netlink.exceptions.NetlinkError as error:
        raise HostError(
            f"the kernel refuses to {doing}: {os.strerror(error.code)}",
            code="rig.kernel-refuses",
            where=where,
            next_step=next_step,
        ) from error
    except OSError as error:
        raise HostError(
            f"cannot {doing}: {error.strerror or error}",
            code="rig.kernel-refuses",
            where=where,
            next_step=next_step,
        ) from error


def _call(function: str, *arguments: object) -> None:
    if getattr(_libc, function)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{function}: {os.strerror(number)}")
