# SPDX-License-Identifier: Apache-2.0
"""Taps of several queues in a namespace: what the tester sends on the interface, a virtual machine on this
machine receives, and back.

The kernel copies each frame into the queue of the tap, so a slow machine never holds the tester's buffers;
what finds the queue full is dropped there. The taps stay when the machine dies, so that the tester's ports
do.
"""

from __future__ import annotations

import fcntl
import os
import struct
from typing import TYPE_CHECKING

from evenhand.base.errors import HostError
from evenhand.base.lazy_import import lazy_import
from evenhand.lab.build import LabNames, index_of, tester_sysctls, write_sysctls
from evenhand.lab.namespaces import host_errors, make_namespace, run_inside
from evenhand.plan import SIDES

if TYPE_CHECKING:
    import pyroute2
else:
    pyroute2 = lazy_import("pyroute2")

TUN = "/dev/net/tun"
QUEUE_FRAMES = 1000
"""Frames that wait in each queue of a tap for the machine."""
_TUNSETIFF = 0x400454CA
_TUNSETPERSIST = 0x400454CB
_IFF_TAP, _IFF_MULTI_QUEUE, _IFF_NO_PI, _IFF_VNET_HDR = 0x0002, 0x0100, 0x1000, 0x4000
_REQUEST = struct.Struct("16sH22x")
"""`struct ifreq` with flags."""


def make_taps(names: LabNames, queues: int, mtu: int) -> tuple[list[int], list[int]]:
    """The tester's namespace with a tap of each side; descriptors of their queues, left and right, which the
    caller closes.

    Raises:
        HostError: The kernel refuses.
    """
    make_namespace(names.tester_namespace)
    with host_errors(
        "make taps", where=names.tester_namespace, next_step="Does /dev/net/tun exist? Try: modprobe tun"
    ):
        return run_inside(names.tester_namespace, lambda: _make(names, queues, mtu))


def _make(names: LabNames, queues: int, mtu: int) -> tuple[list[int], list[int]]:
    write_sysctls(tester_sysctls())
    made: tuple[list[int], list[int]] = ([], [])
    try:
        for number, side in enumerate(SIDES):
            for _ in range(queues):
                descriptor = os.open(TUN, os.O_RDWR | os.O_CLOEXEC)
                made[number].append(descriptor)
                flags = _IFF_TAP | _IFF_NO_PI | _IFF_MULTI_QUEUE | _IFF_VNET_HDR
                fcntl.ioctl(
                    descriptor, _TUNSETIFF, _REQUEST.pack(names.tester_interface(side).encode(), flags)
                )
            fcntl.ioctl(made[number][0], _TUNSETPERSIST, 1)
        with pyroute2.IPRoute() as ip:
            for number, side in enumerate(SIDES, start=1):
                index = index_of(ip, names.tester_interface(side))
                ip.link(
                    "set", index=index, address=f"02:00:00:00:a0:{number:02x}", mtu=mtu, txqlen=QUEUE_FRAMES
                )
                ip.link("set", index=index, state="up")
    except BaseException:
        close(made)
        raise
    return made


def close(queues: tuple[list[int], list[int]]) -> None:
    """Close those of this process; the machine has its own."""
    for descriptor in (*queues[0], *queues[1]):
        os.close(descriptor)


def check_tun() -> None:
    """HostError if this machine has no taps."""
    if not os.path.exists(TUN):
        raise HostError(
            f"{TUN} does not exist",
            code="rig.no-tun-device",
            where="lab",
            next_step="Try: modprobe tun. In a container, the device must be passed in.",
        )
