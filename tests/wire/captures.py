# SPDX-License-Identifier: Apache-2.0
"""Frames that net_pcap ports have written, and what of them can be compared."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from scapy.utils import RawPcapReader

TAG_AT = {4: 42, 6: 62}
UDP_CHECKSUM_AT = {4: 40, 6: 60}
MAGIC = b"\xe5\xe4\x01"


@dataclass(frozen=True, slots=True)
class Tag:
    """What the 18 octets of the tag say; docs/reference/frame.md."""

    reverse: bool
    stream: int
    sequence: int
    time_ticks: int
    """When the frame was built, low 48 bits."""


def frames_of(capture: Path) -> list[bytes]:
    """The octets of all frames of a capture, in their order. Nothing is dissected: that takes a test of some
    thousand frames seconds."""
    with RawPcapReader(str(capture)) as reader:
        return [octets for octets, _ in reader]


def sent_frames(capture: Path, version: int) -> list[bytes]:
    """The test frames of a capture in their order, without questions to neighbours."""
    at = TAG_AT[version]
    return [frame for frame in frames_of(capture) if frame[at : at + 3] == MAGIC]


def without_vlans(capture: Path, tags: bytes) -> list[bytes]:
    """All frames of a capture without these VLAN tags, which every one of them must have, outermost first."""
    frames = frames_of(capture)
    assert [frame for frame in frames if frame[12 : 12 + len(tags)] != tags] == []
    return [frame[:12] + frame[12 + len(tags) :] for frame in frames]


def time_check(tag: bytes) -> int:
    """What the time of a tag puts into its stream."""
    time = int.from_bytes(tag[12:18])
    folded = (time ^ time >> 16 ^ time >> 32) & 0xFFFF
    return (folded ^ folded >> 7 ^ folded >> 14) & 0x7F


def tag_of(frame: bytes, version: int) -> Tag:
    tag = frame[TAG_AT[version] :]
    return Tag(
        reverse=bool(tag[5] & 0x80),
        stream=(tag[5] ^ time_check(tag)) & 0x7F,
        sequence=int.from_bytes(tag[6:12]),
        time_ticks=int.from_bytes(tag[12:18]),
    )


def without_time(frame: bytes, version: int) -> bytes:
    """The frame but for send time, its check, and UDP checksum, which is looked at: its sum must come out
    right."""
    addresses = 26 if version == 4 else 22
    udp = UDP_CHECKSUM_AT[version] - 6
    segment = frame[addresses:] + (b"\0" if len(frame) % 2 else b"")
    # Words are added in ones' complement: as digits of one number, they leave the same remainder.
    assert (int.from_bytes(segment) + 17 + len(frame) - udp) % 0xFFFF == 0
    octets = bytearray(frame)
    octets[UDP_CHECKSUM_AT[version] : UDP_CHECKSUM_AT[version] + 2] = b"\0\0"
    tag_at, time_at = TAG_AT[version], TAG_AT[version] + 12
    octets[tag_at + 5] ^= time_check(bytes(octets[tag_at : tag_at + 18]))
    octets[time_at : time_at + 6] = bytes(6)
    return bytes(octets)
