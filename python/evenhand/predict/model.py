# SPDX-License-Identifier: Apache-2.0
"""A device that shares its load by a hash: what a prediction is made for, and what a router can be configured
as."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from evenhand.base.errors import RequestError

HashType = Literal["type1", "type2"]

VERIFICATION_KEY = bytes.fromhex(
    "6d5a56da255b0ec24167253d43a38fb0d0ca2bcbae7b30b477cb2da38030f20c6a42b73bbeac01fa"
)
"""The key of the public verification suite, which many NICs have as default (RSS-03)."""

OPENBSD_SEED = 0x6D5A
"""The 16 bits that OpenBSD's key repeats, as its sources have them; newer kernels draw 16 bits of odd parity
when they start."""

MAX_ELEMENTS = 4096
COMMON_TABLE_SIZE = 128
MAX_TABLE_SIZE = 65536

_INPUT_OCTETS: dict[HashType, int] = {"type1": 32, "type2": 36}
"""Input octets of the hash over an IPv6 frame, the longest that the device meets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceModel:
    """Processing elements (cores, pipelines), and the hash that chooses one for each frame.

    Raises:
        RequestError: Names the field and its value.
    """

    elements: int = 16
    """1 to 4096."""
    hash_type: HashType = "type1"
    """type1: source and destination address; type2: also the UDP ports (RSS-01)."""
    symmetric: bool = False
    """Both addresses are replaced by source XOR destination before hashing, and so are both ports
    (symmetric-XOR, RSS-05)."""
    key: bytes = VERIFICATION_KEY
    """At least 4 octets longer than the longest hash input: 36 octets for type1, 40 for type2."""
    table: tuple[int, ...] = ()
    """Indirection table: an element for each value of the low bits of the hash (RSS-04); as long as a power
    of two. Empty: round robin."""
    rate_fps: float | None = None
    """What one element forwards. Needed for absolute predictions only."""
    queue_frames: int | None = None
    """Frames that wait before each element. Predictions of a steady state do not need it."""

    def __post_init__(self) -> None:
        if not 1 <= self.elements <= MAX_ELEMENTS:
            raise RequestError(
                f"{self.elements} elements: a device has 1 to {MAX_ELEMENTS}",
                code="predict.out-of-range",
                where="device.elements",
            )
        if self.hash_type not in _INPUT_OCTETS:
            raise RequestError(
                f"{self.hash_type!r} is not a hash type",
                code="predict.not-a-hash-type",
                where="device.hash_type",
                next_step="Use type1 (addresses) or type2 (addresses and ports).",
            )
        least = _INPUT_OCTETS[self.hash_type] + 4
        if len(self.key) < least:
            raise RequestError(
                f"{len(self.key)} octets ({self.key.hex()}): a {self.hash_type} hash of IPv6"
                f" needs at least {least}",
                code="predict.key-too-short",
                where="device.key",
                next_step="Give the whole key; NICs have 40 or 52 octets.",
            )
        if not self.table:
            object.__setattr__(self, "table", round_robin_table(self.elements))
        _check_table(self.table, self.elements)
        if self.rate_fps is not None and not (math.isfinite(self.rate_fps) and self.rate_fps > 0):
            raise RequestError(
                f"{self.rate_fps} frames per second and element: must be greater than 0",
                code="predict.out-of-range",
                where="device.rate_fps",
            )
        if self.queue_frames is not None and self.queue_frames < 1:
            raise RequestError(
                f"{self.queue_frames} frames: a queue holds at least 1",
                code="predict.out-of-range",
                where="device.queue_frames",
            )

    @property
    def table_unevenness(self) -> Fraction:
        """Busiest element to mean when every entry of the table gets the same load: 1 only if the elements
        share the entries evenly."""
        return Fraction(max(Counter(self.table).values()) * self.elements, len(self.table))

    def to_document(self) -> dict[str, Any]:
        return {
            "elements": self.elements,
            "hash_type": self.hash_type,
            "symmetric": self.symmetric,
            "key": self.key.hex(),
            "table": list(self.table),
            "rate_fps": self.rate_fps,
            "queue_frames": self.queue_frames,
        }


def symmetric_key(seed: int = OPENBSD_SEED, octets: int = 40) -> bytes:
    """OpenBSD's key: 16 bits, repeated, so that a frame and its answer have the same hash; 40 octets, as NICs
    take it.

    Raises:
        RequestError: Not 16 bits.
    """
    if not 0 <= seed <= 0xFFFF:
        raise RequestError(
            f"{seed:#x} has more than 16 bits",
            code="predict.not-16-bits",
            where="--key openbsd:",
            next_step="Write four digits, such as openbsd:6d5a.",
        )
    return seed.to_bytes(2, "big") * (octets // 2)


def round_robin_table(elements: int, size: int | None = None) -> tuple[int, ...]:
    """The table that drivers fill in: 0, 1, ..., elements - 1, 0, 1, ... (RSS-04).

    Args:
        size: A power of two; default 128, or the next power of two that has an entry for each element.
    """
    if size is None:
        size = max(COMMON_TABLE_SIZE, 1 << (elements - 1).bit_length())
    return tuple(entry % elements for entry in range(size))


def round_robin_unevenness(elements: int, size: int) -> Fraction:
    """`DeviceModel.table_unevenness` of the evenest table with so many entries."""
    return Fraction(math.ceil(Fraction(size, elements)) * elements, size)


def _check_table(table: tuple[int, ...], elements: int) -> None:
    size = len(table)
    if size > MAX_TABLE_SIZE or size & (size - 1):
        raise RequestError(
            f"{size} entries: the low bits of the hash choose an entry, so the number of"
            f" entries must be a power of two, at most {MAX_TABLE_SIZE}",
            code="predict.table-size",
            where="device.table",
            next_step="Give the whole table, as `ethtool -x INTERFACE` shows it.",
        )
    for index, element in enumerate(table):
        if not 0 <= element < elements:
            raise RequestError(
                f"entry {index} is element {element}, but {elements} elements are numbered 0"
                f" to {elements - 1}",
                code="predict.unknown-element",
                where="device.table",
            )
