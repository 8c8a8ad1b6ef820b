# SPDX-License-Identifier: Apache-2.0
"""What the parts of a hash's input contribute to it, and the transform in which the parts are multiplied.
What a flow's own fields contribute: one of several values each, or several whose values go together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from evenhand.base.lazy_import import lazy_import
from evenhand.plan import Direction, FieldPattern, Flow, Mode, sending_side
from evenhand.plan.flow_hosts import FlowPrefixes
from evenhand.plan.host_list import HostList
from evenhand.plan.prefixes import WIDTH
from evenhand.plan.ranges import IpVersion

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


class PlacedValues(NamedTuple):
    """Values of one field, by their number."""

    bit_offsets: tuple[int, ...]
    """Bit offsets in the hash input at which the field begins; twice with a symmetric hash."""
    width: int
    """Bits of the field: a multiple of 16."""
    values: tuple[int, ...] | range

    def words(self) -> Iterator[tuple[int, list[int]]]:
        """The offset of each word of 16 bits in the field, and its values."""
        for offset in range(0, self.width, WORD_BITS):
            shift = self.width - WORD_BITS - offset
            yield offset, [value >> shift & 0xFFFF for value in self.values]


@dataclass(frozen=True, slots=True)
class TogetherField:
    """Fields of which each frame has the values of one number: the first of each, or the second of each."""

    fields: tuple[PlacedValues, ...]
    """All have as many values."""

    @property
    def combinations(self) -> int:
        """Sum of the histogram."""
        return len(self.fields[0].values)

    def spectrum(self, key: bytes, size: int) -> Counts:
        """Transform of the histogram of what the fields contribute to the low bits of the hash; int64."""
        return _spectrum(self, key, size)


ADDRESSES = ("source", "destination")
PORTS = ("source-port", "destination-port")


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowPatterns:
    """The patterns of one flow for fields that a device hashes, in one direction."""

    flow: Flow | None
    """None: frames are of no flow."""
    direction: Direction

    def of(self, role: str) -> FieldPattern | None:
        """That of one of `ADDRESSES` or `PORTS`, where the flow has its own; a single value is a pattern."""
        if self.flow is None:
            return None
        value = getattr(self.flow, self._key(role).replace("-", "_"))
        return FieldPattern(first=value) if isinstance(value, int) else self.flow.pattern(self._key(role))

    def host_list(self, role: str) -> HostList | None:
        """Those of one of `ADDRESSES`, where the flow has all that are in prefixes of its own."""
        found = None if self.flow is None else getattr(self.flow, self._key(role))
        return found.host_list if isinstance(found, FlowPrefixes) else None

    def modes(self, roles: Sequence[str]) -> dict[str, Mode]:
        """How those of several values are chosen; of fields in lock-step, the first for all."""
        found: dict[str, Mode] = {}
        in_lock_step = False
        for role in roles:
            pattern = self.of(role)
            if pattern is None or len(pattern.all_values) == 1 or (in_lock_step and self._is_tied(role)):
                continue
            in_lock_step = in_lock_step or self._is_tied(role)
            found[f"{self._key(role)} of {self.flow.name if self.flow else ''}"] = pattern.mode
        return found

    def fields(self, places: Mapping[str, tuple[int, ...]], version: IpVersion) -> list[TogetherField]:
        """What the device hashes of them.

        Args:
            places: Bit offsets of each role.
        """
        alone: list[PlacedValues] = []
        together: list[PlacedValues] = []
        for role, bit_offsets in places.items():
            if (pattern := self.of(role)) is not None:
                width = WIDTH[version] if role in ADDRESSES else WORD_BITS
                (together if self._is_tied(role) else alone).append(
                    PlacedValues(bit_offsets, width, pattern.all_values)
                )
        return [TogetherField((field,)) for field in alone] + (
            [TogetherField(tuple(together))] if together else []
        )

    def _is_tied(self, role: str) -> bool:
        return self.flow is not None and self._key(role) in self.flow.lock_step

    def _key(self, role: str) -> str:
        """As a flow calls it: hosts by their side."""
        if role not in ADDRESSES:
            return role
        source = sending_side(self.direction)
        return source if role == "source" else ("right" if source == "left" else "left")


# All flows of a plan, and all points of a series, ask for the same.
@lru_cache(maxsize=256)
def _spectrum(of: TogetherField, key: bytes, size: int) -> Counts:
    contributed = np.zeros(of.combinations, dtype=np.uint32)
    for field in of.fields:
        for offset, values in field.words():
            for begins in field.bit_offsets:
                contributed ^= contributions(key, begins + offset, np.array(values, dtype=np.uint32))
    histogram = np.bincount((contributed & np.uint32(size - 1)).astype(np.int64), minlength=size)
    spectrum = walsh_hadamard(histogram.astype(np.int64))
    spectrum.flags.writeable = False
    return spectrum
