# SPDX-License-Identifier: Apache-2.0
"""The kernel's interfaces and their addresses, in the network namespace that a thread is in."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import ip_address

from evenhand.testbed.netlink import (
    GET_ADDRESS,
    GET_LINK,
    GET_NETNSID,
    answers,
    attribute,
    attributes,
    number_in,
    text_in,
)

IFLA_IFNAME, IFLA_LINK, IFLA_MASTER, IFLA_LINKINFO, IFLA_LINK_NETNSID, IFLA_PARENT_DEV_NAME = (
    3,
    5,
    10,
    18,
    37,
    56,
)
IFLA_INFO_KIND = 1
IFA_ADDRESS, IFA_LOCAL = 1, 2
NETNSA_NSID, NETNSA_FD = 1, 3
_LINK = struct.Struct("=BxHiII")
"""Family, kind of hardware, index, flags and which of them change."""
_ADDRESS = struct.Struct("=BBBBi")
"""Family, length of the prefix, flags, scope, and the interface's index."""
_OF_THE_LINK_ALONE = 253
_GENERIC = b"\0\0\0\0"


@dataclass(frozen=True, slots=True)
class KernelLink:
    """An interface. Indices are each namespace's own."""

    name: str
    kind: str | None
    """`veth`, `vlan`; None: hardware, or the loopback."""
    other: int | None
    """The index of the interface below, or of the other end of a veth pair."""
    namespace: int | None
    """The number that this namespace has for the one that `other` is in; None: in this one."""
    master: int | None
    """The index of the bridge or bond that it is in."""
    device: str | None
    """What it is an interface of: `0000:01:00.0`, `virtio2`."""


def read_links() -> dict[int, KernelLink]:
    """All of them, by their index. OSError if the kernel does not answer."""
    links = {}
    for octets, begin, end in answers(GET_LINK, _LINK.pack(0, 0, 0, 0, 0)):
        _, _, index, _, _ = _LINK.unpack_from(octets, begin)
        found = dict(attributes(octets[begin + _LINK.size : end]))
        kind = dict(attributes(found.get(IFLA_LINKINFO, b""))).get(IFLA_INFO_KIND)
        other, namespace, master = (
            number_in(found[key]) if key in found else None
            for key in (IFLA_LINK, IFLA_LINK_NETNSID, IFLA_MASTER)
        )
        links[index] = KernelLink(
            name=text_in(found[IFLA_IFNAME]),
            kind=None if kind is None else text_in(kind),
            other=other,
            namespace=namespace,
            master=master,
            device=text_in(found[IFLA_PARENT_DEV_NAME]) if IFLA_PARENT_DEV_NAME in found else None,
        )
    return links


def read_addresses(family: int) -> Iterator[tuple[int, str]]:
    """Index of the interface and address, without those of the link alone (fe80::)."""
    for octets, begin, end in answers(GET_ADDRESS, _ADDRESS.pack(family, 0, 0, 0, 0)):
        _, _, _, scope, index = _ADDRESS.unpack_from(octets, begin)
        found = dict(attributes(octets[begin + _ADDRESS.size : end]))
        address = found.get(IFA_LOCAL) or found.get(IFA_ADDRESS)
        if address and scope != _OF_THE_LINK_ALONE:
            yield index, str(ip_address(address))


def number_of_namespace(descriptor: int) -> int | None:
    """The number that this thread's namespace has for the open one; None: it has none."""
    request = _GENERIC + attribute(NETNSA_FD, struct.pack("=I", descriptor))
    for octets, begin, end in answers(GET_NETNSID, request, is_list=False):
        return number_in(dict(attributes(octets[begin + len(_GENERIC) : end]))[NETNSA_NSID])
    return None
