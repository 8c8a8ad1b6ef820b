# SPDX-License-Identifier: Apache-2.0
"""Station 10: frames as a capture file that Wireshark and tcpdump read."""

from __future__ import annotations

import struct
from collections.abc import Iterable

_MAGIC_NANOSECONDS = 0xA1B23C4D
_ETHERNET = 1
_SNAPSHOT_OCTETS = 65535


def make_pcap(frames: Iterable[bytes], *, interval_ns: int = 1000) -> bytes:
    """A pcap file of these frames (without FCS), `interval_ns` apart from time 0: a preview has no send
    times."""
    parts = [struct.pack("<IHHiIII", _MAGIC_NANOSECONDS, 2, 4, 0, 0, _SNAPSHOT_OCTETS, _ETHERNET)]
    for index, frame in enumerate(frames):
        seconds, nanoseconds = divmod(index * interval_ns, 10**9)
        parts += [struct.pack("<IIII", seconds, nanoseconds, len(frame), len(frame)), frame]
    return b"".join(parts)
