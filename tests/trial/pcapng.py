# SPDX-License-Identifier: Apache-2.0
"""An own reader of pcapng files: as much of it as captures have."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Packet:
    interface: str
    at_ns: int
    octets: bytes
    length: int
    comment: str

    @property
    def kind(self) -> str:
        """The word in brackets that ends the comment."""
        found = re.search(r"\((\w+)\)$", self.comment)
        return found[1] if found else ""


def read_pcapng(path: Path) -> list[Packet]:
    """Its packets. AssertionError for what does not follow the format."""
    data, at = path.read_bytes(), 0
    interfaces: list[str] = []
    packets = []
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        body = data[at + 8 : at + length - 4]
        assert length % 4 == 0
        assert struct.unpack_from("<I", data, at + length - 4) == (length,)
        at += length
        if kind == 0x0A0D0D0A:
            assert body[:4] == struct.pack("<I", 0x1A2B3C4D)
        elif kind == 1:
            assert struct.unpack_from("<H", body) == (1,), "Ethernet"
            options = _options(body[8:])
            assert options[9] == b"\x09", "nanoseconds"
            interfaces.append(options[2].decode())
        else:
            assert kind == 6
            number, upper, lower, captured, whole = struct.unpack_from("<IIIII", body)
            after = 20 + captured + -captured % 4
            comment = _options(body[after:])[1].decode()
            octets = body[20 : 20 + captured]
            packets.append(Packet(interfaces[number], upper << 32 | lower, octets, whole, comment))
    return packets


def _options(data: bytes) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    at = 0
    while True:
        code, length = struct.unpack_from("<HH", data, at)
        if code == 0:
            assert at + 4 == len(data)
            return found
        found[code] = data[at + 4 : at + 4 + length]
        at += 4 + length + -length % 4
