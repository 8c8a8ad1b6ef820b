# SPDX-License-Identifier: Apache-2.0
"""What the parts of a hash's input contribute to it, and the transform in which the parts are multiplied."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from evenhand.base.lazy_import import lazy_import

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = lazy_import("numpy")

HASH_BITS = 32
WORD_BITS = 16
Counts: TypeAlias = "NDArray[Any]"
"""int64, or Python's integers (dtype object) where 63 bits do not hold what may come up."""


def key_window(key: bytes, bit_offset: int) -> int:
    """The 32 bits of the key that input bit `bit_offset` XORs into the hash, if it is set."""
    return (int.from_bytes(key, "big") >> (8 * len(key) - HASH_BITS - bit_offset)) & 0xFFFFFFFF


def contributions(key: bytes, bit_offset: int, values: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """What a 16-bit field with its first bit at `bit_offset` contributes to the hash, for each of these
    values below 65536.

    The key must reach 48 bits beyond `bit_offset`; `DeviceModel` sees to that.
    """
    total = np.zeros_like(values)
    for bit in range(WORD_BITS):
        is_set = (values >> np.uint32(WORD_BITS - 1 - bit)) & np.uint32(1)
        total ^= is_set * np.uint32(key_window(key, bit_offset + bit))
    return total


def walsh_hadamard(counts: Counts) -> Counts:
    """The transform of an array whose length is a power of two, in its dtype. Twice gives the array times its
    length."""
    size = len(counts)
    width = 1
    while width < size:
        pairs = counts.reshape(-1, 2, width)
        counts = np.stack((pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]), axis=1).reshape(size)
        width *= 2
    return counts
