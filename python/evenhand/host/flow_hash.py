# SPDX-License-Identifier: Apache-2.0
"""Station 6: what a network driver hashes to choose a receive queue; what `ethtool -n IF rx-flow-hash udp4`
shows (RSS-02)."""

from __future__ import annotations

import errno
import fcntl
import socket
import struct
from ctypes import addressof, create_string_buffer

_SIOCETHTOOL = 0x8946
_ETHTOOL_GRXFH = 0x29
_REQUEST = struct.Struct("<IIQ")
"""The head of `struct ethtool_rxnfc`: command, flow type, fields."""
_REQUEST_OCTETS = 256
"""More than the whole struct: the kernel may write behind the head."""
FLOW_TYPES = {"udp4": 2, "udp6": 6}
FIELDS = {letter: 1 << bit for bit, letter in enumerate("mvtsdfnel", start=1)} | {"r": 1 << 31}
"""Letters of `ethtool -N`: s and d are the IP addresses, f and n the two ports, l is the flow label of IPv6;
r: all such frames are discarded."""


def read_flow_hash(interface: str) -> dict[str, str | None]:
    """For `udp4` and `udp6` the letters that `ethtool -N` takes, such as `sd` (type 1) or `sdfn` (type 2), in
    its order.

    None where the driver does not hash, or does not report it; veth is one of those. OSError if there is no
    such interface.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        return {flow: _read(any_socket, interface, number) for flow, number in FLOW_TYPES.items()}


def letters_of(fields: int) -> str:
    """`sdfn` for the bits of the four fields of a UDP flow; whatever is hashed beside them is named, too."""
    return "".join(letter for letter, bit in FIELDS.items() if fields & bit)


def _read(any_socket: socket.socket, interface: str, flow_type: int) -> str | None:
    request = create_string_buffer(_REQUEST.pack(_ETHTOOL_GRXFH, flow_type, 0), _REQUEST_OCTETS)
    try:
        fcntl.ioctl(any_socket, _SIOCETHTOOL, struct.pack("16sQ", interface.encode(), addressof(request)))
    except OSError as error:
        if error.errno in (errno.EOPNOTSUPP, errno.EINVAL):
            return None
        raise
    return letters_of(_REQUEST.unpack_from(request)[2])
