# SPDX-License-Identifier: Apache-2.0
"""What the kernel says of interfaces, addresses and routes, in its own form (netlink).

pyroute2 makes an object of each message: minutes and gigabytes for the million routes of a lab. And with what
it loads, a process that measures takes 9 MB more, for a few questions at its start.
"""

from __future__ import annotations

import socket
import struct
import sys
from collections.abc import Iterator

GET_LINK, GET_ADDRESS, GET_ROUTE, GET_NETNSID = 18, 22, 26, 90
"""Requests. What answers a request has the number two below it."""
_ERROR, _DONE = 2, 3
_REQUEST, _DUMP = 0x1, 0x300
_HEADER = struct.Struct("=IHHII")
"""Length, type, flags, number, and port of a message."""
_ATTRIBUTE = struct.Struct("=HH")
_KIND = 0x3FFF
"""The other bits of an attribute's type say how its value is written."""
_RECEIVED_OCTETS = 1 << 20


def answers(request: int, body: bytes, *, is_list: bool = True) -> Iterator[tuple[bytes, int, int]]:
    """What the kernel answers in the network namespace that this thread is in: octets, and where in them the
    body of an answer begins and ends.

    Args:
        is_list: The request is for all that there are, not for one.

    Raises:
        OSError: The kernel does not answer.
    """
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as kernel:
        kernel.bind((0, 0))
        flags = _REQUEST | _DUMP if is_list else _REQUEST
        kernel.send(_HEADER.pack(_HEADER.size + len(body), request, flags, 1, 0) + body)
        while True:
            octets = kernel.recv(_RECEIVED_OCTETS)
            at = 0
            while at + _HEADER.size <= len(octets):
                length, kind, *_ = _HEADER.unpack_from(octets, at)
                if kind == _DONE:
                    return
                if kind == _ERROR:
                    (number,) = struct.unpack_from("=i", octets, at + _HEADER.size)
                    raise OSError(-number, "the kernel does not list its interfaces and routes")
                if kind == request - 2:
                    yield octets, at + _HEADER.size, at + length
                at += aligned(length)
            if not is_list:
                return


def attribute(kind: int, value: bytes) -> bytes:
    """One of a request."""
    return _ATTRIBUTE.pack(_ATTRIBUTE.size + len(value), kind) + value


def attributes(octets: bytes) -> Iterator[tuple[int, bytes]]:
    """Kind and value of each."""
    at = 0
    while at + _ATTRIBUTE.size <= len(octets):
        length, kind = _ATTRIBUTE.unpack_from(octets, at)
        if length < _ATTRIBUTE.size:
            return
        yield kind & _KIND, octets[at + _ATTRIBUTE.size : at + length]
        at += aligned(length)


def number_in(value: bytes) -> int:
    """The number that is the value of an attribute."""
    return int.from_bytes(value[:4], sys.byteorder, signed=True)


def text_in(value: bytes) -> str:
    """The text that is the value of an attribute."""
    return value.rstrip(b"\0").decode(errors="replace")


def aligned(length: int) -> int:
    """Netlink's parts begin at multiples of four octets."""
    return length + 3 & ~3
