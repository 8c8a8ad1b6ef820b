# SPDX-License-Identifier: Apache-2.0
"""What the DUT's driver hashes, as the kernel tells it."""

from __future__ import annotations

import errno
import fcntl
import struct
from ctypes import c_char, memmove

import pytest

from evenhand.host.flow_hash import letters_of, read_flow_hash


def test_letters_are_those_that_ethtool_takes() -> None:
    """RSS-02: type 1 is sd, type 2 is sdfn."""
    assert letters_of(0x30) == "sd"
    assert letters_of(0xF0) == "sdfn"
    assert letters_of(0) == ""
    # As bnxt_en has it with the flow label of IPv6, DPAA2 with the protocol, and a flow that is discarded.
    assert letters_of(0x230) == "sdl"
    assert letters_of(0xF8) == "tsdfn"
    assert letters_of(0x1F0) == "sdfne"
    assert letters_of(1 << 31) == "r"


@pytest.mark.parametrize(("fields", "letters"), [(0x30, "sd"), (0xF0, "sdfn")])
def test_what_a_driver_answers_is_read_back(
    monkeypatch: pytest.MonkeyPatch, fields: int, letters: str
) -> None:
    """RSS-02. No interface here has a hash, so the kernel's side of the call is played; its layout is that of
    linux/ethtool.h."""
    asked = []

    def driver(_: object, command: int, ifreq: bytes) -> bytes:
        name, address = struct.unpack("16sQ", ifreq)
        head = memory_at(address, 16).tobytes()
        asked.append((command, name.rstrip(b"\0"), *struct.unpack("<II", head[:8])))
        memmove(address + 8, struct.pack("<Q", fields), 8)
        return ifreq

    monkeypatch.setattr(fcntl, "ioctl", driver)
    assert read_flow_hash("eth7") == {"udp4": letters, "udp6": letters}
    assert asked == [(0x8946, b"eth7", 0x29, 2), (0x8946, b"eth7", 0x29, 6)]


def test_a_driver_without_a_hash_tells_none() -> None:
    assert read_flow_hash("lo") == {"udp4": None, "udp6": None}


def test_an_interface_that_is_not_there_is_an_error() -> None:
    with pytest.raises(OSError, match="No such device") as raised:
        read_flow_hash("nothere0")
    assert raised.value.errno == errno.ENODEV


def memory_at(address: int, octets: int) -> memoryview:
    return memoryview((c_char * octets).from_address(address))
