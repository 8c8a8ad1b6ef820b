# SPDX-License-Identifier: Apache-2.0
"""The interfaces that a default route leaves by. The kernel cannot be asked for default routes alone, so
what it sends is looked through here."""

from __future__ import annotations

import struct

from evenhand.testbed.netlink import GET_ROUTE, aligned, answers, attributes, number_in

RTA_DST, RTA_OIF, RTA_MULTIPATH = 1, 4, 9
_ROUTE = struct.Struct("=BBBBBBBBI")
"""A route's family, and as the second the length of its destination prefix."""
_HOP = struct.Struct("=HBBi")
"""A next hop's length, flags, weight and interface."""


def default_route_interfaces(family: int) -> set[int]:
    """The indices of the interfaces that default routes of this address family leave by, in any table of the
    network namespace that this thread is in.

    Raises:
        OSError: The kernel does not answer.
    """
    found: set[int] = set()
    for octets, begin, end in answers(GET_ROUTE, _ROUTE.pack(family, 0, 0, 0, 0, 0, 0, 0, 0)):
        # Octet 1 of a route, behind its family.
        if octets[begin + 1] == 0:
            found.update(_interfaces_of(octets[begin + _ROUTE.size : end]))
    return found


def _interfaces_of(route: bytes) -> set[int]:
    """Those of one route; none if it has a destination after all."""
    found: set[int] = set()
    for kind, value in attributes(route):
        if kind == RTA_DST:
            return set()
        if kind == RTA_OIF:
            found.add(number_in(value))
        elif kind == RTA_MULTIPATH:
            at = 0
            while at + _HOP.size <= len(value):
                length, _, _, interface = _HOP.unpack_from(value, at)
                found.add(interface)
                at += aligned(max(length, _HOP.size))
    return found - {0}
