# SPDX-License-Identifier: Apache-2.0
"""The interfaces that a default route leaves by, asked from the kernel.

pyroute2 makes an object of each route, which takes minutes and gigabytes for the million routes of a lab. The
kernel cannot be asked for default routes alone, so what it sends is looked through here, without that.
"""

from __future__ import annotations

import socket
import struct
import sys
from collections.abc import Iterator

RTM_NEWROUTE, RTM_GETROUTE = 24, 26
NLMSG_ERROR, NLMSG_DONE = 2, 3
NLM_F_REQUEST, NLM_F_DUMP = 0x1, 0x300
RTA_DST, RTA_OIF, RTA_MULTIPATH = 1, 4, 9
_HEADER = struct.Struct("=IHHII")
"""Length, type, flags, number, and port of a message."""
_ROUTE = struct.Struct("=BBBBBBBBI")
"""A route's family, and as the second the length of its destination prefix."""
_ATTRIBUTE = struct.Struct("=HH")
_HOP = struct.Struct("=HBBi")
"""A next hop's length, flags, weight and interface."""
_RECEIVED_OCTETS = 1 << 20


def default_route_interfaces(family: int) -> set[int]:
    """The indices of the interfaces that default routes of this address family leave by, in any table of the
    network namespace that this thread is in.

    Raises:
        OSError: The kernel does not answer.
    """
    found: set[int] = set()
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as kernel:
        kernel.bind((0, 0))
        route = _ROUTE.pack(family, 0, 0, 0, 0, 0, 0, 0, 0)
        size = _HEADER.size + len(route)
        kernel.send(_HEADER.pack(size, RTM_GETROUTE, NLM_F_REQUEST | NLM_F_DUMP, 1, 0) + route)
        while True:
            answer = kernel.recv(_RECEIVED_OCTETS)
            at = 0
            while at + _HEADER.size <= len(answer):
                length, kind, *_ = _HEADER.unpack_from(answer, at)
                if kind == NLMSG_DONE:
                    return found
                if kind == NLMSG_ERROR:
                    (number,) = struct.unpack_from("=i", answer, at + _HEADER.size)
                    raise OSError(-number, "the kernel does not list its routes")
                # Octet 1 of a route, behind its family.
                if kind == RTM_NEWROUTE and answer[at + _HEADER.size + 1] == 0:
                    found.update(_interfaces_of(answer[at + _HEADER.size + _ROUTE.size : at + length]))
                at += _aligned(length)


def _interfaces_of(attributes: bytes) -> set[int]:
    """Those of one route; none if it has a destination after all."""
    found: set[int] = set()
    for kind, value in _attributes(attributes):
        if kind == RTA_DST:
            return set()
        if kind == RTA_OIF:
            found.add(int.from_bytes(value[:4], sys.byteorder))
        elif kind == RTA_MULTIPATH:
            at = 0
            while at + _HOP.size <= len(value):
                length, _, _, interface = _HOP.unpack_from(value, at)
                found.add(interface)
                at += _aligned(max(length, _HOP.size))
    return found - {0}


def _attributes(octets: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + _ATTRIBUTE.size <= len(octets):
        length, kind = _ATTRIBUTE.unpack_from(octets, at)
        if length < _ATTRIBUTE.size:
            return
        yield kind, octets[at + _ATTRIBUTE.size : at + length]
        at += _aligned(length)


def _aligned(length: int) -> int:
    """Netlink's parts begin at multiples of four octets."""
    return length + 3 & ~3
