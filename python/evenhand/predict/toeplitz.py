# SPDX-License-Identifier: Apache-2.0
"""The Toeplitz hash. It is linear over GF(2): the hash of a tuple is the XOR of what each of its fields
contributes.

The input is source address, destination address, and for type 2 source port, destination port, in network
order (RSS-03). Bit 0 is the most significant bit of the first octet.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import TYPE_CHECKING

from evenhand.base.lazy_import import lazy_import
from evenhand.plan import Address
from evenhand.predict.model import DeviceModel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = lazy_import("numpy")

HASH_BITS = 32
FIELD_BITS = 16


def key_window(key: bytes, bit_offset: int) -> int:
    """The 32 bits of the key that input bit `bit_offset` XORs into the hash, if it is set."""
    return (int.from_bytes(key, "big") >> (8 * len(key) - HASH_BITS - bit_offset)) & 0xFFFFFFFF


def contributions(key: bytes, bit_offset: int, values: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """What a 16-bit field with its first bit at `bit_offset` contributes to the hash, for each of these
    values below 65536.

    The key must reach 48 bits beyond `bit_offset`; `DeviceModel` sees to that.
    """
    total = np.zeros_like(values)
    for bit in range(FIELD_BITS):
        is_set = (values >> np.uint32(FIELD_BITS - 1 - bit)) & np.uint32(1)
        total ^= is_set * np.uint32(key_window(key, bit_offset + bit))
    return total


def hash_octets(key: bytes, octets: bytes) -> int:
    """The hash of one input, bit by bit as the verification suite defines it; 32 bits."""
    result = 0
    for bit_offset in range(8 * len(octets)):
        if octets[bit_offset // 8] >> (7 - bit_offset % 8) & 1:
            result ^= key_window(key, bit_offset)
    return result


def hash_input(model: DeviceModel, source: Address, destination: Address, ports: Sequence[int] = ()) -> bytes:
    """What the device hashes of one frame. `ports` are source and destination port; type 1 does not read them
    (RSS-01)."""
    parts = [(source.packed, destination.packed)]
    if model.hash_type == "type2":
        source_port, destination_port = ports
        parts.append((source_port.to_bytes(2, "big"), destination_port.to_bytes(2, "big")))
    if model.symmetric:
        parts = [(mixed, mixed) for mixed in (_xor(a, b) for a, b in parts)]
    return b"".join(a + b for a, b in parts)


def element_of(
    model: DeviceModel, source: Address | str, destination: Address | str, ports: Sequence[int] = ()
) -> int:
    """The element that gets this frame: its hash, the low bits of that, and the table (RSS-04)."""
    octets = hash_input(model, ipaddress.ip_address(source), ipaddress.ip_address(destination), ports)
    return model.table[hash_octets(model.key, octets) & (len(model.table) - 1)]


def _xor(a: bytes, b: bytes) -> bytes:
    return bytes(x ^ y for x, y in zip(a, b, strict=True))
