# SPDX-License-Identifier: Apache-2.0
"""The neighbour table of the namespace that the caller is in, as the kernel dumps it (rtnetlink,
RTM_GETNEIGH).

Read by hand: pyroute2 makes objects of every attribute, which takes a minute for the 131,072 hosts of a
direct plan.
"""

from __future__ import annotations

import os
import socket
import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from evenhand.plan import SideName

_STATES = {
    0x01: "incomplete",
    0x02: "reachable",
    0x04: "stale",
    0x08: "delay",
    0x10: "probe",
    0x20: "failed",
    0x80: "permanent",
}
_RTM_NEWNEIGH, _RTM_GETNEIGH = 28, 30
_NLM_F_REQUEST_DUMP = 0x0001 | 0x0300
_NLMSG_ERROR, _NLMSG_DONE = 2, 3
_NDA_DST, _NDA_LLADDR = 1, 2
_HEADER = struct.Struct("=IHHII")
"""nlmsghdr: octets, type, flags, sequence number, port."""
_ENTRY = struct.Struct("=BBHiHBB")
"""ndmsg: family, padding, padding, interface, state, flags, type."""
_ATTRIBUTE = struct.Struct("=HH")
"""rtattr: octets, type."""
_RECEIVE_OCTETS = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbor:
    """An entry of the DUT's ARP or ND table."""

    address: str
    mac: str | None
    """None while the DUT has no answer."""
    state: str
    """incomplete, reachable, stale, delay, probe, failed or permanent."""
    side: SideName


def read_neighbors(sides: Mapping[int, SideName]) -> list[Neighbor]:
    """Entries of these interfaces (index: side), ordered by side and address. OSError if the kernel
    refuses."""
    found = []
    with socket.socket(
        socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE
    ) as netlink:
        netlink.bind((0, 0))
        request = _ENTRY.pack(socket.AF_UNSPEC, 0, 0, 0, 0, 0, 0)
        netlink.send(
            _HEADER.pack(_HEADER.size + len(request), _RTM_GETNEIGH, _NLM_F_REQUEST_DUMP, 1, 0) + request
        )
        for message in _messages(netlink):
            _, _, _, index, state, _, _ = _ENTRY.unpack_from(message)
            side, name = sides.get(index), _STATES.get(state)
            # Without a name: multicast groups and the like, which are not neighbours.
            if side is None or name is None:
                continue
            attributes = dict(_attributes(message[_ENTRY.size :]))
            octets, mac = attributes[_NDA_DST], attributes.get(_NDA_LLADDR)
            address = socket.inet_ntop(socket.AF_INET if len(octets) == 4 else socket.AF_INET6, octets)
            found.append(
                Neighbor(address=address, mac=None if mac is None else mac.hex(":"), state=name, side=side)
            )
    return sorted(found, key=lambda n: (n.side, n.address))


def count_neighbors(neighbors: Iterable[Neighbor]) -> dict[str, dict[str, int]]:
    """How many entries of each side are in which state."""
    counts: dict[str, Counter[str]] = {"left": Counter(), "right": Counter()}
    for neighbor in neighbors:
        counts[neighbor.side][neighbor.state] += 1
    return {side: dict(sorted(of_side.items())) for side, of_side in counts.items()}


def _messages(netlink: socket.socket) -> Iterator[bytes]:
    """What follows the header of each entry, until the dump is done."""
    while True:
        octets = netlink.recv(_RECEIVE_OCTETS)
        at = 0
        while at + _HEADER.size <= len(octets):
            size, kind, _, _, _ = _HEADER.unpack_from(octets, at)
            if kind == _NLMSG_DONE:
                return
            if kind == _NLMSG_ERROR:
                number = -struct.unpack_from("=i", octets, at + _HEADER.size)[0]
                raise OSError(number, os.strerror(number))
            if kind == _RTM_NEWNEIGH:
                yield octets[at + _HEADER.size : at + size]
            at += _aligned(size)


def _attributes(octets: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + _ATTRIBUTE.size <= len(octets):
        size, kind = _ATTRIBUTE.unpack_from(octets, at)
        yield kind, octets[at + _ATTRIBUTE.size : at + size]
        at += _aligned(size)


def _aligned(octets: int) -> int:
    return (octets + 3) & ~3
